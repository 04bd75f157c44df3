"""The HTTPS door: real sockets, bodies of every kind, health, metrics, an orderly end."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest

from schemas.kinds import POD
from tests.error_logs import ErrorLogs
from tests.webhooks.given import Desk, launcher, opened, review, said, until
from tests.webhooks.made import rotate
from tests.webhooks.standing import HOSTS, Stand, ask, standing, unheard
from webhooks.server import BODY_BYTES_MAX, Listen, Server
from webhooks.service import Patience
from webhooks.tls import ServingCertificate


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


@pytest.mark.parametrize("handshakes", [False, True], ids=["silent", "idle"])
async def test_whoever_connects_takes_no_more_than_a_place(desk: Desk, tmp_path: Path, *, handshakes: bool) -> None:
    """A flood of connections, before their handshake or after it: the oldest go, and the API server is answered."""
    most = 8
    async with standing(desk, tmp_path, connections_max=most) as stand, stand.client(keep_alive=False) as client:
        trust = ssl.create_default_context(cadata=stand.bundle.decode()) if handshakes else None
        name = "localhost" if handshakes else None
        ends = [
            await asyncio.open_connection("127.0.0.1", stand.server.port, ssl=trust, server_hostname=name)
            for _ in range(3 * most)
        ]

        answers = [await ask(client, stand.url) for _ in range(2)]

        # Each was told in its turn that it is over: nobody waits for a handshake's or an idle connection's end.
        for reader, _ in ends[:most]:
            with suppress(ConnectionError):
                assert not await reader.read()
        for _, writer in ends:
            writer.transport.abort()
    assert all(answer.allowed for answer in answers)


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
    async with opened(Patience(answer_s=3.0)) as desk, standing(desk, tmp_path) as stand, stand.client() as client:
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
        standing(desk, tmp_path, linger_s=5.0, drain_s=60) as stand,
        stand.client() as client,
    ):
        desk.api.troubles["gpuclasses"] = held
        waiting = asyncio.create_task(ask(client, stand.url))
        await desk.api.met.wait()
        stopping = asyncio.create_task(stand.server.stop())
        async with client.get(f"{stand.url}/readyz") as response:
            assert (response.status, (await response.json())["draining"]) == (503, True)

        await until(partial(unheard, stand.server.port))
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
