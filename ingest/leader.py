"""What ingest hears of the leader on DECISIONS: how far it has covered EVENTS, and that a new epoch began."""

import asyncio
from collections.abc import Callable

import structlog

from binder.journal import Journal
from binder.newest import EPOCH, FRAME, Head, head_of, newest
from ingest.credit import Credit
from schemas.events import ANNOUNCED_VERSIONS
from schemas.streams import DECISIONS

log = structlog.get_logger()


class Leader:
    """Follows DECISIONS from its tail. `on_epoch` is called at each epoch record that comes while following."""

    def __init__(self, journal: Journal, credit: Credit, on_epoch: Callable[[], None]) -> None:
        self._journal = journal
        self._credit = credit
        self._on_epoch = on_epoch
        self._reads_ours = asyncio.Event()

    async def reads_ours(self) -> None:
        """Wait until the current epoch announces a message version that this program writes (T6)."""
        await self._reads_ours.wait()

    async def follow(self) -> None:
        """Read for ever. Raises what `Journal.read` raises; calling it again goes on from the tail."""
        last = (await self._journal.info(DECISIONS)).last
        await self._look_back(last)
        async for run in self._journal.read(DECISIONS, last + 1):
            for message in run:
                record = head_of(message)
                self._take(record)
                if record.type == EPOCH:
                    self._on_epoch()

    async def _look_back(self, last: int) -> None:
        """Take in the newest epoch and the newest frame at or before `last`."""
        found = await newest(self._journal, last)
        for record in (found.frame, found.epoch):
            self._take(record)

    def _take(self, record: Head) -> None:
        if record.type == FRAME:
            self._credit.cover(record.covers_to)
        elif record.type == EPOCH:
            if not set(ANNOUNCED_VERSIONS).isdisjoint(record.message_versions):
                self._reads_ours.set()
                return
            self._reads_ours.clear()
            log.error(
                "the leader does not read the messages this program writes; "
                "let all roles run the same version, or upgrade the binder first",
                message_versions=list(ANNOUNCED_VERSIONS),
                leader_reads=list(record.message_versions),
            )
