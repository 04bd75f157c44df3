"""An operator's hand on one booking: what moving or releasing it leads to, or the sentence why it can't be done.

NAMESPACE/NAME is a held claim of that name, else a VM. Where a launcher runs, or may run, nothing is done:
whoever wants its units stops the VM.
"""

from collections.abc import Iterator

import msgspec

from binder import commands
from binder.book import Book
from binder.budgets import first_over, sentence
from binder.decide_holdings import claims_of_group, need_of
from binder.evolve_holdings import RELEASED_NS
from binder.keeping import is_leaving, is_stoppable, is_used_unbooked, let_go, waits_for_launcher
from binder.moving import lost
from binder.placement import Need, fit, obstacle
from binder.skips import SECOND, SKIP_NS
from binder.state import GpuSet, Holding
from schemas import decisions as d
from schemas.events import Command
from schemas.reasons import Order, Placing, Unkept

UNKNOWN_NAME = "no held claim and no VM with a GPU reference has this name"
NOT_SERVED = "KubeVirt's kinds are not served: nothing of a VM can be changed before its CRDs are installed"
NOT_NOW = "the picture of the cluster is not complete yet: give the command again in a moment"


class Refused(Exception):
    """A command can't be carried out: the sentence says why, and what to do."""


class Deed(msgspec.Struct, frozen=True):
    """What a command leads to: the sentence that answers it, and the decision that carries it out."""

    said: str
    decision: d.Decision


def answer(book: Book, command: Command) -> Iterator[d.Decision]:
    """Decide a command; one about a booking comes with what carries it out."""
    if command.order not in {Order.MOVE, Order.RELEASE} or not command.name:
        yield commands.answer(book, command)
        return
    try:
        what = deed(book, command)
    except Refused as refusal:
        yield commands.commanded(command, done=False, said=str(refusal))
        return
    yield commands.commanded(command, done=True, said=what.said)
    yield what.decision


def deed(book: Book, command: Command) -> Deed:
    """Find what a command to move or release leads to; raises `Refused`."""
    if not book.may_place_claims() or book.state.adopting:
        raise Refused(NOT_NOW)
    if command.node and book.state.node(command.node) is None:
        raise Refused(f"there is no node {command.node}")
    key = f"{command.namespace}/{command.name}"
    holding = book.state.holdings.get(key)
    if holding is not None and key in book.held.group_of:
        group = book.held.group_of[key]
        if book.is_held_up(group):
            raise Refused(NOT_SERVED)
        if book.goes_with_set(group):
            return _of_set(book, command, book.state.sets[group])
        if is_used_unbooked(book, group):
            raise Refused(f"a launcher that uses claim {key} runs, or may run: stop the VM")
        return _of_claims(book, command, book.held.of(group))
    if book.behind:
        raise Refused(NOT_SERVED)
    vmi = book.state.vmi(key)
    if vmi is None:
        known = book.state.vm(key) is not None
        raise Refused(f"VM {key} is stopped: name its claims" if known else f"{key}: {UNKNOWN_NAME}")
    gpu_set = book.state.sets.get(vmi.uid)
    if gpu_set is None:
        raise Refused(f"VM {key} has no launcher behind our gate yet: there is nothing to {command.order}")
    return _of_set(book, command, gpu_set)


def _of_claims(book: Book, command: Command, held: list[Holding]) -> Deed:
    """Claims that no launcher needs: moved as a group, or released, and rebound only after a while."""
    names = _names(held)
    here = next((one.node for one in held if one.node), "")
    if command.order is Order.RELEASE:
        if not here:
            raise Refused(f"{names}: no units are held")
        said = f"{names} left node {here}, and is bound anew in {RELEASED_NS // SECOND} seconds at the earliest"
        return Deed(said, lost(book, held, here, Unkept.COMMANDED))
    if here and here == command.node:
        raise Refused(f"{names} is on node {here} already")
    need = need_of(book, held, (here,) if here else ())
    if not isinstance(need, Need):
        raise Refused(f"{names} can't be moved now: {need}")
    over = first_over(book.budgets, held[0].namespace, book.charging.asked_by(held))
    if over is not None:
        raise Refused(f"{names} can't be moved now: {sentence(over)}")
    node = command.node or fit(book, need)
    view = book.state.node(node)
    reason = obstacle(book, need, view) if view is not None else None
    if view is None or reason is not None:
        raise Refused(f"{f'node {node} does not take' if node else 'no other node takes'} {names}{_because(reason)}")
    said = f"{names} moved to node {node}" + (f" from node {here}" if here else "")
    return Deed(said, d.HeldPlaced(held[0].namespace, claims_of_group(book, held), node, Placing.MOVED))


def _of_set(book: Book, command: Command, gpu_set: GpuSet) -> Deed:
    """A VM whose launcher does not run: gathered again, or given up and started anew."""
    vm, node = f"VM {gpu_set.vmi.namespace}/{gpu_set.vmi.name}", gpu_set.node
    if not node:
        raise Refused(f"{vm} waits and has no booking ({gpu_set.reason}): `gpubinder explain` says why")
    if is_leaving(book, gpu_set):
        raise Refused(f"{vm} was given up on node {node} already, and is started anew")
    if waits_for_launcher(book, gpu_set):
        if command.order is Order.MOVE:
            raise Refused(f"{vm} is being pinned to node {node}: give the command again in a moment, or release it")
        return Deed(f"{vm} left node {node}, and is gathered anew", _let_go(book, gpu_set))
    if not is_stoppable(book, gpu_set):
        raise Refused(f"the launcher of {vm} runs on node {node}, or may run: stop or restart the VM")
    if command.node:
        raise Refused(f"{vm} is pinned to node {node}: it can be started anew on another, but which can't be named")
    said = (
        f"{vm} had not started on node {node}: it is started anew, and skips the node for {SKIP_NS // SECOND} seconds"
    )
    return Deed(said, _let_go(book, gpu_set))


def _let_go(book: Book, gpu_set: GpuSet) -> d.Decision:
    decisions: Iterator[d.Decision] = let_go(book, gpu_set, Unkept.COMMANDED)
    return next(decisions)


def _names(held: list[Holding]) -> str:
    return f"claim {', '.join(f'{one.namespace}/{one.claim.name}' for one in held)}"


def _because(reason: object) -> str:
    return f": {reason}" if reason is not None else ""
