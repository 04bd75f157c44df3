"""What ingest hears of the leader on DECISIONS: how far it has covered EVENTS, and that a new epoch began."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from binder.journal import Journal, Message
from ingest.credit import Credit
from schemas.events import ANNOUNCED_VERSIONS
from schemas.streams import DECISIONS

_EPOCH: Final = "epoch"
_FRAME: Final = "frame"

log = structlog.get_logger()


class _Record(msgspec.Struct, frozen=True):
    """The few fields of a DECISIONS record that matter here, whichever kind it is; entries are passed over."""

    type: str = ""
    epoch: int = 0
    covers_to: int = 0
    message_versions: tuple[int, ...] = ()


_decoder = msgspec.json.Decoder(_Record)


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
                record = _read(message)
                self._take(record)
                if record.type == _EPOCH:
                    self._on_epoch()

    async def _look_back(self, last: int) -> None:
        """Find the newest epoch and the newest frame at or before `last`."""
        epoch: _Record | None = None
        for sequence in range(last, 0, -1):
            record = await self._record(sequence)
            if record.type == _EPOCH and epoch is None:
                epoch = record
            if record.type == _FRAME:
                self._credit.cover(record.covers_to)
                epoch = epoch or await self._record(record.epoch)
                break
        if epoch is not None:
            self._take(epoch)

    async def _record(self, sequence: int) -> _Record:
        message = await self._journal.get(DECISIONS, sequence)
        return _Record() if message is None else _read(message)

    def _take(self, record: _Record) -> None:
        if record.type == _FRAME:
            self._credit.cover(record.covers_to)
        elif record.type == _EPOCH:
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


def _read(message: Message) -> _Record:
    return _decoder.decode(message.body)
