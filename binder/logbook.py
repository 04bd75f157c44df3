"""The DECISIONS log, read with every check and written by one leader at a time (T1 to T3).

To lead: `open_epoch` appends the epoch's record without a condition, a `LogReader` follows the log up
to it, and a `LogWriter` goes on from that reader's tip:

    epoch = await open_epoch(journal, record)
    async for said in reader.follow(until=epoch): ...
    writer = LogWriter(journal, reader.tip, epoch)

What a writer was refused or left unclear it settles by reading: the log itself says whose message
stands at the next sequence.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
import structlog

from binder.journal import MESSAGE_ID, Gap, Journal, Message, Unavailable, Unclear, WrongLastSequence
from binder.tip import START, BrokenLog, Tip, advance
from schemas.frames import Entry, Epoch, Frame, Genesis, Record, Void, encode_record
from schemas.streams import DECISIONS, DECISIONS_EPOCH, DECISIONS_FRAME, DECISIONS_GENESIS, DECISIONS_VOID

CONFIRM_SECONDS = 15.0
"""How long the log must stay shorter than we know it before that counts as loss: a server cut off
from its cluster answers from an old tail until it notices."""

_RETRY_SECONDS = (0.02, 0.5)

_log = structlog.get_logger(__name__)


class DataLoss(Exception):
    """The log is shorter than what it acknowledged, or other than what was read: stop, loudly (T3, T4)."""


class Fenced(Exception):
    """Another epoch's record stands where we wanted to write; `message` is that record.

    Whoever still holds the lease may open a new epoch; everyone else stops (T2).
    """

    def __init__(self, message: Message, record: Record) -> None:
        holder = f" of {record.holder}" if isinstance(record, Epoch) else ""
        super().__init__(f"DECISIONS message {message.sequence} is a foreign {type(record).__name__.lower()}{holder}")
        self.message = message
        self.record = record


class Said(msgspec.Struct, frozen=True):
    """One verified message of the log, its record, and the log's tip after it."""

    message: Message
    record: Record
    tip: Tip


class Draft(msgspec.Struct, frozen=True):
    """A frame as the binder means it; the writer adds log, generation, epoch and the hash before it."""

    rules: int
    program: str
    settings: str
    covers_from: int
    covers_to: int
    events_digest: str
    entries: tuple[Entry, ...] = ()


class LogReader:
    """Follows the log from the start, or from a tip known before; `tip` is where it stands."""

    def __init__(self, journal: Journal, tip: Tip = START, *, confirm_seconds: float = CONFIRM_SECONDS) -> None:
        self._journal = journal
        self._confirm = confirm_seconds
        self._proven = tip.sequence == 0
        self.tip = tip

    async def follow(self, *, until: int | None = None) -> AsyncIterator[Said]:
        """Yield what the log says, in order, for ever or through sequence `until`.

        Raises `BrokenLog`, `DataLoss`, `LookupError` (no such stream).
        """
        if not self._proven:
            # A new history as long as ours would otherwise go unnoticed until its next frame.
            await prove(self._journal, self.tip, self._confirm)
            self._proven = True
        if until is not None and until <= self.tip.sequence:
            return
        try:
            async for run in self._journal.read(DECISIONS, self.tip.sequence + 1, until=until):
                for message in run:
                    self.tip, record = advance(self.tip, message)
                    yield Said(message, record, self.tip)
        except Gap as gap:
            raise DataLoss(str(gap)) from gap


async def prove(journal: Journal, tip: Tip, confirm_seconds: float = CONFIRM_SECONDS) -> None:
    """Wait until the log shows the message the tip stands on. Raises `DataLoss` when it goes on not to."""
    since: float | None = None
    while tip.sequence > 0:
        try:
            stored = await journal.get(DECISIONS, tip.sequence)
        except (Unavailable, Unclear):
            await asyncio.sleep(_RETRY_SECONDS[1])
            continue
        if stored is not None and tip.holds(stored):
            return
        now = asyncio.get_running_loop().time()
        since = now if since is None else since
        if now - since >= confirm_seconds:
            what = "is gone" if stored is None else "is not the one that was there"
            raise DataLoss(
                f"DECISIONS message {tip.sequence} {what}: the server lost or replaced acknowledged messages; "
                f"restore the store from the archive, or `gpubinder adopt` a new generation"
            )
        await asyncio.sleep(min(_RETRY_SECONDS[1], confirm_seconds / 4))


async def open_epoch(journal: Journal, record: Epoch) -> int:
    """Append an epoch's record without a condition (T2) and return its sequence, which is its number.

    Tried until it is clear; a late copy of it fences us like any other epoch's.
    """
    name = f"{record.log_id}/{record.generation}/epoch/{record.nonce}"
    return await _insist(journal, DECISIONS_EPOCH, encode_record(record), name)


async def append_void(journal: Journal, record: Void) -> int:
    """Append an operator's skip (T6) and return its sequence. It fences nobody."""
    name = f"{record.log_id}/{record.generation}/void/{record.sequence}"
    return await _insist(journal, DECISIONS_VOID, encode_record(record), name)


