"""A service in front of replicas: each connection goes to the next one, as kube-proxy would send it."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

CHUNK = 64 * 1024


@asynccontextmanager
async def balanced(port: int, replicas: Sequence[int]) -> AsyncIterator[list[int]]:
    """Listen on loopback and hand bytes on; yields how many connections each replica was given so far."""
    given, turns = [0] * len(replicas), itertools.cycle(range(len(replicas)))

    serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving[task] = writer
        try:
            await hand_on(reader, writer)
        finally:
            await _closed(writer)
            del serving[task]

    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        turn = next(turns)
        try:
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", replicas[turn])
        except OSError:
            return
        given[turn] += 1
        try:
            await asyncio.gather(_pump(reader, back_writer), _pump(back_reader, writer))
        finally:
            await _closed(back_writer)

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield given
    finally:
        server.close()
        # A closed connection ends its readers by itself.
        for writer in serving.values():
            writer.close()
        await asyncio.gather(*serving)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
