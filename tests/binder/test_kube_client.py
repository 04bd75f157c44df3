"""The real Kubernetes client against a server that misbehaves as real ones do."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from binder.kube import ApiError, Cause, PatchKind, WatchEvent
from binder.kube_client import READ_RETRIES, KubeClient
from schemas.kinds import CONFIGMAP, GPU_CLAIM
from tests.binder.waiting import SECONDS
from tests.cluster.users import write_kubeconfig

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
SECRET = "c2VjcmV0"


@asynccontextmanager
async def talking(tmp_path: Path, answer: Answer, **options: float) -> AsyncIterator[KubeClient]:
    """A client of a server that answers everything the same way."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        kubeconfig = tmp_path / "kubeconfig"
        write_kubeconfig(kubeconfig, server=str(server.make_url("")), authority=b"", user="me", token="t0")
        client = await KubeClient.connect(kubeconfig=str(kubeconfig), **options)  # type: ignore[arg-type]  # all options of the tests are seconds, one is a count
        try:
            yield client
        finally:
            await client.close()


def status(code: int, reason: str, message: str = "", **details: object) -> web.Response:
    """A Status as the API server sends it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return web.Response(status=code, body=msgspec.json.encode(body), content_type="application/json")


def streaming(*chunks: bytes, silent: bool = False, cut: bool = False) -> Answer:
    """A watch that sends these chunks, and then ends, stays silent, or is cut."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if silent:
            await asyncio.Event().wait()
        if cut and request.transport is not None:
            request.transport.abort()
        return response

    return answer


async def watched(client: KubeClient) -> list[WatchEvent]:
    """Return what a watch says up to its end."""
    events = client.watch(CONFIGMAP, resource_version="1", timeout_seconds=10, namespace="default")
    return [event async for event in events]


