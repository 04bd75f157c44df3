"""Health, readiness and metrics of a process over plain HTTP: three pages, GET alone, one answer a connection."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from prometheus_client import CollectorRegistry, generate_latest

_REQUEST_SECONDS = 5.0
_TEXT = "text/plain; charset=utf-8"
METRICS = "text/plain; version=0.0.4; charset=utf-8"


class StatusPage:
    """`troubles` names what keeps the process from being ready, nothing where it is."""

    def __init__(self, registry: CollectorRegistry, troubles: Callable[[], list[str]]) -> None:
        self._registry = registry
        self._troubles = troubles
        self.port = 0

    @asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator["StatusPage"]:
        """Serve for the length of the block. Raises `OSError` where the port is taken."""
        server = await asyncio.start_server(self._answer, host, port)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                line = await reader.readline()
                while (await reader.readline()).strip():
                    pass
                status, media, body = self._page(line.decode("latin-1").split())
                head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {media}\r\n"
                writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, ValueError):
            writer.transport.abort()
        finally:
            writer.close()

    def _page(self, words: list[str]) -> tuple[HTTPStatus, str, bytes]:
        if len(words) < 2 or words[0] != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"GET /healthz, /readyz or /metrics\n"
        match words[1].partition("?")[0]:
            case "/healthz":
                return HTTPStatus.OK, _TEXT, b"ok\n"
            case "/readyz":
                troubles = self._troubles()
                told = "\n".join(troubles) or "ok"
                return HTTPStatus.SERVICE_UNAVAILABLE if troubles else HTTPStatus.OK, _TEXT, f"{told}\n".encode()
            case "/metrics":
                return HTTPStatus.OK, METRICS, generate_latest(self._registry)
            case _:
                return HTTPStatus.NOT_FOUND, _TEXT, b"GET /healthz, /readyz or /metrics\n"
