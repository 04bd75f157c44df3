"""The HTTPS door: real sockets, real TLS, certificates exchanged under load, an orderly end."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from schemas.kinds import POD, VMI
from tests.error_logs import ErrorLogs
from tests.webhooks.given import Desk, Said, launcher, opened, review, said, vmi
from webhooks.certificates import new_authority, rotate, serving_pair
from webhooks.server import BODY_BYTES_MAX, Listen, Server
from webhooks.service import Patience
from webhooks.tls import ServingCertificate, UnusableCertificate

HOSTS = ("localhost", "127.0.0.1")
SECONDS = 30.0


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Poll until it holds, at most for a while."""
    async with asyncio.timeout(SECONDS):
        while not await holds():
            await asyncio.sleep(0.01)


class Stand:
    """A server that listens, its files, and a client that trusts its authority."""

    def __init__(self, server: Server, files: Path, bundle: bytes) -> None:
        self.server, self.files, self.bundle = server, files, bundle
        self.url = f"https://127.0.0.1:{server.port}"

    def client(self, *, keep_alive: bool = True) -> aiohttp.ClientSession:
        """Return a client as the API server is one: it checks the certificate against the bundle."""
        trust = ssl.create_default_context(cadata=self.bundle.decode())
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, force_close=not keep_alive))

    async def served(self) -> int:
        """Return the serial number of the certificate that a new connection meets."""
        return (await self.meet("127.0.0.1"))["serialNumber"]  # type: ignore[no-any-return]  # ssl's own dict

    async def meet(self, host: str) -> dict[str, Any]:
        """Shake hands under a name and return the certificate that was shown."""
        trust = ssl.create_default_context(cadata=self.bundle.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", self.server.port, ssl=trust, server_hostname=host)
        shown: dict[str, Any] = writer.get_extra_info("peercert")
        writer.close()
        await writer.wait_closed()
        return shown


@asynccontextmanager
async def standing(desk: Desk, directory: Path, **listen: Any) -> AsyncIterator[Stand]:  # noqa: ANN401 - of Listen
    """Serve the desk from a directory with fresh certificates."""
    bundle = rotate(directory, HOSTS, datetime.now(UTC))
    files = Listen(directory / "tls.crt", directory / "tls.key", host="127.0.0.1", port=0, reload_s=0.02)
    async with Server(desk.webhooks, msgspec.structs.replace(files, **listen)) as server:
        yield Stand(server, directory, bundle)
    await until(partial(quiet, server.port))


async def quiet(port: int) -> bool:
    """Say whether every connection to a port of ours is closed: TLS takes a moment for it, the loop ends sooner."""
    transports = list(vars(asyncio.get_running_loop())["_transports"].values())
    open_ones = [each for each in transports if vars(each)["_sock"] is not None]
    return all(each.get_extra_info("sockname")[1] != port for each in open_ones)


@pytest.fixture
async def stand(desk: Desk, tmp_path: Path) -> AsyncIterator[Stand]:
    """A server before the desk, with metrics."""
    async with standing(desk, tmp_path, metrics_port=0) as served:
        yield served


async def ask(client: aiohttp.ClientSession, url: str) -> Said:
    """Post the review of a good VMI."""
    async with client.post(f"{url}/mutate/vmis", data=msgspec.json.encode(review(vmi(), VMI))) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        return said(await response.read(), vmi())


async def test_reviews_are_answered_over_tls(stand: Stand) -> None:
    """A VMI and a launcher, each at its path, by a certificate that the bundle proves."""
    async with stand.client() as client:
        assert (await ask(client, stand.url)).allowed
        body = msgspec.json.encode(review(launcher(), POD))
        async with client.post(f"{stand.url}/mutate/pods", data=body) as response:
            assert said(await response.read(), launcher()).allowed


async def test_what_is_no_review_is_a_bad_request(stand: Stand) -> None:
    """Nonsense gets 400 and a body that says why; other paths and methods do not exist."""
    async with stand.client() as client:
        async with client.post(f"{stand.url}/mutate/vmis", data=b"nonsense") as response:
            assert response.status == 400
            assert b"no AdmissionReview" in await response.read()
        async with client.get(f"{stand.url}/mutate/vmis") as response:
            assert response.status == 405
        async with client.post(f"{stand.url}/mutate", data=b"") as response:
            assert response.status == 404


async def test_a_body_that_is_too_long_is_not_read(stand: Stand) -> None:
    """More than any object can be: 413, and the next request is answered."""
    async with stand.client() as client:
        async with client.post(f"{stand.url}/mutate/vmis", data=io.BytesIO(b" " * (BODY_BYTES_MAX + 1))) as response:
            assert response.status == 413

        assert (await ask(client, stand.url)).allowed


async def test_a_body_that_does_not_come_is_not_waited_for(desk: Desk, tmp_path: Path) -> None:
    """A client that stops in the middle of its body gets 408."""
    async with standing(desk, tmp_path, read_s=0.05) as stand, stand.client() as client:

        async def halting() -> AsyncIterator[bytes]:
            yield b"{"
            await asyncio.get_running_loop().create_future()

        async with client.post(f"{stand.url}/mutate/vmis", data=halting()) as response:
            assert response.status == 408


async def test_plain_words_on_the_tls_port_harm_nobody(stand: Stand) -> None:
    """A port scan is turned away in the handshake; requests go on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stand.server.port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    assert await reader.read() is not None
    writer.transport.abort()

    async with stand.client() as client:
        assert (await ask(client, stand.url)).allowed


@pytest.mark.parametrize("host", HOSTS)
async def test_a_server_name_is_not_needed(stand: Stand, host: str) -> None:
    """With and without a server name in the handshake (an address has none) the pair is served."""
    assert (await stand.meet(host))["serialNumber"]


async def test_certificates_are_exchanged_under_load(stand: Stand) -> None:
    """Ten new pairs while requests run on kept and on new connections: every request is answered."""
    answered, over = 0, False

    async def load(*, keep_alive: bool) -> None:
        nonlocal answered
        async with stand.client(keep_alive=keep_alive) as client:
            while not over:
                assert (await ask(client, stand.url)).allowed
                answered += 1

    running = [asyncio.create_task(load(keep_alive=keep)) for keep in (True, True, False, False)]
    seen = {await stand.served()}
    for _ in range(10):
        (stand.files / "tls.crt").unlink()
        rotate(stand.files, HOSTS, datetime.now(UTC))

        async def changed() -> bool:
            return await stand.served() not in seen

        await until(changed)
        seen.add(await stand.served())
    over = True
    await asyncio.gather(*running)

    assert len(seen) == 11
    assert answered >= 4


async def test_another_authority_is_followed(stand: Stand) -> None:
    """After the authority is replaced, a client with the new bundle is served; one with the old one alone is not."""
    old = stand.bundle
    (stand.files / "ca.key").unlink()
    (stand.files / "tls.crt").unlink()
    before = await stand.served()
    stand.bundle = rotate(stand.files, HOSTS, datetime.now(UTC))

    async def changed() -> bool:
        return await stand.served() != before

    await until(changed)
    stand.bundle = old
    with pytest.raises(ssl.SSLCertVerificationError):
        await stand.served()


async def test_half_a_pair_is_not_served(stand: Stand) -> None:
    """A key that does not fit, or files that vanish: the former pair stays, and readiness tells the trouble."""
    before = await stand.served()
    other = serving_pair(new_authority(datetime.now(UTC)), HOSTS, datetime.now(UTC))
    key = (stand.files / "tls.key").read_bytes()
    async with stand.client() as client:

        async def certificate() -> tuple[int, str]:
            async with client.get(f"{stand.url}/readyz") as response:
                return response.status, (await response.json())["certificate"]

        async def troubled() -> bool:
            return (await certificate())[1] != "ok"

        async def well() -> bool:
            return not await troubled()

        (stand.files / "tls.key").write_bytes(other.key)
        await until(troubled)
        assert (await certificate())[0] == 200
        (stand.files / "tls.key").unlink()
        await until(troubled)
        assert await stand.served() == before
        (stand.files / "tls.key").write_bytes(key)
        await until(well)


def test_files_that_cannot_be_served_are_named(tmp_path: Path) -> None:
    """A start without usable files fails with their names."""
    with pytest.raises(UnusableCertificate, match=r"tls.crt and .*tls.key can't be served: No such file"):
        ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")


async def test_readiness_tells_the_parts_apart(
    desk: Desk, stand: Stand, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """NATS, binder and certificate each have a word; an expired certificate and no NATS take the replica out."""
    async with stand.client() as client:
        async with client.get(f"{stand.url}/healthz") as response:
            assert response.status == 200
        async with client.get(f"{stand.url}/readyz") as response:
            ok = {"nats": "ok", "binder": "ok", "certificate": "ok", "draining": False}
            assert (response.status, await response.json()) == (200, ok)
        desk.journal.streams.pop("GPUBINDER_DECISIONS")
        async with client.get(f"{stand.url}/readyz") as response:
            assert (response.status, (await response.json())["nats"]) == (503, "LookupError")

    old = tmp_path_factory.mktemp("old")
    rotate(old, HOSTS, datetime.now(UTC) - timedelta(days=91))
    expired = ServingCertificate(old / "tls.crt", old / "tls.key").expired(datetime.now(UTC))
    assert expired.startswith("expired at ")


async def test_a_silent_binder_keeps_its_replicas_in_service(tmp_path: Path) -> None:
    """Readiness names the binder and stays: somebody must be there to refuse in a sentence."""
    async with opened(Patience(answer_s=0.3)) as desk, standing(desk, tmp_path) as stand, stand.client() as client:
        desk.clerk.silent = True

        assert (await ask(client, stand.url)).reason == "NoAnswer"
        async with client.get(f"{stand.url}/readyz") as response:
            assert response.status == 200
            assert "not answered" in (await response.json())["binder"]


async def test_what_is_under_way_is_finished(tmp_path: Path) -> None:
    """Stopped in the middle of a request: it is answered, new connections are refused, readiness fell first."""
    held, patience = asyncio.Event(), Patience(answer_s=60, evidence_s=60)
    async with (
        opened(patience) as desk,
        standing(desk, tmp_path, linger_s=0.2, drain_s=60) as stand,
        stand.client() as client,
    ):
        desk.api.troubles["gpuclasses"] = held
        waiting = asyncio.create_task(ask(client, stand.url))
        await desk.api.met.wait()
        stopping = asyncio.create_task(stand.server.stop())
        async with client.get(f"{stand.url}/readyz") as response:
            assert (response.status, (await response.json())["draining"]) == (503, True)

        async def refused() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", stand.server.port)
            except ConnectionRefusedError:
                return True
            writer.transport.abort()
            return False

        await until(refused)
        held.set()

        assert (await waiting).allowed
        await stopping


async def test_metrics_count_verdicts(stand: Stand) -> None:
    """Per webhook and verdict, on a port without TLS (I1)."""
    async with stand.client() as client:
        await ask(client, stand.url)
        async with client.post(f"{stand.url}/mutate/vmis", data=b"") as response:
            assert response.status == 400
        async with client.get(f"http://127.0.0.1:{stand.server.metrics_port}/metrics") as response:
            text = await response.text()

    assert 'gpubinder_admission_reviews_total{verdict="admitted",webhook="vmis"} 1.0' in text
    assert 'gpubinder_admission_reviews_total{verdict="malformed",webhook="vmis"} 1.0' in text
    assert 'gpubinder_admission_seconds_count{webhook="vmis"} 2.0' in text


async def test_a_taken_port_leaves_nothing_behind(desk: Desk, stand: Stand, tmp_path: Path) -> None:
    """A second server on the same port fails with an error, and the first goes on."""
    taken = Listen(tmp_path / "tls.crt", tmp_path / "tls.key", host="127.0.0.1", port=stand.server.port)
    with pytest.raises(OSError, match="address"):
        async with Server(desk.webhooks, taken):
            pass

    async with stand.client() as client:
        assert (await ask(client, stand.url)).allowed


async def test_a_fault_of_ours_is_a_refusal(desk: Desk, stand: Stand, error_logs: ErrorLogs) -> None:
    """A bug inside is logged as an error and refuses one start; there is no 500 and no hang."""
    error_logs.expect("admission.failed")
    desk.api.troubles["gpuclasses"] = ZeroDivisionError("hunter2")
    async with stand.client() as client:
        answer = await ask(client, stand.url)

    assert (answer.allowed, answer.code, answer.reason) == (False, 500, "InternalError")
    assert "hunter2" not in answer.message
