"""The promises about held claims: what is attached is where its set is, and what goes together is never split."""

from collections.abc import Iterator

from binder.book import Book
from binder.evolve import is_dirty, may_place
from binder.settings import is_paused
from binder.state import Holding, State
from schemas.objects import ClaimView


def broken(book: Book) -> Iterator[str]:
    """Return the broken promises about held claims."""
    state = book.state
    quiet = may_place(state) and not is_dirty(state) and not is_paused(state, book.settings)
    for key, holding in sorted(state.holdings.items()):
        view = state.claim(key)
        if view is None or view.template or (view.uid, view.namespace) != (holding.claim.uid, holding.namespace):
            yield f"claim {key} is held, and not seen"
        yield from _holding(f"claim {key}", state, holding)
    for key, claim in sorted(state.objects["gpuclaims"].items()):
        if key not in state.holdings and isinstance(claim, ClaimView) and not claim.template:
            yield f"claim {key} is seen, and nothing is kept of it"
    for group in sorted(book.held.members.table()) if quiet else ():
        yield from _group(group, book.held.of(group), told=not book.goes_with_set(group))


def _holding(who: str, state: State, holding: Holding) -> Iterator[str]:
    gpu_set = state.sets.get(holding.attached.uid) if holding.attached else None
    if holding.attached is not None and (gpu_set is None or gpu_set.vmi != holding.attached):
        yield f"{who} is attached to {holding.attached}, which has no set"
    if gpu_set is not None and not any((one.name, one.uid) == _named(holding) for one in gpu_set.held):
        yield f"{who} is attached to {gpu_set.vmi}, which does not hold it"
    if gpu_set is not None and gpu_set.node and gpu_set.node != holding.node:
        yield f"{who} is on {holding.node!r}, its set on {gpu_set.node}"
    if holding.freed and (holding.node or holding.lost or holding.attached):
        yield f"{who} is freed, and has something"
    if holding.node and (holding.lost or holding.reason):
        yield f"{who} is on {holding.node}, and Lost or waits"
    if holding.node and not holding.claim.resource:
        yield f"{who} is on {holding.node}, and counted by no resource"
    if max(holding.confirmed, holding.told) > holding.stamp:
        yield f"{who} was confirmed or told by a decision newer than its newest"


def _named(holding: Holding) -> tuple[str, str]:
    return holding.claim.name, holding.claim.uid


def _group(group: str, held: list[Holding], *, told: bool) -> Iterator[str]:
    nodes = {one.node: True for one in held if one.node}
    lost = [one for one in held if one.lost]
    if len(nodes) > 1:
        yield f"group {group} is split over {sorted(nodes)} (D10)"
    if lost and len(lost) != len(held):
        yield f"group {group} is partly Lost (D10)"
    if told and any(not one.node and one.reason is None for one in held):
        yield f"group {group} waits and was told no reason"
