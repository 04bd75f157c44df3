"""A TCP wire that can be cut: bytes pass both ways until then, and nobody is told why they don't."""

import asyncio
from types import TracebackType
from typing import Self

_CHUNK = 65536


class Wire:
    """`async with Wire(port) as wire:` clients connect to `wire.port`. Between `cut` and `mend` nothing passes.

    Connections stay open meanwhile, as beyond a network that swallows packets; what was sent arrives afterwards.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._passing = asyncio.Event()
        self._passing.set()

    @property
    def port(self) -> int:
        """Where clients connect, on 127.0.0.1."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        """Let nothing pass from now on."""
        self._passing.clear()

    def mend(self) -> None:
        """Let pass what was sent meanwhile, and go on."""
        self._passing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._passing.wait()
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        pumps = [asyncio.create_task(self._pump(*pair)) for pair in ((reader, up_writer), (up_reader, writer))]
        self._pumps.update(pumps)
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            self._pumps.difference_update(pumps)
            for end in (writer, up_writer):
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                await self._passing.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            return

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.mend()
        for pump in tuple(self._pumps):
            pump.cancel()
        await self._server.wait_closed()
