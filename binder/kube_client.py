"""The real API server: requests as bytes over kept-alive connections, watches without a line limit.

Bodies are neither parsed nor modelled; `binder.kube_wire` reads their envelopes. Measured: one Pod
event costs 1.2 ms of a blocked event loop as a model of `kubernetes_asyncio`, its envelope 5 us.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Self, TypeVar
from urllib.parse import urlencode

import aiohttp
from typing_extensions import override
from yarl import URL

from binder import kube_wire
from binder.kube import ApiError, Kube, ListPage, PatchKind, WatchEvent
from binder.kube_login import Login, LoginError
from schemas.kinds import Resource

READ_RETRIES = 4
RETRY_AFTER_MOST = 10.0
CONNECT_SECONDS = 5.0

_T = TypeVar("_T")


class KubeClient(Kube):
    """`Kube` over HTTP. Make one per process with `await KubeClient.connect(...)`, `await close()` it at the end.

    `connections` bounds the requests in flight; watches have connections of their own.
    `request_seconds` is the longest silence of a request. A watch that was silent for `idle_seconds` ends
    as if the server had ended it: the next one finds out whether the connection or the kind was dead
    (servers send a bookmark about each minute, but none for a kind that nobody writes).
    `field_manager` signs every write.

    A write that ends in code 0 may have landed: read before repeating it. Reads answered 429 are
    repeated, `Retry-After` honoured, at most `READ_RETRIES` times; writes never.
    """

    def __init__(
        self,
        login: Login,
        *,
        connections: int = 32,
        request_seconds: float = 30.0,
        idle_seconds: float = 90.0,
        field_manager: str = "gpubinder",
    ) -> None:
        self._login = login
        self._root = login.host
        self._request_seconds = request_seconds
        self._idle_seconds = idle_seconds
        self._signed = {"fieldManager": field_manager}
        # No total: it would count the wait for a free connection, and blame the server for our own queue.
        patience = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=request_seconds)
        self._session = self._open(connections, patience)
        self._watching = self._open(0, aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=None))

    @classmethod
    async def connect(
        cls,
        *,
        kubeconfig: str = "",
        context: str = "",
        connections: int = 32,
        request_seconds: float = 30.0,
        idle_seconds: float = 90.0,
    ) -> Self:
        """Log in as `Login.load` does and return a client; nothing is asked of the server yet. Raises `LoginError`."""
        login = await Login.load(kubeconfig, context)
        return cls(login, connections=connections, request_seconds=request_seconds, idle_seconds=idle_seconds)

    @override
    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        return await self._read(resource.path(namespace, name), {})

    @override
    async def list_page(
        self, resource: Resource, *, namespace: str = "", limit: int = 500, continue_token: str = ""
    ) -> ListPage:
        query = {"limit": str(limit)} | _labelled(resource)
        if continue_token:
            query["continue"] = continue_token
        return kube_wire.page(await self._read(resource.path(namespace), query))

    @override
    async def watch(
        self, resource: Resource, *, resource_version: str, timeout_seconds: int, namespace: str = ""
    ) -> AsyncIterator[WatchEvent]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        } | _labelled(resource)
        path = resource.path(namespace)
        response = await self._answered("GET", path, query, session=self._watching, retries=READ_RETRIES)
        try:
            async for line in self._lines(response, path):
                yield kube_wire.event(line, path)
        finally:
            response.close()

    @override
    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        query = {**self._signed, "dryRun": "All"} if dry_run else self._signed
        return await self._write("POST", resource.path(namespace), query, body)

    @override
    async def replace(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, subresource: str = ""
    ) -> bytes:
        return await self._write("PUT", resource.path(namespace, name, subresource), self._signed, body)

    @override
    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        kind: PatchKind,
        subresource: str = "",
    ) -> bytes:
        query = {**self._signed, "force": "true"} if kind is PatchKind.APPLY else self._signed
        return await self._write("PATCH", resource.path(namespace, name, subresource), query, body, kind.value)

    @override
    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        body = kube_wire.delete_options(uid, resource_version, grace_seconds)
        await self._write("DELETE", resource.path(namespace, name), {}, body)

    @override
    async def close(self) -> None:
        await self._session.close()
        await self._watching.close()

    def _open(self, connections: int, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections, ssl=self._login.tls or True, keepalive_timeout=75)
        # The proxy is the login's: with `trust_env` each request would look for one, and for .netrc, in a thread.
        jar = aiohttp.DummyCookieJar()
        return aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=jar)

    async def _read(self, path: str, query: Mapping[str, str]) -> bytes:
        response = await self._answered("GET", path, query, session=self._session, retries=READ_RETRIES)
        return await self._body(response, "GET", path)

    async def _write(
        self, method: str, path: str, query: Mapping[str, str], body: bytes, media: str = "application/json"
    ) -> bytes:
        response = await self._answered(method, path, query, session=self._session, body=body, media=media)
        return await self._body(response, method, path)

    async def _answered(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        session: aiohttp.ClientSession,
        body: bytes | None = None,
        media: str = "",
        retries: int = 0,
    ) -> aiohttp.ClientResponse:
        """Send one request and return its response once its head says 2xx; the caller reads or closes it."""
        renewed = False
        while True:
            response = await self._send(session, method, path, query, body, media)
            if response.status < 300:
                return response
            status, retry_after = response.status, response.headers.get("Retry-After", "")
            refusal = kube_wire.refusal(await self._body(response, method, path), status)
            if status == 401 and not renewed:
                renewed = True
                await self._signed_in(self._login.rejected())
            elif status == 429 and retries > 0:
                retries -= 1
                await asyncio.sleep(min(float(retry_after) if retry_after.isdigit() else 1.0, RETRY_AFTER_MOST))
            else:
                raise refusal

    async def _send(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        media: str,
    ) -> aiohttp.ClientResponse:
        url = URL(f"{self._root}{path}?{urlencode(query)}" if query else f"{self._root}{path}", encoded=True)
        headers = {"Accept": "application/json"}
        if media:
            headers["Content-Type"] = media
        if authorization := await self._signed_in(self._login.authorization()):
            headers["Authorization"] = authorization
        login = self._login
        # A watch may be silent later on, but not before its head has come.
        patience = self._request_seconds if session is self._watching else None
        try:
            async with asyncio.timeout(patience):
                return await session.request(
                    method, url, data=body, headers=headers, proxy=login.proxy, server_hostname=login.server_name
                )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(method, path, error) from error

    async def _signed_in(self, renewal: Awaitable[_T]) -> _T:
        """Await what the login renews. A file that is being replaced, or an identity provider away, is weather."""
        try:
            return await renewal
        except LoginError as error:
            raise ApiError(0, kube_wire.NOT_SIGNED_IN, str(error)) from error

    async def _body(self, response: aiohttp.ClientResponse, method: str, path: str) -> bytes:
        try:
            async with response:
                return await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(method, path, error) from error

    async def _lines(self, response: aiohttp.ClientResponse, path: str) -> AsyncIterator[bytes]:
        """Split the stream at newlines, however long a line is: `readline` of aiohttp gives up at its buffer's size."""
        splitter = kube_wire.LineSplitter()
        while chunk := await self._chunk(response, path):
            for line in splitter.feed(chunk):
                yield line
        if splitter.inside_a_line:
            message = f"the watch of {path} was cut within a line; watch again from its last one"
            raise ApiError(0, kube_wire.UNREACHABLE, message)

    async def _chunk(self, response: aiohttp.ClientResponse, path: str) -> bytes:
        try:
            # The timer spans the read alone: what the consumer does with a line is not the server's silence.
            async with asyncio.timeout(self._idle_seconds):
                return await response.content.readany()
        except TimeoutError:
            return b""
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable("GET", path, error) from error

    def _unreachable(self, method: str, path: str, error: Exception) -> ApiError:
        why = str(error) or type(error).__name__
        return ApiError(0, kube_wire.UNREACHABLE, f"{method} {path} at {self._root}: {why}; is the API server up?")


def _labelled(resource: Resource) -> dict[str, str]:
    return {"labelSelector": resource.labelled} if resource.labelled else {}
