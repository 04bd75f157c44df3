"""Roles kept running: what passes is tried again, what must stop the program stops it; the pages beside them."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, Counter

from binder.journal import Unavailable
from binder.kube import ApiError
from binder.tip import BrokenLog
from deploy import serving
from deploy.child import fetch
from deploy.cluster_in_memory import running
from deploy.front_door import Door, FrontDoor, address, hosts, register
from deploy.serving import causes, kept
from deploy.status_page import StatusPage
from deploy.world.apiserver import ApiServer
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME, VALIDATING_CONFIGURATION
from tests.deploy.waiting import SECONDS
from webhooks.configuration import Service


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start failed roles again at once."""
    monkeypatch.setattr(serving, "PAUSE_SECONDS", (0.0, 0.0))


async def test_what_passes_is_tried_again(hurried: None) -> None:
    """An API server or NATS that is away ends a role for a moment, not the process; a group of such errors neither."""
    failures: list[Exception] = [
        ApiError(503, "ServiceUnavailable", "later"),
        Unavailable("no leader"),
        ExceptionGroup("both", [ApiError(0, "", "unreachable"), ConnectionResetError()]),
    ]

    async def role() -> None:
        if failures:
            raise failures.pop(0)
        raise BrokenLog(7, "enough")

    with pytest.raises(BrokenLog):
        await asyncio.wait_for(kept("role", role), SECONDS)
    assert not failures


@pytest.mark.parametrize("error", [BrokenLog(7, "rewritten"), ValueError("a bug")])
async def test_what_must_stop_the_program_stops_it(hurried: None, error: Exception) -> None:
    """A broken log is no weather, and a bug is none either, also beside errors that pass."""

    async def role() -> None:
        raise ExceptionGroup("of a task group", [Unavailable("no leader"), error])

    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(kept("role", role), SECONDS)
    assert error in causes(raised.value)


async def test_a_part_that_fails_ends_the_block_with_its_error() -> None:
    """What runs beside a block fails it, and is cancelled once when the block ends."""
    cancelled: list[str] = []

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cancelled.append("cleaned up")

    async def failing() -> None:
        raise BrokenLog(7, "rewritten")

    async def beside_a_failing_part() -> None:
        async with running(lasting()) as also:
            also(failing())
            await asyncio.Event().wait()

    async def failing_itself() -> None:
        async with running(lasting()):
            await asyncio.sleep(0)
            raise ValueError("of the block")

    with pytest.raises(BrokenLog):
        await beside_a_failing_part()
    with pytest.raises(ValueError, match="of the block"):
        await failing_itself()
    assert cancelled == ["cleaned up"] * 2


@pytest.fixture
async def page() -> AsyncIterator[tuple[StatusPage, list[str]]]:
    """A status page whose troubles a test sets."""
    registry, troubles = CollectorRegistry(), list[str]()
    Counter("drops", "Drops in the bucket.", registry=registry).inc(3)
    found = StatusPage(registry, lambda: troubles)
    async with found.serving("127.0.0.1", 0):
        yield found, troubles


async def test_the_status_page_tells_health_readiness_and_metrics(page: tuple[StatusPage, list[str]]) -> None:
    """Alive is alive; ready only without troubles, which are named; metrics as Prometheus reads them."""
    found, troubles = page

    async def get(path: str) -> tuple[int, str]:
        status, body = await asyncio.to_thread(fetch, found.port, path)
        return status, body.decode()

    assert await get("/healthz") == (200, "ok\n")
    assert await get("/readyz") == (200, "ok\n")
    troubles.append("nats: no connection")
    assert await get("/readyz") == (503, "nats: no connection\n")
    assert await get("/healthz") == (200, "ok\n")
    status, metrics = await get("/metrics?x=y")
    assert status == 200
    assert "drops_total 3.0" in metrics
    assert (await get("/else"))[0] == 404


async def test_the_status_page_bears_strangers(page: tuple[StatusPage, list[str]]) -> None:
    """Garbage, silence and a long line end their own connection; the next request is answered."""
    found, _ = page
    for sent in (b"", b"\x00\xff\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"x" * 100_000 + b"\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", found.port)
        writer.write(sent)
        writer.write_eof()
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b""
        writer.close()
        assert b" 200 " not in answer

    assert (await asyncio.to_thread(fetch, found.port, "/healthz"))[0] == 200


def test_where_the_api_server_calls() -> None:
    """An https URL or a Service, and nothing else; a certificate of our own carries the names it is called by."""
    assert address("https://192.0.2.7:8443") == "https://192.0.2.7:8443"
    assert address("gpubinder-system/webhooks:8443") == Service("gpubinder-system", "webhooks", 8443)
    assert address("a/b") == Service("a", "b")
    for wrong in ("http://host", "webhooks", "a/b/c", "a/b:https", "/b", "a/"):
        with pytest.raises(ValueError, match="NAMESPACE/SERVICE"):
            address(wrong)
    assert hosts("https://192.0.2.7:8443") == ("192.0.2.7",)
    assert hosts(address("a/b"))[0] == "b.a.svc"


async def test_webhooks_are_registered_and_updated() -> None:
    """Registered twice, one of each sort stands, of the newer authority; the same is not written again."""
    api = ApiServer(resources=(CONFIGURATION, VALIDATING_CONFIGURATION))
    at = "https://192.0.2.7:8443"

    async def registered(bundle: bytes) -> Any:  # noqa: ANN401 - any JSON
        await register(api, at, bundle, "home")
        return msgspec.json.decode(await api.get(CONFIGURATION, "", CONFIGURATION_NAME))

    one, again, other = [await registered(bundle) for bundle in (b"first", b"first", b"second")]

    assert one == again
    assert one["metadata"]["uid"] == other["metadata"]["uid"]
    bundles = {found["webhooks"][0]["clientConfig"]["caBundle"] for found in (one, other)}
    assert len(bundles) == 2


async def test_certificates_that_are_given_are_used(tmp_path: Path) -> None:
    """Given files are served as they are, and vouched for by their authority, or by themselves."""
    for name in ("crt", "key", "ca"):
        (tmp_path / name).write_bytes(name.encode())
    at = "https://192.0.2.7:8443"
    given = Door(tmp_path, tmp_path / "crt", tmp_path / "key", tmp_path / "ca", at)
    alone = Door(tmp_path, tmp_path / "crt", tmp_path / "key", at=at)

    assert given.files == (tmp_path / "crt", tmp_path / "key")
    for door, bundle in ((given, b"ca"), (alone, b"crt")):
        api = ApiServer(resources=(CONFIGURATION, VALIDATING_CONFIGURATION))
        front = FrontDoor(api, "gpubinder", door)
        await front.begin()
        await front.tell()
        found = msgspec.json.decode(await api.get(CONFIGURATION, "", CONFIGURATION_NAME))
        assert {one["clientConfig"]["caBundle"] for one in found["webhooks"]} == {b64encode(bundle).decode()}
