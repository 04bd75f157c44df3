"""Faults for nodes that can't keep what is booked on them. Each plants itself; a story or a history finds it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from binder import evolve_holdings, evolve_sets, keeping, moving, skips, troubles
from binder.book import Book
from binder.state import GpuSet
from binder.usage import Usage
from schemas import decisions as d
from schemas.objects import NodeView, Stamp
from schemas.reasons import Unkept
from tests.binder.answering import answering


def units_free_at_once(patch: pytest.MonkeyPatch) -> None:
    """The units of a VMI that was given up are free before its pod is gone."""
    real = evolve_sets.vmi_given_up

    def vmi_given_up(book: Book, stamp: Stamp, decision: d.VmiGivenUp) -> None:
        real(book, stamp, decision)
        gpu_set = book.state.sets[decision.vmi.uid]
        book.store_set(decision.vmi.uid, GpuSet(gpu_set.vmi, stamp, gpu_set.opened_ns, gpu_set.claims))

    patch.setattr(evolve_sets, "vmi_given_up", vmi_given_up)


def unreachable_is_dead(patch: pytest.MonkeyPatch) -> None:
    """What ran on a node that is gone or silent is taken for ended, and started a second time."""
    patch.setattr(keeping, "is_stoppable", lambda _, gpu_set: gpu_set.pinned and gpu_set.leaving is None)


def phase_alone_is_asked(patch: pytest.MonkeyPatch) -> None:
    """A pod that ran does not count, while its VMI's phase lags."""
    real = keeping.is_stoppable

    def is_stoppable(book: Book, gpu_set: GpuSet) -> bool:
        pod = book.state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}")
        if pod is not None:
            book.state.objects["pods"][pod.key] = replace(pod, ran=False)
        try:
            return real(book, gpu_set)
        finally:
            if pod is not None:
                book.state.objects["pods"][pod.key] = pod

    patch.setattr(keeping, "is_stoppable", is_stoppable)


def no_grace(patch: pytest.MonkeyPatch) -> None:
    """A dip is a loss."""
    patch.setattr(troubles, "GRACE_NS", 0)
    patch.setattr(troubles, "GONE_NS", 0)


def deeper_dip_is_no_new_one(patch: pytest.MonkeyPatch) -> None:
    """A node that was short of one unit may lose all at once."""

    def since(known: dict[str, int], word: str, now_ns: int) -> int:
        resource = troubles.short_of(word)[0]
        before = [at_ns for one, at_ns in known.items() if resource and troubles.short_of(one)[0] == resource]
        return min(before, default=known.get(word, now_ns))

    patch.setattr(troubles, "_since", since)


def grace_is_for_life(patch: pytest.MonkeyPatch) -> None:
    """A trouble that is over goes on counting."""
    ever: dict[tuple[int, str], int] = {}
    real = troubles._since

    def since(known: dict[str, int], word: str, now_ns: int) -> int:
        return ever.setdefault((id(patch), word), real(known, word, now_ns))

    patch.setattr(troubles, "_since", since)


def same_name_same_machine(patch: pytest.MonkeyPatch) -> None:
    """Another machine inherits what was wrong with the old one."""
    real = troubles.Troubles.node_changed
    patch.setattr(troubles.Troubles, "node_changed", lambda self, name, _, after: real(self, name, None, after))


def absent_key_is_no_loss(patch: pytest.MonkeyPatch) -> None:
    """A resource that a node does not name any more is not short."""
    real = Usage.overused

    def overused(self: Usage, node: NodeView) -> dict[str, int]:
        return {name: amount for name, amount in real(self, node).items() if name in node.allocatable}

    patch.setattr(Usage, "overused", overused)


def taints_are_losses(patch: pytest.MonkeyPatch) -> None:
    """A taint that each class tolerates is a trouble."""
    patch.setattr(troubles, "is_borne", answering(returned=False))
    patch.setattr(keeping, "is_borne", answering(returned=False))


