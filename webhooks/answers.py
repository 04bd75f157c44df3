"""The tail of the decision log: who waits for which answer, and answers that came just before they were awaited.

A webhook answers from what is durable, whoever leads: it follows DECISIONS from its end and hands each
answer to those who asked for it by the request's uid.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec
import structlog

from binder.journal import Gap, Journal, Message
from binder.newest import Head, newest
from schemas.answers import Answer, as_answer
from schemas.decisions import Rejected, StartHeld
from schemas.frames import Epoch, Frame, decode_record
from schemas.reasons import Hold
from schemas.streams import DECISIONS

REMEMBERED = 4096
"""Answers kept for a request that is put again: the API server repeats a call that broke off."""

FIRST_KINDS = ("request.vmi", "request.pod")
"""What leaders read that announce no kinds of messages."""

_log = structlog.get_logger()
_K = TypeVar("_K")
_V = TypeVar("_V")


class UnreadableLog(Exception):
    """The log holds a record that this version can't read: it must be upgraded, and stops here (T6)."""

    def __init__(self, sequence: int, problem: str) -> None:
        super().__init__(f"{DECISIONS} sequence {sequence} can't be read by this version ({problem}): upgrade it")


class Skipped(Exception):
    """The log covers the request and holds no answer to it: `why` is the binder's word on it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Waiter(msgspec.Struct, eq=False):
    """Somebody who asked: `sequence` is the request's place in EVENTS, 0 while that is not known."""

    request: str
    future: asyncio.Future[Answer]
    sequence: int = 0


class Answers:
    """Follows DECISIONS; `follow` runs for as long as answers are wanted."""

    def __init__(self, journal: Journal, *, pause_s: float = 0.2) -> None:
        self._journal, self._pause_s = journal, pause_s
        self._waiting: dict[str, list[Waiter]] = {}
        self._recent: OrderedDict[str, Answer] = OrderedDict()
        self._rejected: OrderedDict[int, str] = OrderedDict()
        self._covered = 0
        self._position = 0
        self._ready = asyncio.Event()
        self._holds: OrderedDict[str, Hold] = OrderedDict()
        self._kinds: tuple[str, ...] = ()
        self.versions: tuple[int, ...] = ()
        self.records_seen = 0

    async def ready(self) -> None:
        """Wait until the log is followed and an epoch has announced what it reads (T6)."""
        await self._ready.wait()

    def reads(self, kind: str) -> bool:
        """Say whether the leader reads this kind of message: an older one announces none, and knows the first ones."""
        return kind in self._kinds or (not self._kinds and kind in FIRST_KINDS)

    def hold(self, request: str) -> Hold | None:
        """Return what a start was last told to wait for, None where it was not."""
        return self._holds.get(request)

    @property
    def flowing(self) -> bool:
        """Whether the log is followed and somebody has announced to read what we publish."""
        return self._ready.is_set()

    @property
    def position(self) -> int:
        """The last DECISIONS message that was read."""
        return self._position

    async def follow(self) -> None:
        """Follow the log for ever; what stops it is logged and it starts again. Raises `UnreadableLog`."""
        while True:
            try:
                await self._follow()
            except UnreadableLog:
                raise
            except Gap as error:
                # What was decided in the gap is lost to us alone: who waits for it asks again.
                self._position = 0
                _log.warning("decisions.gap", error=str(error))
            except Exception as error:  # noqa: BLE001 - whatever ends the following, answers must flow again
                _log.warning("decisions.lost", error=f"{type(error).__name__}: {error}")
            self._ready.clear()
            await asyncio.sleep(self._pause_s)

    async def _follow(self) -> None:
        last = (await self._journal.info(DECISIONS)).last
        # A log that is shorter than what was read is another one, or lost its tail: go on from its end.
        if not 0 < self._position <= last:
            self._position = last
        await self._learn_epoch(self._position)
        async for run in self._journal.read(DECISIONS, self._position + 1):
            for message in run:
                await self._take(message)

    async def _learn_epoch(self, last: int) -> None:
        epoch = (await newest(self._journal, last, _read)).epoch
        if epoch.type:
            self._announce(epoch)

    def _announce(self, epoch: Epoch | Head) -> None:
        self.versions, self._kinds = epoch.message_versions, epoch.message_kinds
        self._ready.set()

    async def _take(self, message: Message) -> None:
        record = _read(message)
        self._position = message.sequence
        self.records_seen += 1
        if isinstance(record, Epoch):
            self._announce(record)
        if isinstance(record, Frame):
            for entry in record.entries:
                for decision in entry.decisions:
                    if isinstance(decision, Rejected):
                        _remember(self._rejected, entry.cause, decision.why)
                    elif isinstance(decision, StartHeld):
                        _remember(self._holds, decision.request, decision.reason)
                    elif answer := as_answer(decision):
                        self._settle(answer)
            self._cover(record.covers_to)

    def _settle(self, answer: Answer) -> None:
        _remember(self._recent, answer.request, answer)
        for waiter in self._waiting.get(answer.request, ()):
            if not waiter.future.done():
                waiter.future.set_result(answer)

    def _cover(self, sequence: int) -> None:
        self._covered = max(self._covered, sequence)
        for waiters in list(self._waiting.values()):
            for waiter in waiters:
                self._give_up(waiter)

    def _give_up(self, waiter: Waiter) -> None:
        if waiter.request in self._holds:
            # It waits where the binder keeps it, and may be answered yet.
            return
        if 0 < waiter.sequence <= self._covered and not waiter.future.done():
            waiter.future.set_exception(Skipped(self._rejected.get(waiter.sequence, "it was skipped")))

    @contextmanager
    def awaited(self, request: str) -> Iterator[Waiter]:
        """Wait for the answer to a request: open this before the request is published, so that none is missed."""
        waiter = Waiter(request, asyncio.get_running_loop().create_future())
        if request in self._recent:
            waiter.future.set_result(self._recent[request])
        self._waiting.setdefault(request, []).append(waiter)
        try:
            yield waiter
        finally:
            if not waiter.future.cancel() and not waiter.future.cancelled():
                # Looked at, so that one nobody waited for is not reported as forgotten.
                waiter.future.exception()
            self._waiting[request].remove(waiter)
            if not self._waiting[request]:
                del self._waiting[request]

    def published(self, waiter: Waiter, sequence: int) -> None:
        """Note where the request stands in EVENTS: once the log covers that and has no answer, there is none."""
        waiter.sequence = sequence
        self._give_up(waiter)


def _read(message: Message) -> Frame | Epoch | object:
    try:
        return decode_record(message.body)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise UnreadableLog(message.sequence, str(error)) from None


def _remember(kept: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    kept[key] = value
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)
