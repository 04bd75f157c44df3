"""Choose one node for a whole set: the fullest with room that serves it, or the nearest reason why none.

Room = allocatable - units booked - effective requests of other pods, for every resource the launcher
requests. "Fullest" = fewest free units over the set's resources, then node name (D6). A reason is the
one of the node that came nearest (`reasons.Wait` is in that order), so that it is the same whatever
the order of asking.
"""

from collections.abc import Iterable

import msgspec

from binder.book import Amounts, Book
from binder.rules.serving import every_class_tolerates, selector_accepts, terms_accept
from schemas.objects import NodeSelectorTerm, NodeView, Toleration
from schemas.reasons import Wait

NEARNESS = {reason: place for place, reason in enumerate(Wait)}


class Need(msgspec.Struct, frozen=True):
    """What a set asks of its node: GPU units by resource, all the launcher requests, who must accept it."""

    units: Amounts
    requests: Amounts
    tolerations: tuple[tuple[Toleration, ...], ...]
    selector: dict[str, str]
    terms: tuple[NodeSelectorTerm, ...] | None
    volumes: tuple[tuple[NodeSelectorTerm, ...], ...]


def obstacle(book: Book, need: Need, node: NodeView) -> Wait | None:
    """Return what keeps the set off this node, the tests in the order of `Wait`; None if it fits."""
    if any(node.allocatable.get(resource, 0) < count for resource, count in need.units.items()):
        return Wait.NO_SUCH_DEVICE
    if not node.ready or node.unschedulable or node.deleting:
        return Wait.NODE_NOT_READY
    if not every_class_tolerates(need.tolerations, node):
        return Wait.TAINT_NOT_TOLERATED
    if not selector_accepts(need.selector, node) or not terms_accept(need.terms, node):
        return Wait.NODE_AFFINITY
    if not all(terms_accept(terms, node) for terms in need.volumes):
        return Wait.VOLUME_ELSEWHERE
    if any(book.free(node, resource) < count for resource, count in need.units.items()):
        return Wait.NO_ROOM
    # A request of zero asks for nothing, also where a node is over-committed in that resource.
    if any(book.free(node, resource) < amount for resource, amount in need.requests.items() if amount):
        return Wait.NO_ROOM_OTHER
    return None


def choose(book: Book, need: Need, among: Iterable[str] | None = None) -> tuple[str, Wait]:
    """Return (node, _) where the set fits, or ("", nearest reason).

    `among`: the only nodes that can have become fit since the set was last told its reason.
    """
    if among is not None:
        fit = _fit_among(book, need, among)
        if fit:
            return fit, Wait.NO_ROOM
    nearest = Wait.NO_SUCH_DEVICE
    for name in _fullest_first(book, need):
        node = book.state.objects["nodes"][name]
        reason = obstacle(book, need, node)  # type: ignore[arg-type]  # the table holds nodes
        if reason is None:
            return name, Wait.NO_ROOM
        if NEARNESS[reason] > NEARNESS[nearest]:
            nearest = reason
    if NEARNESS[nearest] >= NEARNESS[Wait.NO_ROOM]:
        return "", nearest
    return "", _nearest_without_room(book, need, nearest)


def _fit_among(book: Book, need: Need, among: Iterable[str]) -> str:
    fits = [
        (sum(book.free(node, resource) for resource in need.units), name)
        for name in among
        if (node := book.state.node(name)) is not None and obstacle(book, need, node) is None
    ]
    return min(fits)[1] if fits else ""


def _fullest_first(book: Book, need: Need) -> Iterable[str]:
    """Return the nodes with GPU room: the list of the scarcest resource, by free units over all."""
    lists = [book.roomy(resource, count) for resource, count in need.units.items()]
    shortest = min(lists, key=len, default=[])
    if len(need.units) <= 1:
        return (name for _, name in shortest)
    sums = [
        (sum(book.free(node, resource) for resource in need.units), name)
        for _, name in shortest
        if (node := book.state.node(name)) is not None
    ]
    return (name for _, name in sorted(sums))


def _nearest_without_room(book: Book, need: Need, nearest: Wait) -> Wait:
    """Look at the nodes that offer the resources but are full; stop at the first that would serve."""
    resource = min(need.units, key=lambda name: (len(book.ranked.get(name, ())), name), default="")
    for _, name in book.ranked.get(resource, ()):
        node = book.state.node(name)
        reason = obstacle(book, need, node) if node is not None else None
        if reason is not None and NEARNESS[reason] > NEARNESS[nearest]:
            nearest = reason
            if reason is Wait.NO_ROOM:
                break
    return nearest