@pytest.mark.parametrize(("code", "word"), [(410, "Expired"), (500, "InternalError")])
async def test_an_error_line_is_raised(tmp_path: Path, code: int, word: str) -> None:
    """An ERROR line ends a watch as an error, after what came before it; 410 is always Expired (C22)."""
    error = {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": "Gone" if code == 410 else word}}
    lines = b'{"type":"ADDED","object":{"n":1}}\n' + msgspec.json.encode(error) + b"\n"
    async with talking(tmp_path, streaming(lines)) as client:
        events = aiter(client.watch(CONFIGMAP, resource_version="1", timeout_seconds=10))
        assert (await anext(events)).type == "ADDED"
        with pytest.raises(ApiError) as caught:
            await anext(events)
    assert (caught.value.code, caught.value.reason) == (code, word)


async def test_an_http_410_is_expired(tmp_path: Path) -> None:
    """A watch that is refused with HTTP 410 is Expired too, whatever word came with it."""

    async def gone(_request: web.Request) -> web.StreamResponse:
        return status(410, "Gone")

    async with talking(tmp_path, gone) as client:
        with pytest.raises(ApiError) as caught:
            await watched(client)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


async def test_a_line_may_be_of_any_length(tmp_path: Path) -> None:
    """Lines of megabytes, cut anywhere by the network, come out whole and in order."""
    lines = [
        msgspec.json.encode({"type": "ADDED", "object": {"size": size, "pad": "x" * size}})
        for size in (3_000_000, 1, 9)
    ]
    whole = b"\n".join(lines) + b"\n"
    chunks = [whole[at : at + 700_001] for at in range(0, len(whole), 700_001)]
    async with talking(tmp_path, streaming(*chunks)) as client:
        events = await watched(client)
    assert [len(msgspec.json.decode(event.object)["pad"]) for event in events] == [3_000_000, 1, 9]


@pytest.mark.parametrize("tail", [b'{"type":"ADD', b"<html>\n"])
async def test_a_torn_line_is_no_event(tmp_path: Path, tail: bytes) -> None:
    """A stream that ends within a line, or says something else, is an unreachable server, not an object."""
    async with talking(tmp_path, streaming(tail)) as client:
        with pytest.raises(ApiError) as caught:
            await watched(client)
    assert (caught.value.code, caught.value.reason) == (0, "Unreachable")


async def test_a_cut_watch_is_unreachable(tmp_path: Path) -> None:
    """A connection that breaks in the middle of a watch is an error of code 0."""
    async with talking(tmp_path, streaming(b"\n", cut=True)) as client:
        with pytest.raises(ApiError) as caught:
            await watched(client)
    assert caught.value.code == 0


async def test_a_silent_watch_ends(tmp_path: Path) -> None:
    """A watch that says nothing for `idle_seconds` ends, as if the server had ended it."""
    line = b'{"type":"BOOKMARK","object":{}}\n'
    async with talking(tmp_path, streaming(line, silent=True), idle_seconds=2.0) as client:
        async with asyncio.timeout(SECONDS):
            assert [event.type for event in await watched(client)] == ["BOOKMARK"]


async def test_a_server_that_never_answers_is_unreachable(tmp_path: Path) -> None:
    """Neither a request nor the head of a watch waits longer than `request_seconds`."""

    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    async with talking(tmp_path, never, request_seconds=0.05) as client:
        for ask in (client.get(CONFIGMAP, "default", "a"), watched(client)):
            with pytest.raises(ApiError) as caught:
                await ask
            assert (caught.value.code, caught.value.reason) == (0, "Unreachable")


async def test_nobody_listens(tmp_path: Path) -> None:
    """A refused connection is an error of code 0 that names the request and the server."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"
        write_kubeconfig(tmp_path / "k", server=server, authority=b"", user="me", token="t")
        client = await KubeClient.connect(kubeconfig=str(tmp_path / "k"))
        with pytest.raises(ApiError) as caught:
            await client.create(CONFIGMAP, "default", b"{}")
        await client.close()
    assert (caught.value.code, caught.value.reason) == (0, "Unreachable")
    assert f"POST /api/v1/namespaces/default/configmaps at {server}" in caught.value.message


class Busy:
    """Answers 429 a number of times, and then with an empty object."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked = 0

    async def answer(self, _request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        self.asked += 1
        if self.asked <= self.left:
            refusal = status(429, "TooManyRequests")
            refusal.headers["Retry-After"] = "0"
            return refusal
        return web.Response(body=b"{}")


async def test_reads_wait_out_a_busy_server(tmp_path: Path) -> None:
    """A read that is answered 429 is asked again after `Retry-After`, a bounded number of times; a write isn't."""
    busy = Busy(READ_RETRIES)
    async with talking(tmp_path, busy.answer) as client:
        assert await client.get(CONFIGMAP, "default", "a") == b"{}"
    assert busy.asked == READ_RETRIES + 1
    busy = Busy(10**6)
    async with talking(tmp_path, busy.answer) as client:
        for ask, times in ((client.get(CONFIGMAP, "default", "a"), READ_RETRIES + 1), (_patch(client), 1)):
            busy.asked = 0
            with pytest.raises(ApiError) as caught:
                await ask
            assert (caught.value.code, busy.asked) == (429, times)


async def _patch(client: KubeClient) -> bytes:
    return await client.patch(CONFIGMAP, "default", "a", b"{}", kind=PatchKind.MERGE)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            status(
                422,
                "Invalid",
                f'Secret "a" is invalid: data.k: Invalid value: "{SECRET}": no',
                causes=[{"field": "data.k", "reason": "FieldValueInvalid", "message": f"Invalid value: {SECRET}"}],
            ),
            (422, "Invalid", 'Secret "a" is invalid: data.k: FieldValueInvalid'),
        ),
        (
            status(400, "BadRequest", f'unrecognized: Object \'Kind\' is missing in {{"data":"{SECRET}"}}'),
            (400, "BadRequest", "unrecognized: Object 'Kind' is missing in "),
        ),
        (
            web.Response(status=502, text=f"<html>{SECRET}</html>"),
            (502, "Unknown", "the answer is no Status; is this an API server, and is the resource served?"),
        ),
    ],
    ids=["invalid", "malformed", "proxy"],
)
async def test_values_stay_out_of_errors(tmp_path: Path, answer: web.Response, expected: tuple[int, str, str]) -> None:
    """A refusal names the field and the reason; what was sent, a Secret perhaps, is not repeated (T16)."""

    async def refuse(_request: web.Request) -> web.StreamResponse:
        return answer

    async with talking(tmp_path, refuse) as client:
        with pytest.raises(ApiError) as caught:
            await client.create(CONFIGMAP, "default", b"{}")
    error = caught.value
    assert (error.code, error.reason, error.message) == expected
    assert SECRET not in str(error)
    assert error.causes == ((Cause("data.k", "FieldValueInvalid"),) if error.code == 422 else ())


