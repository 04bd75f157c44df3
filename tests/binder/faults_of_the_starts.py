"""Faults about starts under Refuse: booked, kept, ended or pinned wrongly. Each plants itself."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from binder import decide, decide_ends, evolve_starts, following, starting, starts
from binder.book import Book
from binder.decide_ends import booked_node
from binder.state import GpuSet
from schemas import decisions as d
from schemas.events import PodRequest
from schemas.reasons import Release
from tests.binder.answering import answering


def booking_weighs_nothing(patch: pytest.MonkeyPatch) -> None:
    """What is booked at admission is free for the next one until the launcher is seen."""
    real = evolve_starts.booked

    def booked(book: Book, stamp: Any, decision: d.SetBooked) -> None:
        real(book, stamp, replace(decision, requests={}))

    patch.setattr(evolve_starts, "booked", booked)


def watch_alone_ends_it(patch: pytest.MonkeyPatch) -> None:
    """A booking ends when the watch went on, however early (T18)."""
    real = evolve_starts.booked

    def booked(book: Book, stamp: Any, decision: d.SetBooked) -> None:
        real(book, stamp, decision)
        gpu_set = book.state.sets[decision.vmi.uid]
        if gpu_set.start is not None:
            book.store_set(decision.vmi.uid, replace(gpu_set, start=replace(gpu_set.start, due=book.state.events_seq)))

    patch.setattr(evolve_starts, "booked", booked)


def never_ended(patch: pytest.MonkeyPatch) -> None:
    """What was booked for a VMI that never came is held for ever (T18)."""
    patch.setattr(decide_ends, "is_overdue", answering(returned=False))


def withdrawals_unheard(patch: pytest.MonkeyPatch) -> None:
    """Who gave up keeps its units until its time is over (T18)."""
    patch.setattr(evolve_starts, "withdrawn", answering(returned=None))


def late_withdrawals_end_it(patch: pytest.MonkeyPatch) -> None:
    """A withdrawal frees what a VMI that is there has booked (T18)."""
    real = decide_ends._early

    def early(book: Book, gpu_set: GpuSet, vmi: Any) -> Release | None:
        return Release.WITHDRAWN if book.state.events_seq % 2 and vmi is not None else real(book, gpu_set, vmi)

    patch.setattr(decide_ends, "_early", early)


def both_of_one_name(patch: pytest.MonkeyPatch) -> None:
    """A newer request for a VM leaves the older one its booking (T18)."""
    patch.setattr(starts.Starts, "rivals", answering(returned=[]))


def launchers_gated_all_the_same(patch: pytest.MonkeyPatch) -> None:
    """The launcher of a booked set goes behind the gate (P1)."""
    patch.setattr(decide, "booked_node", answering(returned=""))


def targets_inherit_the_pin(patch: pytest.MonkeyPatch) -> None:
    """A migration target is pinned to where the VM is (T25)."""

    def inherited(book: Book, request: PodRequest) -> str:
        gpu_set = book.state.sets.get(request.vmi.uid)
        return gpu_set.node if gpu_set is not None else booked_node(book, request)

    patch.setattr(decide, "booked_node", inherited)


def launchers_counted_beside_their_booking(patch: pytest.MonkeyPatch) -> None:
    """A launcher that was pinned at its creation is nobody's until KubeVirt lists it (T25)."""
    patch.setattr(following, "awaits_launcher", answering(returned=False))


def claims_before_their_owner(patch: pytest.MonkeyPatch) -> None:
    """The VMI's coming is not noticed: its claims are never said, or were before it was there."""
    patch.setattr(evolve_starts, "seen", answering(returned=None))


def budgets_not_asked(patch: pytest.MonkeyPatch) -> None:
    """A start is not held to its tenant's budgets (B3)."""
    patch.setattr(starting, "first_over", answering(returned=None))


def placed_while_paused(patch: pytest.MonkeyPatch) -> None:
    """An operator's pause holds up no start."""
    patch.setattr(starting, "is_paused", answering(returned=False))


def own_former_run_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A VM that is restarted is decided on while its former VMI still has the units."""
    patch.setattr(starting, "_is_run", answering(returned=False))


Plant = Callable[[pytest.MonkeyPatch], None]
FAULTS: tuple[tuple[Plant, str, bool], ...] = (
    (booking_weighs_nothing, "refuse-books", False),
    (watch_alone_ends_it, "refuse-never-seen", False),
    (never_ended, "refuse-never-seen", False),
    (withdrawals_unheard, "refuse-withdrawn", False),
    (late_withdrawals_end_it, "refuse-withdrawn", False),
    (both_of_one_name, "refuse-superseded", False),
    (launchers_gated_all_the_same, "refuse-books", False),
    (targets_inherit_the_pin, "refuse-migrates", False),
    (launchers_counted_beside_their_booking, "refuse-books", False),
    (claims_before_their_owner, "refuse-books", False),
    (budgets_not_asked, "refuse-budget", False),
    (placed_while_paused, "refuse-held-up", False),
    (own_former_run_overlooked, "refuse-superseded", False),
)
