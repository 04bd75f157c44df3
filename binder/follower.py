"""Follow both streams and keep the state: what standby, projector, replay and audit have in common.

A frame says which EVENTS it covers. They are read, held against the frame's digest and folded together
with the frame's decisions: logged decisions are applied, never decided again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from binder.book import Book
from binder.evolve import SET_DECISIONS, evolve_epoch
from binder.evolve_adoption import begin
from binder.journal import Gap, Journal, Message, Unavailable, Unclear
from binder.logbook import CONFIRM_SECONDS, DataLoss, LogReader, Said
from binder.state import State, empty_state
from binder.step import apply
from binder.tip import START, BrokenLog, Tip, canonical
from schemas.chain import EventsDigest
from schemas.decisions import Decision
from schemas.frames import Entry, Epoch, Frame, Genesis, Void, decode_record
from schemas.objects import Stamp
from schemas.streams import DECISIONS, DECISIONS_GENESIS, EVENTS

Fold = Callable[[Book, Frame, Message, tuple[Decision, ...]], None]
"""Folds one input and what the log says of it."""


class Step(msgspec.Struct, frozen=True):
    """One message of the log, folded: `decided` with their stamps, `touched` the VMI uids whose sets changed.

    `lost`: a frame that was not folded: EVENTS lacks what it was decided on, and a later generation began since.
    """

    said: Said
    state: State
    decided: tuple[tuple[Stamp, Decision], ...] = ()
    touched: tuple[str, ...] = ()
    lost: bool = False


class Follower:
    """The state as the log tells it. `book` holds it; `tip` is how far the log was folded."""

    def __init__(
        self,
        journal: Journal,
        state: State | None = None,
        tip: Tip = START,
        *,
        fold: Fold | None = None,
        confirm_seconds: float = CONFIRM_SECONDS,
    ) -> None:
        """Start from a state folded to `tip`, else from the first message; `fold` replaces `step.apply`.

        `confirm_seconds`: how long either stream must stay shorter than the log says before that is loss.
        """
        self._journal = journal
        self._confirm = confirm_seconds
        self.book = Book(state if state is not None else empty_state())
        self._reader = LogReader(journal, tip, confirm_seconds=confirm_seconds)
        self._apply = fold or _apply
        self._events: AsyncIterator[list[Message]] | None = None
        self._waiting: deque[Message] = deque()
        self._reading: asyncio.Future[list[Message]] | None = None
        self._losing = False

    @property
    def tip(self) -> Tip:
        """The log's tip that the state is folded to."""
        return self._reader.tip

    async def start(self) -> State:
        """Fold everything the log holds now and return the state."""
        last = (await self._journal.info(DECISIONS)).last
        async for _ in self.steps(until=last):
            pass
        return self.book.state

    async def steps(self, *, until: int | None = None) -> AsyncIterator[Step]:
        """Yield each message of the log after folding it, for ever or through DECISIONS sequence `until`.

        Raises `BrokenLog`, `DataLoss`, `Gap`, `UnknownMessage`.
        """
        async for said in self._reader.follow(until=until):
            yield await self._fold(said)

    @property
    def waiting(self) -> Sequence[Message]:
        """The EVENTS messages at hand after the folded ones."""
        return self._waiting

    async def arrived(self) -> None:
        """Wait until an input is at hand."""
        await self._fill(1)

    async def more(self, seconds: float) -> bool:
        """Wait for further inputs, at most so long; say whether some came. What is still read then, `close` ends."""
        reading = self._read()
        await asyncio.wait({reading}, timeout=seconds)
        if reading.done():
            self._took(reading)
        return reading.done()

    def take(self, most: int) -> list[Message]:
        """Return the inputs at hand, at most so many; they come again where they are given back."""
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def give_back(self, inputs: list[Message]) -> None:
        """Return inputs that were taken and not folded; they come first next time."""
        self._waiting.extendleft(reversed(inputs))

    async def _fold(self, said: Said) -> Step:
        match said.record:
            case Genesis():
                await self._begin(said.record)
            case Epoch():
                evolve_epoch(self.book, said.message.sequence, said.record)
            case Void():
                self.book.state.voided[str(said.record.sequence)] = f"{said.record.who}: {said.record.why}"
            case Frame() if self._losing:
                return Step(said, self.book.state, lost=True)
            case Frame():
                try:
                    return await self._fold_frame(said, said.record)
                except (BrokenLog, DataLoss, Gap):
                    if not await self._is_over(said.message.sequence):
                        raise
                    # What it and those after it decided is forgotten with its generation: the chain alone is proven.
                    self._losing = True
                    return Step(said, self.book.state, lost=True)
        return Step(said, self.book.state)

    async def _is_over(self, sequence: int) -> bool:
        """Say whether a generation that took the cluster over was begun after a message of DECISIONS (T4).

        Others may have published where lost inputs were before it began: where EVENTS ended then proves nothing.
        """
        last = (await self._journal.info(DECISIONS)).last
        if sequence >= last:
            return False
        async for run in self._journal.read(DECISIONS, sequence + 1, until=last):
            for message in run:
                record = decode_record(message.body) if message.subject == DECISIONS_GENESIS else None
                if isinstance(record, Genesis) and record.adopts:
                    return True
        return False

    async def _begin(self, genesis: Genesis) -> None:
        """A later generation reads its inputs from where its genesis says (T4)."""
        begin(self.book, genesis)
        if genesis.adopts:
            self._losing = False
            await self.close()
            self._events = None
            self._waiting.clear()

    async def _fold_frame(self, said: Said, frame: Frame) -> Step:
        entries = {entry.cause: entry.decisions for entry in frame.entries}
        digest = EventsDigest()
        inputs = await self._take(frame.covers_to - frame.covers_from + 1, frame.covers_to)
        # The whole frame is held against its digest before any of it is believed (T1).
        for message in inputs:
            digest.add(canonical(message))
        if inputs and inputs[0].sequence != frame.covers_from:
            came, due = inputs[0].sequence, frame.covers_from
            raise BrokenLog(said.message.sequence, f"EVENTS {came} came where {due} was due")
        if digest.hex() != frame.events_digest:
            raise BrokenLog(
                said.message.sequence,
                f"EVENTS {frame.covers_from}..{frame.covers_to} are not the inputs that were decided on; "
                f"where a part was lost and others published since, `gpubinder adopt` begins a generation",
            )
        for message in inputs:
            self._apply(self.book, frame, message, entries.get(message.sequence, ()))
        return Step(said, self.book.state, *_told(frame.generation, frame.entries))

    async def _take(self, count: int, due: int) -> list[Message]:
        await self._fill(count, due)
        return [self._waiting.popleft() for _ in range(count)]

    async def _fill(self, count: int, due: int = 0) -> None:
        """Have `count` inputs at hand. `due`: the EVENTS sequence that the log says there is, 0 where it says none."""
        while len(self._waiting) < count:
            reading = self._read()
            try:
                while not reading.done():
                    await asyncio.wait({reading}, timeout=self._confirm if due else None)
                    if not reading.done():
                        await self._prove_inputs(due)
            finally:
                if not reading.done():
                    await self._stop_reading()
            self._took(reading)

    def _read(self) -> asyncio.Future[list[Message]]:
        """Return the reading of the next run, begun at the first call and kept until it was taken."""
        if self._events is None:
            self._events = self._journal.read(EVENTS, self.book.state.events_seq + 1)
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._run(self._events))
        return self._reading

    def _took(self, reading: asyncio.Future[list[Message]]) -> None:
        self._reading = None
        self._waiting.extend(reading.result())

    async def _stop_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is None:
            return
        reading.cancel()
        # Its end is waited for: what is read from can't be closed before.
        await asyncio.wait({reading})
        if not reading.cancelled():
            # Looked at, so that what it ended of is not reported as forgotten: nobody reads on here.
            reading.exception()

    async def _run(self, events: AsyncIterator[list[Message]]) -> list[Message]:
        run = await anext(events, None)
        if run is None:
            wanted = self.book.state.events_seq + len(self._waiting) + 1
            raise Gap(EVENTS, wanted, 0, "what was given ends there")
        return run

    async def _prove_inputs(self, due: int) -> None:
        """Raise `DataLoss` where EVENTS ends before what the log decided on: nobody would ever bring the rest."""
        try:
            last = (await self._journal.info(EVENTS)).last
        except (Unavailable, Unclear):
            return
        if last < due:
            raise DataLoss(
                f"EVENTS ends at {last}, the log decided on inputs up to {due}: the server lost acknowledged messages; "
                f"restore the store from the archive, or `gpubinder adopt` a new generation"
            )

    async def close(self) -> None:
        """Stop reading."""
        await self._stop_reading()
        closing = getattr(self._events, "aclose", None)
        if closing is not None:
            await closing()


def _apply(book: Book, _frame: Frame, message: Message, logged: tuple[Decision, ...]) -> None:
    apply(book, message.sequence, message.stamp_ns, message.body, logged)


def _told(generation: int, entries: tuple[Entry, ...]) -> tuple[tuple[tuple[Stamp, Decision], ...], tuple[str, ...]]:
    decided = tuple(
        (Stamp(generation, entry.cause, place), decision)
        for entry in entries
        for place, decision in enumerate(entry.decisions)
    )
    touched = dict.fromkeys(decision.vmi.uid for _, decision in decided if isinstance(decision, SET_DECISIONS))
    return decided, tuple(touched)
