"""A TCP proxy between a client and nats-server that understands the protocol's frames.

It loses answers, holds publishes back and lets them go later, and speaks in the server's name: what
a network does to a writer, at the moment a test says.
"""

import asyncio
import json
from collections.abc import Callable
from types import TracebackType
from typing import Self

_WITH_PAYLOAD = frozenset({b"PUB", b"HPUB", b"MSG", b"HMSG"})


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes, bytes]:
    """Read one frame: (verb, subject or rest of the line, whole frame). Raises at the end of the stream."""
    line = await reader.readuntil(b"\r\n")
    words = line.split()
    verb = words[0].upper() if words else b""
    if verb not in _WITH_PAYLOAD:
        return verb, line[len(verb) :].strip(), line
    payload = await reader.readexactly(int(words[-1]) + 2)
    return verb, words[1], line + payload


class NatsProxy:
    """`async with NatsProxy(port) as proxy:` clients connect to `proxy.url`.

    `loses(frame)` is asked for each message from the server, `holds(subject, frame)` for each publish
    from a client; held publishes wait for `release`. Between `cut` and `mend` nothing passes, and nobody is told.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._clients: list[asyncio.StreamWriter] = []
        self._upstream: asyncio.StreamWriter | None = None
        self.loses: Callable[[bytes], bool] = lambda _frame: False
        self.holds: Callable[[bytes, bytes], bool] = lambda _subject, _frame: False
        self._passing = asyncio.Event()
        self._passing.set()
        self.lost = 0
        self.held: list[bytes] = []

    @property
    def url(self) -> str:
        """Where clients connect."""
        assert self._server is not None
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Let nothing pass from now on: connections stay open, as beyond a network that swallows packets."""
        self._passing.clear()

    def mend(self) -> None:
        """Let pass what was sent meanwhile, and go on."""
        self._passing.set()

    async def release(self) -> None:
        """Send what was held, over the newest connection to the server."""
        assert self._upstream is not None
        held, self.held = self.held, []
        self._upstream.writelines(held)
        await self._upstream.drain()

    async def say(self, line: bytes) -> None:
        """Send a line to the newest client in the server's name."""
        self._clients[-1].write(line)
        await self._clients[-1].drain()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        self._upstream = up_writer
        self._clients.append(writer)
        pumps = [
            asyncio.create_task(self._to_server(reader, up_writer)),
            asyncio.create_task(self._to_client(up_reader, writer)),
        ]
        self._pumps.update(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        self._pumps.difference_update(pumps)
        writer.close()
        up_writer.close()

    async def _to_server(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                verb, subject, frame = await _frame(reader)
                if verb in {b"PUB", b"HPUB"} and self.holds(subject, frame):
                    self.held.append(frame)
                    continue
                await self._passing.wait()
                writer.write(frame)
                await writer.drain()
            except (asyncio.IncompleteReadError, OSError):
                return

    async def _to_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                verb, rest, frame = await _frame(reader)
                if verb == b"INFO":
                    # A client that hears of the other members would go round us.
                    told = {key: value for key, value in json.loads(rest).items() if key != "connect_urls"}
                    frame = b"INFO " + json.dumps(told).encode() + b"\r\n"
                elif verb in {b"MSG", b"HMSG"} and self.loses(frame):
                    self.lost += 1
                    continue
                await self._passing.wait()
                writer.write(frame)
                await writer.drain()
            except (asyncio.IncompleteReadError, OSError):
                return

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=8 * 1024 * 1024)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for pump in tuple(self._pumps):
            pump.cancel()
        await self._server.wait_closed()
