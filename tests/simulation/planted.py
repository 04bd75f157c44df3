"""Faults planted in shell, edges and heart, one at a time: a world must find each."""

import itertools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from msgspec.structs import replace

from binder import evolve_objects
from binder.book import Book
from binder.follower import Follower
from binder.journal import Message
from binder.memory_journal import MemoryJournal
from binder.snapshots import StateSnapshots
from binder.state import State
from binder.tip import Tip
from ingest.outlet import Outlet
from projector import claim_records, plan, render, service, usage_records
from projector.effects import Warn
from schemas.events import Changes
from schemas.objects import AnyView, ClaimView, Gone
from schemas.streams import DECISIONS

Plant = Callable[[pytest.MonkeyPatch], None]


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """A leader that was replaced goes on writing: nobody looks at the expected sequence (T2)."""
    real = MemoryJournal.append

    async def append(self: MemoryJournal, stream: str, subject: str, body: bytes, **rest: Any) -> int:
        return await real(
            self, stream, subject, body, **rest | ({"expected_last": None} if stream == DECISIONS else {})
        )

    patch.setattr(MemoryJournal, "append", append)


def decided_again(patch: pytest.MonkeyPatch) -> None:
    """A new leader decides once more on the last input that the log covers: while it should only replay."""
    take, arrived = Follower._take, Follower.arrived
    last: WeakKeyDictionary[Follower, Message] = WeakKeyDictionary()

    async def taken(self: Follower, count: int, due: int) -> list[Message]:
        messages = await take(self, count, due)
        if messages:
            last[self] = messages[-1]
        return messages

    async def again(self: Follower) -> None:
        if self in last:
            self.give_back([last.pop(self)])
        await arrived(self)

    patch.setattr(Follower, "_take", taken)
    patch.setattr(Follower, "arrived", again)


def unit_freed_on_deletion(patch: pytest.MonkeyPatch) -> None:
    """A VMI that is told to go gives its units back at once, while its launcher still runs."""
    real = evolve_objects.observe

    def observe(book: Book, kind: str, view: AnyView, *, believe: bool = False) -> None:
        real(book, kind, view, believe=believe)
        gpu_set = book.state.sets.get(view.uid)
        if view.deleting and gpu_set is not None:
            book.store_set(view.uid, replace(gpu_set, requests={}))

    patch.setattr(evolve_objects, "observe", observe)


def observation_overrides(patch: pytest.MonkeyPatch) -> None:
    """What a claim's status shows is taken for the booking (T14)."""
    real = evolve_objects._mark_claim

    def mark(book: Book, before: Any, after: Any) -> None:
        real(book, before, after)
        uid = book.claim_sets.get(after.key) if isinstance(after, ClaimView) else None
        if uid is not None and not after.node:
            gpu_set = book.state.sets[uid]
            book.store_set(uid, replace(gpu_set, node="", pod="", pod_uid="", requests={}, pinned=False))

    patch.setattr(evolve_objects, "_mark_claim", mark)


def late_events_believed(patch: pytest.MonkeyPatch) -> None:
    """A message of an ended session is folded: the old VMI's word is taken for the new one of its name (T11)."""
    real = evolve_objects.change

    def change(book: Book, sequence: int, event: Changes) -> None:
        session = book.state.sessions.get(event.kind)
        if session is None or session.number == event.session:
            real(book, sequence, event)
            return
        for view in event.changes:
            if isinstance(view, Gone):
                evolve_objects.remove(book, event.kind, view.key)
            else:
                evolve_objects.observe(book, event.kind, view, believe=True)

    patch.setattr(evolve_objects, "change", change)


def snapshot_of_another_place(patch: pytest.MonkeyPatch) -> None:
    """A snapshot is kept with the place before its own."""
    real = StateSnapshots.keep
    before: WeakKeyDictionary[StateSnapshots, Tip] = WeakKeyDictionary()

    async def keep(self: StateSnapshots, state: State, tip: Tip) -> None:
        older = before.get(self, tip)
        before[self] = tip
        await real(self, state, older)

    patch.setattr(StateSnapshots, "keep", keep)


def gone_is_lost(patch: pytest.MonkeyPatch) -> None:
    """Ingest tells of no deletion."""
    real = Outlet.changes

    async def changes(self: Outlet, kind: str, session: int, changes: Any) -> None:
        await real(self, kind, session, [view for view in changes if not isinstance(view, Gone)])

    patch.setattr(Outlet, "changes", changes)


def let_go_without_pin(patch: pytest.MonkeyPatch) -> None:
    """The gate is taken off, and the pin forgotten."""
    patch.setattr(render, "pinned", lambda terms, _: terms)


def told_over_and_over(patch: pytest.MonkeyPatch) -> None:
    """Each time that a reason is told it is another event."""
    numbers = itertools.count()

    def warned(gpu_set: Any) -> Any:
        name = f"{gpu_set.vmi.name}.{next(numbers):x}"
        return (Warn(gpu_set.vmi, name, gpu_set.told, "x", "y"),) if gpu_set.reason is not None else ()

    patch.setattr(plan, "_warning", warned)


def left_unwritten(patch: pytest.MonkeyPatch) -> None:
    """A new projector writes what is decided from now on, and not what the one before it left."""

    def begin(self: service.Projector, state: State) -> None:
        del self, state

    patch.setattr(service.Projector, "begin", begin)


def waiting_is_charged(patch: pytest.MonkeyPatch) -> None:
    """The usage record of a claim that waits says the units it would like to have (F2, C53)."""
    real = claim_records._of_template

    def charged(state: State, claim: Any) -> Any:
        held = real(state, claim)
        return None if held is None else replace(held, units=claim.count)

    patch.setattr(claim_records, "_of_template", charged)


def nobody_owns_a_record(patch: pytest.MonkeyPatch) -> None:
    """A usage record names an owner that never was: it is collected, though its claim stands (C32)."""
    real = claim_records.record_of

    def orphaned(state: State, claim: Any) -> Any:
        record = real(state, claim)
        return record and replace(record, owner=replace(record.owner, uid="nobody"))

    patch.setattr(usage_records, "record_of", orphaned)
