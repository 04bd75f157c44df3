"""Faults in budgets, classes, takeovers and licences, planted one at a time: a story made for each shows it."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from binder import adopting, decide_holdings, decide_licences, decide_set, evolve, evolve_objects, holdings
from binder.book import Book
from binder.charging import Charging
from binder.licences import licence_copy
from projector import conflicts, licences
from projector.budget_counts import BudgetCounts
from schemas import decisions as d
from schemas.objects import AnyView, Stamp


def budget_freed_on_deletion(patch: pytest.MonkeyPatch) -> None:
    """A VMI that is told to go leaves its tenant's budget at once, while its launcher still runs (B4)."""
    real, stands = evolve_objects.observe, Charging._stands
    going: set[str] = set()

    def observe(book: Book, kind: str, view: AnyView, *, believe: bool = False) -> None:
        real(book, kind, view, believe=believe)
        if view.deleting and view.uid in book.state.sets:
            going.add(view.uid)
            book.budgets.charge("sets", view.uid, None)

    patch.setattr(evolve_objects, "observe", observe)
    # A change of its pod or set counts it again, and would hide the fault before anybody asked.
    patch.setattr(Charging, "_stands", lambda self, uid: uid not in going and stands(self, uid))


def budget_status_once(patch: pytest.MonkeyPatch) -> None:
    """A budget's status is written once, and then stays as it is."""

    def is_due(self: BudgetCounts, view: Any, _now: Any) -> bool:
        return view.key not in self._shown

    patch.setattr(BudgetCounts, "_is_due", is_due)
    patch.setattr(BudgetCounts, "look_again", lambda _self: None)


def edit_renames_what_is_booked(patch: pytest.MonkeyPatch) -> None:
    """A class that is edited changes the resource that booked claims are counted by (T24)."""
    real = decide_set.opening

    def opening(book: Book, vmi: Any) -> d.SetOpened | None:
        gpu_set, claims = book.state.sets.get(vmi.uid), decide_set._claims(book, replace(vmi, devices=()))
        if gpu_set is not None and gpu_set.node and claims and claims != gpu_set.claims:
            return d.SetOpened(gpu_set.vmi, claims, gpu_set.held)
        return real(book, vmi)

    patch.setattr("binder.decide.opening", opening)


def edit_renames_what_is_held(patch: pytest.MonkeyPatch) -> None:
    """A held claim counts by its class's resource of now, not by that which it was bound under (T24)."""
    real = holdings.counted

    def counted(state: Any, holding: Any) -> Any:
        bare = replace(holding, claim=replace(holding.claim, resource=""))
        return real(state, bare)

    patch.setattr(decide_holdings, "counted", counted)


def the_younger_keeps_the_name(patch: pytest.MonkeyPatch) -> None:
    """Of two classes of one resource name the older is told that it has it from the other (K1)."""
    real = conflicts.elders

    def elders(book: Book) -> dict[str, str]:
        found = real(book)
        return found | {elder: name for name, elder in found.items() if elder} | {n: "" for n, e in found.items() if e}

    patch.setattr(conflicts, "elders", elders)


def only_what_runs_is_adopted(patch: pytest.MonkeyPatch) -> None:
    """A launcher that is pinned, and not on its node yet, is nobody's when the cluster is taken over."""
    patch.setattr(adopting, "place_of", lambda pod: pod.node)


def statuses_alone_are_adopted(patch: pytest.MonkeyPatch) -> None:
    """What claims show is taken over, and no launcher is looked at: two sets may have one place."""
    patch.setattr(adopting, "booking", lambda _book, _vmi: None)


def gated_launchers_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A launcher that waits behind our gate is a stranger's after a takeover: nobody answers for it any more."""
    patch.setattr(adopting, "admission", lambda _book, _vmi: None)


def adopted_without_claims_shown(patch: pytest.MonkeyPatch) -> None:
    """Held claims that no launcher uses are not taken over: their units are given to others, they to nobody."""

    def as_shown(_book: Book, _key: str) -> None:
        return None

    patch.setattr(adopting, "as_shown", as_shown)


def placed_while_adopting(patch: pytest.MonkeyPatch) -> None:
    """A takeover ends before anything of it is booked: places are given away beside what stands."""

    def at_once(book: Book, _spent: Any) -> Iterator[d.Decision]:
        del book
        yield d.Adopted(0, 0)

    patch.setattr("binder.decide.taking_over", at_once)


def licences_stay_behind(patch: pytest.MonkeyPatch) -> None:
    """A namespace that may not use vGPUs any more keeps its copy (L2)."""
    patch.setattr(decide_licences, "_not_due", lambda _book, _key, _known: None)


def copies_are_written_once(patch: pytest.MonkeyPatch) -> None:
    """A copy that stands is good enough, whatever its source says by now."""
    real = decide_licences._about_copy

    def about(book: Book, key: str, view: Any) -> Any:
        said = real(book, key, view)
        return None if isinstance(said, d.LicenceCopied) and licence_copy(book.state, key) is not None else said

    patch.setattr(decide_licences, "_about_copy", about)


def own_secrets_are_overwritten(patch: pytest.MonkeyPatch) -> None:
    """Whatever stands under the copy's name is taken for an old copy (C31)."""
    real = licences._stamp_of
    patch.setattr(licences, "_stamp_of", lambda found: real(found) or Stamp())


def unserved_is_gone(patch: pytest.MonkeyPatch) -> None:
    """What a kind held that is not served any more is taken for gone (D12)."""
    real = evolve._freeze

    def freeze(book: Book, sequence: int, kind: str, number: int) -> None:
        real(book, sequence, kind, number)
        for key in [*book.state.objects[kind]]:
            evolve_objects.remove(book, kind, key)

    patch.setattr(evolve, "_freeze", freeze)
