"""Certificates made here: whom they prove, when they are renewed, and that nobody else can read the keys."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from webhooks.certificates import Pair, expires, new_authority, rotate, serving_pair

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
    assert {modes["ca.key"], modes["tls.key"]} == {0o600}


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
    old = rotate(tmp_path, HOSTS, NOW)
    later = NOW + timedelta(days=2600)
    both = rotate(tmp_path, HOSTS, later)
    end = later + timedelta(days=2600)

    new = rotate(tmp_path, HOSTS, end)

    assert both.endswith(old)
    assert len(x509.load_pem_x509_certificates(both)) == 2
    assert old not in new
    assert proven(tmp_path, new)


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
    """Neither half of a pair is in its representation (T16)."""
    assert repr(Pair(b"c", b"hunter2")) == "Pair(certificate=..., key=...)"
