"""Certificates held in a Secret: replicas agree, and configurations learn of an authority before it signs."""

import asyncio
import stat
from base64 import b64decode
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from typing_extensions import override

from binder.kube import ApiError
from deploy.front_door import Door, FrontDoor
from deploy.kept_certificates import KeptCertificates
from deploy.world.apiserver import ApiServer
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME, VALIDATING_CONFIGURATION
from schemas.kinds import NAMESPACE, SECRET, Resource
from schemas.names import WEBHOOK_TLS_SECRET
from tests.deploy.waiting import until
from webhooks.certificates import Lives
from webhooks.configuration import Service, webhook_configuration

HOME = "gpubinder"
HOSTS = ("webhooks.gpubinder.svc",)
FILES = ("tls.key", "tls.crt")


async def hosts() -> tuple[str, ...]:
    """Return the names of a test's certificates."""
    return HOSTS


async def data_of(api: ApiServer) -> dict[str, bytes]:
    """Return what the Secret holds."""
    secret = msgspec.json.decode(await api.get(SECRET, HOME, WEBHOOK_TLS_SECRET))
    return {name: b64decode(text) for name, text in secret["data"].items()}


def files(directory: Path) -> list[bytes]:
    """Return key and certificate as a server would read them."""
    return [(directory / name).read_bytes() for name in FILES]


async def cluster(*resources: Resource) -> ApiServer:
    """Return a model API server with our namespace."""
    api = ApiServer(resources=(NAMESPACE, SECRET, *resources))
    home = {"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.kind, "metadata": {"name": HOME}}
    await api.create(NAMESPACE, "", msgspec.json.encode(home))
    return api


async def quiet(_bundle: bytes) -> None:
    """Hear of a bundle."""


async def test_replicas_agree(tmp_path: Path) -> None:
    """Five that begin at once serve one pair, the one that the Secret holds; keys are for their owner alone."""
    api = await cluster()
    replicas = [KeptCertificates(api, HOME, tmp_path / str(number), hosts, quiet) for number in range(5)]

    await asyncio.gather(*(replica.begin() for replica in replicas))

    held = await data_of(api)
    assert [files(tmp_path / str(number)) for number in range(5)] == [[held["tls.key"], held["tls.crt"]]] * 5
    assert stat.S_IMODE((tmp_path / "0" / "tls.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "0").stat().st_mode) == 0o700


class LoopClock(datetime):
    """The time as the event loop has it: what two tasks of it do is not torn apart by a busy machine."""

    @override
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "LoopClock":
        return cls(2026, 1, 1, tzinfo=tz) + timedelta(seconds=asyncio.get_running_loop().time())


@pytest.mark.looptime
async def test_an_authority_is_told_before_it_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewed again and again by two replicas: what is served was always signed by one that the configuration named."""
    monkeypatch.setattr("deploy.kept_certificates.datetime", LoopClock)
    api, told = await cluster(), [b""]
    lives = Lives(
        authority=timedelta(hours=1),
        authority_left=timedelta(minutes=59, seconds=56),
        serving=timedelta(hours=1),
        serving_left=timedelta(minutes=59, seconds=58),
        # Certificates count whole seconds.
        overlap=timedelta(seconds=1.5),
    )

    async def tell(bundle: bytes) -> None:
        told.append(bundle)

    pair = [
        KeptCertificates(api, HOME, tmp_path / str(number), hosts, tell, lives=lives, look_s=0.05)
        for number in range(2)
    ]
    for one in pair:
        await one.begin()
        await one.look()
    keeping = [asyncio.create_task(one.keep()) for one in pair]
    authorities: set[x509.Name] = set()
    serials: set[int] = set()

    async def renewed() -> bool:
        for number in range(2):
            served = x509.load_pem_x509_certificate((tmp_path / str(number) / "tls.crt").read_bytes())
            known = {one.subject for one in x509.load_pem_x509_certificates(told[-1])}
            assert served.issuer in known
            authorities.add(served.issuer)
            serials.add(served.serial_number)
        return len(authorities) >= 3 and len(serials) >= 3

    await until(renewed, seconds=3600)
    assert not any(task.done() for task in keeping)
    for task in keeping:
        task.cancel()


async def test_a_secret_that_is_lost_or_broken_is_made_anew(tmp_path: Path) -> None:
    """Deleted or written over by hand: the next look has a pair that the configuration is told of."""
    api = await cluster(CONFIGURATION, VALIDATING_CONFIGURATION)
    front = FrontDoor(api, HOME, Door(tmp_path, at="gpubinder/webhooks"))
    await front.begin()
    await front.tell()
    for damage in ("gone", "nonsense"):
        if damage == "gone":
            await api.delete(SECRET, HOME, WEBHOOK_TLS_SECRET)
        else:
            stored = msgspec.json.decode(await api.get(SECRET, HOME, WEBHOOK_TLS_SECRET))
            stored["data"] = {"tls.crt": "bm9uc2Vuc2U=", "ca.crt": "?"}
            await api.replace(SECRET, HOME, WEBHOOK_TLS_SECRET, msgspec.json.encode(stored))

        await front.tell()

        held = await data_of(api)
        assert files(tmp_path) == [held["tls.key"], held["tls.crt"]]
        found = msgspec.json.decode(await api.get(CONFIGURATION, "", CONFIGURATION_NAME))
        assert {b64decode(one["clientConfig"]["caBundle"]) for one in found["webhooks"]} == {held["ca.crt"]}


async def test_configurations_of_others_are_vouched_for(tmp_path: Path) -> None:
    """Not registered by us: their addresses are in the certificate, their bundle is ours, nothing else is touched."""
    api = await cluster(CONFIGURATION, VALIDATING_CONFIGURATION)
    theirs = webhook_configuration(Service("apps", "door", 8443), b"")
    await api.create(CONFIGURATION, "", msgspec.json.encode(theirs))
    front = FrontDoor(api, HOME, Door(tmp_path))

    await front.begin()
    await front.tell()

    found = msgspec.json.decode(await api.get(CONFIGURATION, "", CONFIGURATION_NAME))
    for one, before in zip(found["webhooks"], theirs["webhooks"], strict=True):
        bundle = one["clientConfig"].pop("caBundle")
        assert b64decode(bundle) == (await data_of(api))["ca.crt"]
        before["clientConfig"].pop("caBundle")
        assert one == before
    served = x509.load_pem_x509_certificate((tmp_path / "tls.crt").read_bytes())
    names = served.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "door.apps.svc" in names.get_values_for_type(x509.DNSName)


async def test_what_cert_manager_injects_is_left_to_it(tmp_path: Path) -> None:
    """A configuration that its injector looks after keeps the bundle it has."""
    api = await cluster(CONFIGURATION, VALIDATING_CONFIGURATION)
    theirs = webhook_configuration(Service("apps", "door"), b"theirs")
    theirs["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "apps/door"}
    await api.create(CONFIGURATION, "", msgspec.json.encode(theirs))
    before = await api.get(CONFIGURATION, "", CONFIGURATION_NAME)
    front = FrontDoor(api, HOME, Door(tmp_path))

    await front.begin()
    await front.tell()

    assert await api.get(CONFIGURATION, "", CONFIGURATION_NAME) == before


async def test_a_secret_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    """Refused by the API server, the process learns it at once, instead of serving what nobody vouches for."""

    class Refusing(ApiServer):
        @override
        async def get(self, *_args: object, **_more: object) -> bytes:
            raise ApiError(403, "Forbidden", "no")

    with pytest.raises(ApiError, match="Forbidden"):
        await KeptCertificates(Refusing(), HOME, tmp_path, hosts, quiet).begin()
