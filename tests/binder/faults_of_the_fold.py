"""Faults for the fold: what is observed, counted, remembered or bounded wrongly. Each plants itself."""

import heapq
from typing import Any

import pytest
from msgspec.structs import replace

from binder import book as books
from binder import evolve, evolve_holdings, evolve_objects, evolve_sets, skips, usage
from binder.book import Book
from binder.indexes import Indexes
from schemas import decisions as d
from schemas.objects import AnyView, ClaimView, PodView, Stamp
from tests.binder.answering import answering


def observation_overrides(patch: pytest.MonkeyPatch) -> None:
    """An observed claim status moves the booking."""
    real = evolve_objects._mark_claim

    def mark(book: Book, before: Any, after: Any) -> None:
        real(book, before, after)
        uid = book.claim_sets.get(after.key) if isinstance(after, ClaimView) else None
        if uid is not None and after.node:
            book.store_set(uid, replace(book.state.sets[uid], node=after.node))

    patch.setattr(evolve_objects, "_mark_claim", mark)


def cores_of_others_ignored(patch: pytest.MonkeyPatch) -> None:
    """Only GPU units of other pods are counted."""
    real = usage.Usage.take

    def take(self: usage.Usage, table: str, key: str, share: Any) -> Any:
        if table == "pods" and share is not None:
            share = (share[0], {name: amount for name, amount in share[1].items() if name != "cpu"})
        return real(self, table, key, share)

    patch.setattr(usage.Usage, "take", take)


def no_epoch_fence(patch: pytest.MonkeyPatch) -> None:
    """A new leader places at once."""
    for module in (books, evolve):
        patch.setattr(module, "is_current", lambda state, kind: kind in state.sessions and state.sessions[kind].synced)


def placing_while_listing(patch: pytest.MonkeyPatch) -> None:
    """A kind that is being listed anew stops nobody."""
    for module in (books, evolve):
        patch.setattr(module, "is_current", lambda state, kind: kind in state.sessions)


def no_version_check(patch: pytest.MonkeyPatch) -> None:
    """Whatever comes last is believed."""
    patch.setattr(evolve_objects, "rv_after", answering(returned=True))


def old_sessions_heard(patch: pytest.MonkeyPatch) -> None:
    """Changes of any session are folded."""
    real = evolve_objects.change

    def change(book: Book, sequence: int, event: Any) -> None:
        session = book.state.sessions.get(event.kind)
        real(book, sequence, replace(event, session=session.number) if session else event)

    patch.setattr(evolve_objects, "change", change)


def list_removes_nothing(patch: pytest.MonkeyPatch) -> None:
    """What was deleted while nobody watched stays."""
    patch.setattr(evolve_objects, "remove", answering(returned=None))


def dirty_forgotten_at_the_bound(patch: pytest.MonkeyPatch) -> None:
    """A bounded input drops what it left over."""
    patch.setattr(evolve, "bound_reached", answering(returned=False))


def no_bound(patch: pytest.MonkeyPatch) -> None:
    """One input decides everything."""
    patch.setattr(evolve, "SETS_PER_INPUT_MAX", 1_000_000)


def no_back_off(patch: pytest.MonkeyPatch) -> None:
    """A refused pin is tried again at once."""
    patch.setattr(evolve_holdings, "RETRY_NS_FIRST", 0)


def old_outcomes_heard(patch: pytest.MonkeyPatch) -> None:
    """What became of an older decision counts for the newest."""
    real = evolve_sets.hear

    def hear(book: Book, outcome: Any) -> None:
        gpu_set = book.state.sets.get(outcome.vmi_uid)
        real(book, replace(outcome, stamp=gpu_set.stamp) if gpu_set else outcome)

    patch.setattr(evolve_sets, "hear", hear)


def time_unclamped(patch: pytest.MonkeyPatch) -> None:
    """A silence of an hour is an hour of logical time."""
    patch.setattr(evolve, "STEP_NS_MAX", 1 << 62)


def first_wait_lost(patch: pytest.MonkeyPatch) -> None:
    """A VM's place in the queue dies with its VMI."""
    patch.setattr(evolve_sets, "forget_wait", lambda book, key: book.state.first_wait.pop(key, None))


def booking_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """A bound launcher is counted beside its booking."""
    patch.setattr(Book, "_is_booked", answering(returned=False))


def booking_not_counted(patch: pytest.MonkeyPatch) -> None:
    """Only pods that run are counted: a stale view gives a unit twice."""
    real = usage.Usage.take

    def take(self: usage.Usage, table: str, key: str, share: Any) -> Any:
        return real(self, table, key, share if table == "pods" else None)

    patch.setattr(usage.Usage, "take", take)


def temporary_pod_not_shared(patch: pytest.MonkeyPatch) -> None:
    """The launcher's booking does not cover its temporary pod."""
    real = evolve_sets.placed

    def placed(book: Book, stamp: Stamp, decision: d.SetPlaced) -> None:
        real(book, stamp, decision)
        book.store_set(decision.vmi.uid, replace(book.state.sets[decision.vmi.uid], former=""))

    patch.setattr(evolve_sets, "placed", placed)


def deadline_kept(patch: pytest.MonkeyPatch) -> None:
    """A deadline that has passed stays in the state: a restored book wakes the set again."""

    def wake(book: Book) -> None:
        while book.deadlines and book.deadlines[0][0] <= book.state.now_ns:
            _, uid = heapq.heappop(book.deadlines)
            if uid in book.state.sets:
                book.mark(uid)

    patch.setattr(evolve_sets, "wake", wake)


def volumes_of_the_pod_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A change of a volume that the launcher alone names wakes nobody."""
    real = Indexes.move

    def move(self: Indexes, key: str, before: AnyView | None, view: AnyView | None) -> None:
        real(self, key, *(replace(pod, pvcs=()) if isinstance(pod, PodView) else pod for pod in (before, view)))

    patch.setattr(Indexes, "move", move)


def stale_evidence_believed(patch: pytest.MonkeyPatch) -> None:
    """A class read before it was deleted comes back."""
    patch.setattr(evolve_objects, "believe_evidence", evolve_objects.observe)


def refusals_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What a node refused is not kept."""
    patch.setattr(skips.Skips, "put", answering(returned=None))


def every_failure_is_a_refusal(patch: pytest.MonkeyPatch) -> None:
    """The reason of a failed pod is not read."""
    patch.setattr(skips, "is_refusal", answering(returned=True))


def flaps_end_every_skip(patch: pytest.MonkeyPatch) -> None:
    """A change never waits."""
    patch.setattr(skips, "HOLD_NS_FIRST", 0)


def stuck_for_ever(patch: pytest.MonkeyPatch) -> None:
    """kube-scheduler has all the time in the world."""
    patch.setattr(skips, "STUCK_NS", 1 << 62)
