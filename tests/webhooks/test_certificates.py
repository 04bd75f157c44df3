"""Certificates made here: whom they prove, when they are renewed, and that nobody else can read the keys."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhooks.made import rotate
from webhooks.certificates import Held, Lives, Pair, expires, new_authority, renewed, serving_pair

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = ("gpubinder-webhooks.cozy-gpubinder.svc", "127.0.0.1")


def serving(directory: Path) -> x509.Certificate:
    """Return the certificate that would be served."""
    return x509.load_pem_x509_certificate((directory / "tls.crt").read_bytes())


def proven(directory: Path, bundle: bytes) -> bool:
    """Say whether a client that trusts the bundle trusts the served certificate."""
    for authority in x509.load_pem_x509_certificates(bundle):
        if authority.subject == serving(directory).issuer:
            serving(directory).verify_directly_issued_by(authority)
            return True
    return False


def test_a_fresh_directory_gets_everything(tmp_path: Path) -> None:
    """Authority and serving pair, for names and addresses, keys for the owner's eyes alone."""
    bundle = rotate(tmp_path / "tls", HOSTS, NOW)

    names = serving(tmp_path / "tls").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [HOSTS[0]]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert proven(tmp_path / "tls", bundle)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "tls").iterdir()}
    assert modes["tls.key"] == 0o600


def test_nothing_is_renewed_early(tmp_path: Path) -> None:
    """Within the first two thirds of its life everything stays."""
    rotate(tmp_path, HOSTS, NOW)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    rotate(tmp_path, HOSTS, NOW + timedelta(days=59))

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_serving_pair_is_renewed_in_time(tmp_path: Path) -> None:
    """In the last third it is new, by the same authority."""
    bundle = rotate(tmp_path, HOSTS, NOW)
    old = serving(tmp_path)

    later = NOW + timedelta(days=61)

    assert rotate(tmp_path, HOSTS, later) == bundle
    assert serving(tmp_path).serial_number != old.serial_number
    assert expires((tmp_path / "tls.crt").read_bytes()) == later + timedelta(days=90)


def test_another_host_is_another_certificate(tmp_path: Path) -> None:
    """A pair for other names does not serve."""
    rotate(tmp_path, HOSTS, NOW)

    rotate(tmp_path, (*HOSTS, "more.example"), NOW)

    names = serving(tmp_path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "more.example" in names.get_values_for_type(x509.DNSName)


def test_an_authority_is_replaced_beside_the_old_one(tmp_path: Path) -> None:
    """The bundle holds both while the served certificate is still the old one's; later the old one goes."""
    lives = Lives()
    first = renewed(Held(), HOSTS, NOW)
    later = NOW + lives.authority - lives.authority_left
    # The pair of those days, by the first authority.
    first = Held(first.bundle, first.authority_key, serving_pair(Pair(first.bundle, first.authority_key), HOSTS, later))

    both = renewed(first, HOSTS, later)
    unknown = renewed(both, HOSTS, later + lives.overlap)
    served = renewed(both, HOSTS, later, known_for=lives.overlap)
    soon = renewed(served, HOSTS, later + lives.overlap / 2, known_for=lives.overlap)
    last = renewed(served, HOSTS, later + lives.overlap, known_for=lives.overlap)

    assert both.bundle.endswith(first.bundle)
    assert len(x509.load_pem_x509_certificates(both.bundle)) == 2
    assert both.serving == unknown.serving == first.serving
    assert served.serving != first.serving
    assert soon == served
    assert (last.bundle + first.bundle, last.serving) == (both.bundle, served.serving)


MINUTE = timedelta(minutes=1)
SHORT = Lives(
    authority=200 * MINUTE,
    authority_left=120 * MINUTE,
    serving=100 * MINUTE,
    serving_left=60 * MINUTE,
    overlap=16 * MINUTE,
)
LATE = 7 * MINUTE
"""How late a look, or the API server's hearing of a changed configuration, may be in the test below."""


class Replica:
    """One of those who look: what it serves, and since when it has found which bundle known."""

    def __init__(self, held: Held) -> None:
        self.serves, self.known, self.since, self.looked = held.serving, b"", NOW, NOW

    def look(self, held: Held, now: datetime) -> Held:
        """Tell the bundle, renew what is due, serve what is held."""
        if held.bundle != self.known:
            self.known, self.since = held.bundle, now
        held = renewed(held, HOSTS, now, SHORT, known_for=now - self.since)
        self.serves, self.looked = held.serving, now
        return held


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 7), st.integers(0, 2), st.booleans()), min_size=40, max_size=150))
def test_whoever_is_late_is_still_trusted(steps: list[tuple[int, int, bool]]) -> None:
    """Replicas that look late and an API server that hears late: what is served is always proven by what is known."""
    now, held = NOW, renewed(Held(), HOSTS, NOW, SHORT)
    replicas = [Replica(held) for _ in range(3)]
    told = [(NOW - LATE, held.bundle)]
    heard = 0
    for minutes, turn, at_once in steps:
        now += minutes * MINUTE
        for number, replica in enumerate(replicas):
            if number == turn or now - replica.looked > LATE:
                told.append((now, held.bundle))
                held = replica.look(held, now)
        old_enough = [place for place, (when, _) in enumerate(told) if now - when >= LATE]
        heard = len(told) - 1 if at_once else max(heard, *old_enough)
        for pair in (held.serving, *(replica.serves for replica in replicas)):
            assert by_one_of(pair, told[heard][1])
            assert expires(pair.certificate) > now


def by_one_of(pair: Pair, bundle: bytes) -> bool:
    """Say whether a client that knows this bundle believes who shows this pair."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    return certificate.issuer in [authority.subject for authority in x509.load_pem_x509_certificates(bundle)]


@pytest.mark.parametrize("lost", ["ca.key", "ca.crt", "tls.key", "tls.crt"])
def test_what_is_lost_or_broken_is_made_anew(tmp_path: Path, lost: str) -> None:
    """A missing or unreadable file ends in a directory that serves again, by an authority in the bundle."""
    rotate(tmp_path, HOSTS, NOW)
    (tmp_path / lost).write_bytes(b"nonsense")

    bundle = rotate(tmp_path, HOSTS, NOW)

    assert proven(tmp_path, bundle)


def test_a_certificate_needs_a_host() -> None:
    """Nothing is signed for nobody."""
    with pytest.raises(ValueError, match="at least one host"):
        serving_pair(new_authority(NOW), (), NOW)


def test_a_key_shows_in_no_log() -> None:
    """Neither half of a pair is in its representation, nor what a Secret holds (T16)."""
    assert "hunter2" not in repr(Held(b"c", b"hunter2", Pair(b"c", b"hunter2")))
    assert repr(Pair(b"c", b"hunter2")) == "Pair(certificate=..., key=...)"
