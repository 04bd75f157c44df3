"""Faults planted in the shell and the edges, one at a time: a world must find each. Those of the heart stand beside it."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from binder import evolve_objects, evolve_sets
from binder.book import Book
from binder.follower import Follower
from binder.memory_journal import MemoryJournal
from binder.snapshots import StateSnapshots
from binder.state import State
from binder.tip import Tip
from ingest.outlet import Outlet
from projector import plan as plans
from projector import render
from schemas.events import Outcome
from schemas.objects import AnyView, Gone
from schemas.streams import DECISIONS

Plant = Callable[[pytest.MonkeyPatch], None]


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """A leader that was replaced goes on writing: nobody looks at the expected sequence (T2)."""
    real = MemoryJournal.append

    async def append(
        self: MemoryJournal, stream: str, *rest: Any, expected_last: int | None = None, **more: Any
    ) -> int:
        return await real(self, stream, *rest, expected_last=None if stream == DECISIONS else expected_last, **more)

    patch.setattr(MemoryJournal, "append", append)


def decided_again(patch: pytest.MonkeyPatch) -> None:
    """A new leader decides once more on the last input that the log covers."""
    real = Follower._fold_frame
    last: dict[int, Any] = {}
    take = Follower._take

    async def taken(self: Follower, count: int, due: int) -> Any:
        messages = await take(self, count, due)
        if messages:
            last[id(self)] = messages[-1]
        return messages

    async def inputs(self: Follower, most: int) -> Any:
        again = last.pop(id(self), None)
        if again is not None:
            self.give_back([again])
        await self._fill(1)
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    patch.setattr(Follower, "_fold_frame", real)
    patch.setattr(Follower, "_take", taken)
    patch.setattr(Follower, "inputs", inputs)


def old_vmi_is_the_new_one(patch: pytest.MonkeyPatch) -> None:
    """What is said late of an old VMI is taken for the new one of its name."""

    def hear(book: Book, outcome: Outcome) -> None:
        for uid, gpu_set in list(book.state.sets.items()):
            if (gpu_set.vmi.namespace, gpu_set.vmi.name) == (outcome.namespace, outcome.name):
                book.store_set(uid, replace(gpu_set, confirmed=gpu_set.stamp, pinned=bool(gpu_set.node)))

    patch.setattr(evolve_sets, "hear", hear)


def old_vmi_not_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A VMI that came back under its old name between two looks is taken for the same one."""
    real = evolve_objects._forget

    def forget(book: Book, before: AnyView) -> None:
        if before.key not in book.state.objects["virtualmachineinstances"]:
            real(book, before)

    patch.setattr(evolve_objects, "_forget", forget)


def snapshot_of_another_place(patch: pytest.MonkeyPatch) -> None:
    """A snapshot is kept with the place before its own."""
    real = StateSnapshots.keep
    before: dict[int, Tip] = {}

    async def keep(self: StateSnapshots, state: State, tip: Tip) -> None:
        older = before.get(id(self), tip)
        before[id(self)] = tip
        await real(self, state, older)

    patch.setattr(StateSnapshots, "keep", keep)


def gone_is_lost(patch: pytest.MonkeyPatch) -> None:
    """Ingest tells of no deletion."""
    real = Outlet.changes

    async def changes(self: Outlet, kind: str, session: int, seen: Any) -> None:
        await real(self, kind, session, [view for view in seen if not isinstance(view, Gone)])

    patch.setattr(Outlet, "changes", changes)


def let_go_without_pin(patch: pytest.MonkeyPatch) -> None:
    """The gate is taken off, and the pin forgotten."""
    patch.setattr(render, "pinned", lambda terms, _: terms)


def told_over_and_over(patch: pytest.MonkeyPatch) -> None:
    """Each time that a reason is told it is another event."""
    numbers = itertools.count()
    patch.setattr(plans, "_event_name", lambda gpu_set: f"{gpu_set.vmi.name}.{next(numbers):x}")


def pin_before_status(patch: pytest.MonkeyPatch) -> None:
    """Only the pin is written: claims show nothing."""
    patch.setattr(plans, "_status", lambda _: ())


def nothing_is_written_again(patch: pytest.MonkeyPatch) -> None:
    """What a dead projector left unwritten stays so."""
    patch.setattr(plans, "is_open", lambda _: False)