class Notebook:
    """Notes what was asked: method, path, query, media type and body."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, str], str, bytes]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Note one request."""
        body = await request.read()
        self.lines.append((request.method, request.path, dict(request.query), request.content_type, body))
        return web.Response(body=b'{"metadata":{}}')


async def test_what_is_sent(tmp_path: Path) -> None:
    """Paths, queries, media types and preconditions are those of the Kubernetes API; every write is signed."""
    note = Notebook()
    claim = (GPU_CLAIM, "tenant-a", "mine")
    root = "/apis/cozystack.io/v1alpha1/namespaces/tenant-a/gpuclaims"
    signed = {"fieldManager": "gpubinder"}
    async with talking(tmp_path, note.answer) as client:
        await client.create(GPU_CLAIM, "tenant-a", b"{1}", dry_run=True)
        await client.replace(*claim, b"{2}", subresource="status")
        await client.patch(*claim, b"[3]", kind=PatchKind.JSON)
        await client.patch(*claim, b"{4}", kind=PatchKind.APPLY)
        await client.delete(*claim, uid="u", resource_version="7", grace_seconds=0)
        await client.list_page(GPU_CLAIM, limit=5, continue_token="a=/+b")
    assert note.lines[:4] == [
        ("POST", root, {**signed, "dryRun": "All"}, "application/json", b"{1}"),
        ("PUT", f"{root}/mine/status", signed, "application/json", b"{2}"),
        ("PATCH", f"{root}/mine", signed, "application/json-patch+json", b"[3]"),
        ("PATCH", f"{root}/mine", {**signed, "force": "true"}, "application/apply-patch+yaml", b"{4}"),
    ]
    method, path, _, _, body = note.lines[4]
    assert (method, path) == ("DELETE", f"{root}/mine")
    options = msgspec.json.decode(body)
    assert (options["preconditions"], options["gracePeriodSeconds"]) == ({"uid": "u", "resourceVersion": "7"}, 0)
    assert note.lines[5][1:3] == ("/apis/cozystack.io/v1alpha1/gpuclaims", {"limit": "5", "continue": "a=/+b"})


async def test_connections_are_bounded_and_watches_do_not_count(tmp_path: Path) -> None:
    """No more requests are under way than `connections`, however many watches are open."""
    under_way, most, watching, four = 0, 0, asyncio.Event(), asyncio.Barrier(4)

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal under_way, most
        if "watch" in request.query:
            watching.set()
            return await streaming(silent=True)(request)
        under_way += 1
        most = max(most, under_way)
        await four.wait()
        under_way -= 1
        return web.Response(body=b"{}")

    async with talking(tmp_path, answer, connections=4) as client:
        watches = [asyncio.create_task(watched(client)) for _ in range(6)]
        await asyncio.wait_for(watching.wait(), SECONDS)
        await asyncio.gather(*(client.get(CONFIGMAP, "default", "a") for _ in range(40)))
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
    assert most == 4
