"""Certificates renewed before a real API server while it asks: no review is lost, whoever renews."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
from cryptography import x509

from binder.kube_client import KubeClient
from deploy.front_door import Door, FrontDoor
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME, VALIDATING_CONFIGURATION, VMI_PATH
from schemas.kinds import NAMESPACE, SECRET
from schemas.names import WEBHOOK_TLS_SECRET
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.users import GPUBINDER
from tests.webhooks.given import SLICE, until
from tests.webhooks.test_on_api_server import Front, front, machine
from webhooks.certificates import Lives

LIVES = Lives(
    authority=timedelta(hours=1),
    authority_left=timedelta(minutes=59, seconds=50),
    serving=timedelta(hours=1),
    serving_left=timedelta(minutes=59, seconds=57),
    overlap=timedelta(seconds=6),
)
SECONDS = 180.0


class Seen:
    """What was met while certificates were renewed: authorities and certificates that served, reviews answered."""

    def __init__(self) -> None:
        self.authorities: set[x509.Name] = set()
        self.serials: set[int] = set()
        self.answered = 0


async def test_certificates_are_renewed_under_load(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    """Two replicas renew authority and certificate again and again: every review is answered, every handshake holds.

    Each handshake trusts only what the configuration names at that moment, as an API server does.
    """
    system = f"{namespace}-system"
    await api.create(NAMESPACE.path(), {"metadata": {"name": system}})
    kube = await KubeClient.connect(kubeconfig=str(control_plane.kubeconfig(GPUBINDER)))
    try:
        async with front(control_plane, api, namespace, tmp_path / "tls") as standing:
            at = f"https://127.0.0.1:{standing.port}"
            doors = [
                FrontDoor(kube, system, Door(directory, at=at), lives=LIVES, look_s=0.5)
                for directory in (tmp_path / "tls", tmp_path / "other")
            ]
            await asyncio.gather(*(door.begin() for door in doors))
            await asyncio.gather(*(door.tell() for door in doors))
            # The server began with a pair of the test's own.
            await until(partial(_met, api, standing.port))
            seen = Seen()
            async with _beside([door.keep() for door in doors]), _beside([_asking(standing, seen) for _ in range(3)]):
                async with asyncio.timeout(SECONDS):
                    while len(seen.authorities) < 3 or len(seen.serials) < 5 or seen.answered < 20:
                        await _meet_in_time(api, standing.port, seen)
            secret = await api.get(SECRET.path(system, WEBHOOK_TLS_SECRET))
            assert set(secret["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    finally:
        await kube.close()
        if await api.find(VALIDATING_CONFIGURATION.path(name=CONFIGURATION_NAME)) is not None:
            await api.delete(VALIDATING_CONFIGURATION.path(name=CONFIGURATION_NAME))
        await api.delete(NAMESPACE.path(name=system))


@asynccontextmanager
async def _beside(work: list[object]) -> AsyncIterator[None]:
    """Run work for the length of a block, and fail with its error."""
    tasks = [asyncio.ensure_future(one) for one in work]  # type: ignore[call-overload] # coroutines of any kind
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _asking(standing: Front, seen: Seen) -> None:
    """Create VMIs, as dry runs, one after the other; a review that is lost is an error."""
    while True:
        made = await standing.api.create(standing.vmis, machine("load"), dryRun="All")
        assert made["spec"]["domain"]["devices"]["gpus"][0]["deviceName"] == SLICE
        seen.answered += 1


async def _met(api: Api, port: int) -> bool:
    try:
        await _meet(api, port, Seen())
    except ssl.SSLCertVerificationError:
        return False
    return True


async def _meet_in_time(api: Api, port: int, seen: Seen) -> None:
    """Meet; who was kept from it for so long that authorities may have changed meanwhile has to read again."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        await _meet(api, port, seen)
    except ssl.SSLCertVerificationError:
        if loop.time() - began < LIVES.overlap.total_seconds() / 2:
            raise


async def _meet(api: Api, port: int, seen: Seen) -> None:
    """Connect as an API server that has just read the configuration would, and note who answers."""
    found = await api.get(CONFIGURATION.path(name=CONFIGURATION_NAME))
    [bundle] = {one["clientConfig"]["caBundle"] for one in found["webhooks"]}
    trusted = ssl.create_default_context(cadata=msgspec.json.decode(f'"{bundle}"', type=bytes).decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        served = x509.load_der_x509_certificate(shown)
        seen.authorities.add(served.issuer)
        seen.serials.add(served.serial_number)
        writer.write(f"GET {VMI_PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert await reader.read()
    finally:
        writer.close()
