"""The state as it stood at any place of the log: after a decision, after an input, at a time."""

from collections.abc import Callable

import msgspec

from binder.book import Book
from binder.follower import Follower
from binder.journal import Journal, Message
from binder.state import State
from binder.step import apply
from binder.tip import START, Tip
from schemas.decisions import Decision
from schemas.frames import Frame
from schemas.streams import DECISIONS


class Where(msgspec.Struct, frozen=True):
    """A place in the log; None everywhere: as it stands now.

    After DECISIONS `decision`, after EVENTS `event`, or after all inputs stamped up to `stamp_ns` (server
    stamps, nanoseconds since 1970).
    """

    decision: int | None = None
    event: int | None = None
    stamp_ns: int | None = None


class Stand(msgspec.Struct, frozen=True):
    """The folded state; `tip` is where the log was read up to for it."""

    book: Book
    tip: Tip


class _Fold:
    """Applies inputs up to a place within a frame, and leaves out what comes after it."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self.reached = False

    def __call__(self, book: Book, _frame: Frame, message: Message, logged: tuple[Decision, ...]) -> None:
        where = self._where
        beyond = where.event is not None and message.sequence > where.event
        later = where.stamp_ns is not None and message.stamp_ns > where.stamp_ns
        if self.reached or beyond or later:
            self.reached = True
            return
        apply(book, message.sequence, message.stamp_ns, message.body, logged)
        self.reached = message.sequence == where.event


async def stand_at(
    journal: Journal,
    where: Where,
    start: tuple[State, Tip] | None = None,
    *,
    seen: Callable[[int, int], None] | None = None,
) -> Stand:
    """Fold the log up to a place and return the state there.

    `start`: a snapshot to go on from, passed over where it stands beyond the place. `seen`: told the
    DECISIONS sequence that was read and the last one there is. Raises `LookupError` where the log does not
    reach the place, and what `Follower.steps` raises.
    """
    last = (await journal.info(DECISIONS)).last
    until = last if where.decision is None else where.decision
    if not 0 <= until <= last:
        raise LookupError(f"DECISIONS holds 1 to {last}: there is no {until}")
    fold = _Fold(where)
    state, tip = _usable(start, where, until)
    follower = Follower(journal, state, tip, fold=fold)
    try:
        async for step in follower.steps(until=until):
            if seen is not None:
                seen(step.said.message.sequence, until)
            if fold.reached:
                break
    finally:
        await follower.close()
    if where.event is not None and follower.book.state.events_seq < where.event:
        covered = follower.book.state.events_seq
        raise LookupError(f"the log decided on EVENTS up to {covered}: {where.event} is not decided on yet")
    return Stand(follower.book, follower.tip)


def _usable(start: tuple[State, Tip] | None, where: Where, until: int) -> tuple[State | None, Tip]:
    if start is None:
        return None, START
    state, tip = start
    beyond = tip.sequence > until or (where.event is not None and state.events_seq > where.event)
    if beyond or (where.stamp_ns is not None and state.stamp_ns > where.stamp_ns):
        return None, START
    return state, tip
