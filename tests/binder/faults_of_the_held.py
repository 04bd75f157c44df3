"""Faults about held claims: counted twice, let go, taken, torn apart or forgotten. Each plants itself."""

from typing import Any

import pytest
from msgspec.structs import replace

from binder import book as books
from binder import decide, decide_holdings, evolve, evolve_holdings, holdings, naming, placement
from binder.book import Book
from binder.holdings import Holdings, key_of
from binder.state import GpuSet
from schemas.objects import Stamp
from tests.binder.answering import answering


def attached_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """A claim takes its units beside the launcher that uses it."""
    patch.setattr(
        books,
        "share_of",
        lambda _, one: (one.node, {one.claim.resource: one.claim.count}) if one is not None and one.node else None,
    )


def released_on_stop(patch: pytest.MonkeyPatch) -> None:
    """A claim loses its node when its VM stops."""
    real = evolve_holdings.follow

    def follow(book: Book, stamp: Stamp, gpu_set: GpuSet) -> None:
        real(book, stamp, gpu_set)
        for one in book.held.of(gpu_set.vmi.uid) if not gpu_set.node else ():
            book.store_holding(key_of(one), replace(one, node=""))

    patch.setattr(evolve_holdings, "follow", follow)


def claims_of_others_taken(patch: pytest.MonkeyPatch) -> None:
    """Whoever names a claim has it."""
    real = naming._claim
    patch.setattr(
        naming, "_claim", lambda book, vmi, one: real(book, vmi, replace(one, attached=None) if one else None)
    )
    patch.setattr(Holdings, "oldest_namer", lambda *_: "")


def youngest_has_it(patch: pytest.MonkeyPatch) -> None:
    """Of the VMs that name a claim the youngest has it."""

    def youngest(self: Holdings, key: str) -> str:
        vms = [(view.created, view.uid, vm) for vm in self._index.claim_vms.of(key) if (view := self._state.vm(vm))]
        return max(vms)[2] if vms else ""

    patch.setattr(Holdings, "oldest_namer", youngest)


def groups_stay_split(patch: pytest.MonkeyPatch) -> None:
    """What goes together may stand on several nodes."""
    patch.setattr(decide, "is_torn", answering(returned=False))
    patch.setattr(decide_holdings, "restored", lambda *_: ())


def each_by_itself(patch: pytest.MonkeyPatch) -> None:
    """What a VM names is not held together while it is stopped."""
    real = Holdings._group_of

    def alone(self: Holdings, key: str) -> str:
        group = real(self, key)
        return f"claim {key}" if group.startswith("vm ") else group

    patch.setattr(Holdings, "_group_of", alone)


def orders_before_lost(patch: pytest.MonkeyPatch) -> None:
    """A new order is as good as a Lost set."""
    patch.setattr(holdings, "LOST", 1)
    patch.setattr(holdings, "NEW", 1)


def orders_before_launchers(patch: pytest.MonkeyPatch) -> None:
    """New orders come before the gated pods."""

    def placings(book: Book, spent: Any, left: Any) -> Any:
        yield from decide_holdings.serving(book, spent, left)
        yield from decide._gated(book, spent, left.sets)

    patch.setattr(decide, "_placings", placings)


def own_units_are_anothers(patch: pytest.MonkeyPatch) -> None:
    """The units of its own claims are not there for a set."""
    real = placement.obstacle
    patch.setattr(placement, "obstacle", lambda book, need, node: real(book, replace(need, own={}), node))


def homes_left(patch: pytest.MonkeyPatch) -> None:
    """Claims are moved to the fullest node although they could stay."""
    patch.setattr(placement, "_homes", lambda *_: iter(()))


def freed_under_a_launcher(patch: pytest.MonkeyPatch) -> None:
    """A claim that is being deleted goes, whoever uses it."""

    def weigh(self: Holdings, key: str) -> None:
        claim, one = self._state.claim(key), self._state.holdings.get(key)
        if claim is not None and claim.deleting and one is not None and not one.freed:
            self.freeable[key] = True
        else:
            self.freeable.pop(key, None)

    patch.setattr(Holdings, "weigh", weigh)


def status_places(patch: pytest.MonkeyPatch) -> None:
    """A claim is where its status says."""
    real = evolve_holdings.observed

    def observed(book: Book, before: Any, after: Any) -> None:
        real(book, before, after)
        one = book.state.holdings.get(after.key) if after is not None else None
        if one is not None and after.node and not one.node:
            book.store_holding(after.key, replace(one, node=after.node))

    patch.setattr(evolve_holdings, "observed", observed)


def resource_of_now(patch: pytest.MonkeyPatch) -> None:
    """A claim is counted by what its class says now."""
    real = holdings.counted
    for module in (decide_holdings, naming, holdings):
        patch.setattr(
            module, "counted", lambda state, one: real(state, replace(one, claim=replace(one.claim, resource="")))
        )


def backup_ignored(patch: pytest.MonkeyPatch) -> None:
    """What a server back from a backup shows is left as it is."""
    patch.setattr(evolve_holdings, "went_back", answering(returned=None))


def claims_not_bounded(patch: pytest.MonkeyPatch) -> None:
    """Only sets count towards the bound of an input."""
    patch.setattr(evolve, "HELD_DECISIONS", ())


def waiting_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Room that a moved claim leaves is found at the next change only."""
    patch.setattr(decide, "leaves_a_node", answering(returned=False))


def claims_kept_attached(patch: pytest.MonkeyPatch) -> None:
    """A claim is of its VMI for ever."""
    patch.setattr(evolve_holdings, "detach", answering(returned=None))


def namers_not_told(patch: pytest.MonkeyPatch) -> None:
    """Whoever waits for a claim does not hear that it is there."""
    patch.setattr(Book, "mark_namers", answering(returned=None))


def confirmed_by_anything(patch: pytest.MonkeyPatch) -> None:
    """An outcome of an older decision confirms the newest."""

    def hear(book: Book, outcome: Any) -> None:
        one = book.state.holding(outcome.namespace, outcome.name)
        if one is not None:
            book.store_holding(key_of(one), replace(one, confirmed=one.stamp))

    patch.setattr(evolve_holdings, "hear", hear)
