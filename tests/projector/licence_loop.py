"""Ingest, heart and projector around an API server, so that Secrets are copied from end to end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from binder.book import Book
from binder.evolve import evolve_epoch
from binder.kube import Kube
from binder.memory_journal import MemoryJournal
from binder.state import empty_state
from binder.step import step
from ingest.service import Ingest
from projector.service import Projector
from schemas.frames import Epoch, Frame, encode_record
from schemas.objects import Stamp
from schemas.streams import DECISIONS, DECISIONS_EPOCH, DECISIONS_FRAME, EVENTS


class Loop:
    """`book`: what is known. `bodies()`: all that ever was on the streams."""

    def __init__(self, kube: Kube, home: str) -> None:
        self.journal = MemoryJournal()
        self.book = Book(empty_state())
        self._ingest = Ingest(kube, self.journal, home)
        self.projector = Projector(kube, self.journal, instance="test", home=home)

    async def run(self) -> None:
        """Run until cancelled."""
        epoch = Epoch("log", 1, "holder", "n", "1", 1, 0, (1,))
        sequence = await self.journal.append(DECISIONS, DECISIONS_EPOCH, encode_record(epoch), message_id="")
        evolve_epoch(self.book, sequence, epoch)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ingest.run())
            tasks.create_task(self.projector.work())
            tasks.create_task(self._decide(sequence))

    async def _decide(self, epoch: int) -> None:
        async for run in self.journal.read(EVENTS, 1):
            for message in run:
                decided = step(self.book, message.sequence, message.stamp_ns, message.body)
                stamped = [(Stamp(1, message.sequence, place), one) for place, one in enumerate(decided)]
                self.projector.take(self.book.state, (), stamped)
            frame = Frame("log", 1, epoch, 1, "1", "", run[0].sequence, run[-1].sequence, "", "")
            await self.journal.append(DECISIONS, DECISIONS_FRAME, encode_record(frame), message_id="")

    def bodies(self) -> bytes:
        """Return everything that was published."""
        return b"\n".join(message.body for message in self.journal.streams[EVENTS].messages)


@asynccontextmanager
async def looping(kube: Kube, home: str) -> AsyncIterator[Loop]:
    """Run a loop for the length of a block; `home` holds settings and the key."""
    loop = Loop(kube, home)
    running = asyncio.create_task(loop.run())
    try:
        yield loop
        assert not running.done(), running.exception()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