async def append_genesis(journal: Journal, record: Genesis, tip: Tip = START) -> int:
    """Begin a generation after `tip` (T4) and return the record's sequence. Raises `Fenced`."""
    name = f"{record.log_id}/{record.generation}/genesis"
    try:
        return await _insist(journal, DECISIONS_GENESIS, encode_record(record), name, tip.sequence)
    except WrongLastSequence:
        stored = await journal.get(DECISIONS, tip.sequence + 1)
        if stored is None:
            raise
        if _is(stored, name, encode_record(record)):
            return stored.sequence
        raise Fenced(stored, advance(tip, stored)[1]) from None


async def _insist(journal: Journal, subject: str, body: bytes, name: str, expected_last: int | None = None) -> int:
    """Append, the same publish again while the outcome is unclear or refused for now."""
    pause, most = _RETRY_SECONDS
    while True:
        try:
            return await journal.append(DECISIONS, subject, body, message_id=name, expected_last=expected_last)
        except (Unclear, Unavailable) as trouble:
            _log.warning("append tried again", subject=subject, why=str(trouble))
        await asyncio.sleep(pause)
        pause = min(2 * pause, most)


def _is(stored: Message, name: str, body: bytes) -> bool:
    return stored.headers.get(MESSAGE_ID) == name and stored.body == body


class LogWriter:
    """Appends an epoch's frames, each exactly once, until another epoch begins.

    `tip` is where the log stands for this writer. One append at a time. An append that was cancelled
    may still land, so the writer takes no other: open a new epoch.
    """

    def __init__(
        self,
        journal: Journal,
        tip: Tip,
        epoch: int,
        *,
        confirm_seconds: float = CONFIRM_SECONDS,
        heed: Callable[[Void], None] = lambda _void: None,
    ) -> None:
        """`heed` is told an operator's skip before a frame is built again behind it; what it raises, `append` does."""
        if tip.epoch != epoch or epoch == 0:
            raise ValueError(f"the log's newest epoch is {tip.epoch}, not {epoch}: read on, open a new epoch")
        self._journal = journal
        self._epoch = epoch
        self._confirm = confirm_seconds
        self._heed = heed
        self._busy = False
        self.tip = tip

    async def append(self, draft: Draft) -> Said:
        """Append a frame and return it as it was stored.

        Tried until it is clear (T3), so it lasts as long as the server is away: cancel it when the
        lease is lost. Raises `Fenced`, `DataLoss`, `BrokenLog`, `ValueError` (too big, T5).
        """
        if self._busy:
            raise RuntimeError("an earlier append of this epoch was abandoned or still runs: open a new epoch")
        self._busy = True
        said = None
        while said is None:
            body, name = self._frame(draft)
            try:
                await self._publish(body, name)
            except ValueError:
                self._busy = False  # Nothing was sent.
                raise
            said = await self._settle(body, name)
        self._busy = False
        return said

    def _frame(self, draft: Draft) -> tuple[bytes, str]:
        """Return body and message id: the id names the place too, so a rebuilt frame is another message."""
        tip = self.tip
        frame = Frame(
            log_id=tip.log_id,
            generation=tip.generation,
            epoch=self._epoch,
            previous=tip.hash.hex(),
            **msgspec.structs.asdict(draft),
        )
        return encode_record(frame), f"{tip.log_id}/{tip.generation}/{self._epoch}/{tip.sequence}"

    async def _publish(self, body: bytes, name: str) -> None:
        """Send the same publish until the server acknowledges it or says that the log went on."""
        pause, most = _RETRY_SECONDS
        while True:
            try:
                await self._journal.append(
                    DECISIONS, DECISIONS_FRAME, body, message_id=name, expected_last=self.tip.sequence
                )
                return
            except WrongLastSequence:
                return
            except (Unclear, Unavailable) as trouble:
                _log.warning("frame tried again", after=self.tip.sequence, why=str(trouble))
            await asyncio.sleep(pause)
            pause = min(2 * pause, most)
            # After trouble the server may have come back with less than it acknowledged.
            await prove(self._journal, self.tip, self._confirm)

    async def _settle(self, body: bytes, name: str) -> Said | None:
        """Read what stands after our tip: ours, a skip to chain over, nothing (None: try again), or a fence."""
        while True:
            stored = await self._next()
            if stored is None:
                # Nothing new, or less than known.
                await prove(self._journal, self.tip, self._confirm)
                await asyncio.sleep(_RETRY_SECONDS[0])
                return None
            tip, record = advance(self.tip, stored)
            if _is(stored, name, body):
                self.tip = tip
                return Said(stored, record, tip)
            if isinstance(record, Void):
                # The frame must be built again on the hash after it.
                self._heed(record)
                self.tip = tip
                return None
            if isinstance(record, Frame):
                raise BrokenLog(stored.sequence, f"a frame of our epoch {self._epoch} that we did not write")
            raise Fenced(stored, record)

    async def _next(self) -> Message | None:
        while True:
            try:
                return await self._journal.get(DECISIONS, self.tip.sequence + 1)
            except (Unclear, Unavailable) as trouble:
                _log.warning("log not readable", after=self.tip.sequence, why=str(trouble))
                await asyncio.sleep(_RETRY_SECONDS[1])