def cordon_is_a_loss(patch: pytest.MonkeyPatch) -> None:
    """A cordoned node is taken for one that is not ready."""
    real = troubles.Troubles.words

    def words(self: Any, name: str) -> Iterator[str]:
        node = self._usage.node(name)
        found = list(real(self, name))
        holds = self.sets.count(name) or self.holdings.count(name)
        unready = [f"{troubles.NOT_READY}{resource}" for resource in self._usage.ranked]
        return iter([*found, *unready] if holds and node is not None and node.unschedulable else found)

    patch.setattr(troubles.Troubles, "words", words)


def all_groups_move(patch: pytest.MonkeyPatch) -> None:
    """Where units are missing everyone leaves."""

    def few(book: Book, spent: Any, name: str, resource: str) -> Iterator[Any]:
        for group in moving.groups_on(book, name):
            yield moving.moved(book, group, name, Unkept.UNITS_GONE)

    patch.setattr(moving, "_few", few)


def claims_move_alone(patch: pytest.MonkeyPatch) -> None:
    """Claims that go together leave one by one."""
    real = moving.moved

    def moved(book: Book, group: str, name: str, why: Any) -> Any:
        decision = real(book, group, name, why)
        return replace(decision, claims=decision.claims[:1])

    patch.setattr(moving, "moved", moved)


def who_goes_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    """VMIs that were given up free nothing: the next one is given up for the same units."""
    patch.setattr(keeping, "leaving_units", answering(returned=0))


def vms_leave_first(patch: pytest.MonkeyPatch) -> None:
    """Claims that nobody uses stay, and a VM loses its place for them."""
    patch.setattr(keeping, "_loose_units", answering(returned=0))


def moves_while_paused(patch: pytest.MonkeyPatch) -> None:
    """A pause stops placing, and not what leads to it."""
    patch.setattr(keeping, "is_paused", answering(returned=False))


def landed_pins_are_taken_back(patch: pytest.MonkeyPatch) -> None:
    """A booking is released although its launcher was let go, as the watch lags behind the write."""
    real = keeping.waits_for_launcher

    def waits(book: Book, gpu_set: GpuSet) -> bool:
        return real(book, replace(gpu_set, confirmed=Stamp()))

    patch.setattr(keeping, "waits_for_launcher", waits)


def given_up_once(patch: pytest.MonkeyPatch) -> None:
    """A VMI whose deletion came to nothing stays for ever."""
    for module in (skips, keeping, evolve_sets):
        patch.setattr(module, "LEAVING_NS", 1 << 62)


def rebound_at_once(patch: pytest.MonkeyPatch) -> None:
    """What an operator released is bound again in the same breath."""
    patch.setattr(evolve_holdings, "RELEASED_NS", 0)


Plant = Callable[[pytest.MonkeyPatch], None]
FAULTS: tuple[tuple[Plant, str, bool], ...] = (
    (units_free_at_once, "given-up", True),
    (unreachable_is_dead, "unreachable", True),
    (phase_alone_is_asked, "ran-and-phase-lags", False),
    (no_grace, "dip", True),
    (deeper_dip_is_no_new_one, "too-few", False),
    (grace_is_for_life, "given-up", False),
    (same_name_same_machine, "another-machine", False),
    (absent_key_is_no_loss, "resource-gone", True),
    (taints_are_losses, "moves-as-a-set", True),
    (cordon_is_a_loss, "moves-as-a-set", False),
    (all_groups_move, "moves", False),
    (claims_move_alone, "moves-as-a-set", True),
    (who_goes_is_not_counted, "too-few", False),
    (vms_leave_first, "claims-leave-first", False),
    (moves_while_paused, "gathered-again", False),
    (given_up_once, "given-up", False),
    (landed_pins_are_taken_back, "gathered-again", False),
    (rebound_at_once, "by-hand", False),
)
