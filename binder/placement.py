"""Choose one node for a whole set: the fullest with room that serves it; or say how near any came.

Room = allocatable - units booked - effective requests of other pods, for every resource the launcher
requests. "Fullest" = fewest free units over the set's resources, then node name (D6). A reason is the
one of the node that came nearest (`reasons.Wait` is in that order), so that it is the same whatever
the order of asking.
"""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from binder.book import Book
from binder.rules.serving import every_class_tolerates, selector_accepts, terms_accept
from binder.usage import Amounts
from schemas.objects import NodeSelectorTerm, NodeView, Toleration
from schemas.reasons import Wait

NEAREST = Wait.NODE_SKIPPED
NOTHING: Amounts = {}
ROOM_ALONE = (None, Wait.NO_ROOM, Wait.NODE_KEPT, Wait.NO_ROOM_OTHER)
NEARNESS = {reason: place for place, reason in enumerate(Wait)}


class Need(msgspec.Struct, frozen=True):
    """What a set asks of its node: GPU units by resource, all the launcher requests, who must accept it.

    `skipped`: nodes that did not take a launcher of this VM a short while ago (D7). `own`: units that its held
    claims have already, by node. `kept`: the node that is kept for somebody ahead of it in line.
    """

    units: Amounts
    requests: Amounts
    tolerations: tuple[tuple[Toleration, ...], ...]
    selector: dict[str, str]
    terms: tuple[NodeSelectorTerm, ...] | None
    volumes: tuple[tuple[NodeSelectorTerm, ...], ...]
    skipped: tuple[str, ...] = ()
    own: dict[str, Amounts] = {}
    kept: str = ""


def obstacle(book: Book, need: Need, node: NodeView) -> Wait | None:
    """Return what keeps the set off this node, the tests in the order of `Wait`; None if it fits."""
    allocatable = node.allocatable
    for resource, count in need.units.items():
        if allocatable.get(resource, 0) < count:
            return Wait.NO_SUCH_DEVICE
    if not node.ready or node.unschedulable or node.deleting:
        return Wait.NODE_NOT_READY
    if node.taints and not every_class_tolerates(need.tolerations, node):
        return Wait.TAINT_NOT_TOLERATED
    if not selector_accepts(need.selector, node) or not terms_accept(need.terms, node):
        return Wait.NODE_AFFINITY
    for terms in need.volumes:
        if not terms_accept(terms, node):
            return Wait.VOLUME_ELSEWHERE
    own = need.own.get(node.name, NOTHING) if need.own else NOTHING
    for resource, count in need.units.items():
        if book.free(node, resource) + own.get(resource, 0) < count:
            return Wait.NO_ROOM
    if node.name == need.kept and any(own.get(resource, 0) < count for resource, count in need.units.items()):
        # Who has all its units there takes none of those that become free.
        return Wait.NODE_KEPT
    for resource, amount in need.requests.items():
        # A request of zero asks for nothing, also where a node is over-committed in that resource.
        if amount and book.free(node, resource) + own.get(resource, 0) < amount:
            return Wait.NO_ROOM_OTHER
    return Wait.NODE_SKIPPED if node.name in need.skipped else None


def kept_from(book: Book, uid: str = "") -> str:
    """Return the node that is kept for somebody ahead of a set, '' if there is none; who has no set is behind all."""
    kept = book.state.kept
    if kept is None or kept.vmi.uid == uid or not kept.node:
        return ""
    return "" if uid and book.rank(uid) < kept.rank else kept.node


def could_take(book: Book, need: Need, node: NodeView) -> bool:
    """Say whether a set would fit on a node if nothing else were there."""
    if obstacle(book, need, node) not in ROOM_ALONE or node.name in need.skipped:
        return False
    return all(node.allocatable.get(resource, 0) >= amount for resource, amount in need.requests.items() if amount)


def distance(book: Book, need: Need, node: NodeView) -> tuple[int, int]:
    """Return how many of the set's units are not free on a node, and of how many other resources too little is."""
    own = need.own.get(node.name, NOTHING)
    short = {name: max(count - book.free(node, name) - own.get(name, 0), 0) for name, count in need.units.items()}
    others = [name for name, amount in need.requests.items() if name not in short and amount > book.free(node, name)]
    return sum(short.values()), len(others)


def nearest_to_fit(book: Book, need: Need) -> str:
    """Return the node that lacks least of those that could take the set, then by name; '' if there is none."""
    able = [node for node in _offering(book, need) if could_take(book, need, node)]
    return min(((*distance(book, need, node), node.name) for node in able), default=(0, 0, ""))[-1]


def fit(book: Book, need: Need, among: Collection[str] | None = None) -> str:
    """Return the node where its held claims are, if the set fits there; else the fullest that it fits on; '' for none.

    `among`: the only nodes that can fit, None for all.
    """
    for node in _homes(book, need):
        if (among is None or node.name in among) and obstacle(book, need, node) is None:
            return node.name
    for node in _fullest_first(book, need) if among is None else _by_fullness(book, need, among):
        if obstacle(book, need, node) is None:
            return node.name
    return ""


def nearest(book: Book, need: Need, before: Wait | None = None, among: Iterable[str] | None = None) -> Wait:
    """Return the reason of the node that came nearest, for a set that fits on none.

    `before`: the nearest over all nodes as they were before those `among` changed.
    """
    if book.usage.is_too_much(need.units):
        # So says every node: none has to be asked.
        return Wait.NO_SUCH_DEVICE
    known, best = before, Wait.NO_SUCH_DEVICE
    if known is not None and among is not None:
        best = _nearest_of(book, need, _nodes(book, among), NEAREST)
        if NEARNESS[best] >= NEARNESS[known]:
            return best
    else:
        known = NEAREST
    if NEARNESS[known] > NEARNESS[Wait.NO_ROOM]:
        best = _nearer(best, _nearest_of(book, need, _homes(book, need), known))
        best = _nearer(best, _nearest_of(book, need, _fullest_first(book, need), known))
        if NEARNESS[best] >= NEARNESS[Wait.NO_ROOM]:
            return best
        # Whoever has room was asked: of the others none can come nearer than this.
        known = Wait.NO_ROOM
    return _nearer(best, _nearest_of(book, need, _offering(book, need), known))


def _nearest_of(book: Book, need: Need, nodes: Iterable[NodeView], enough: Wait) -> Wait:
    best = Wait.NO_SUCH_DEVICE
    for node in nodes:
        best = _nearer(best, obstacle(book, need, node) or best)
        if NEARNESS[best] >= NEARNESS[enough]:
            break
    return best


def _nearer(one: Wait, other: Wait) -> Wait:
    return one if NEARNESS[one] >= NEARNESS[other] else other


def _nodes(book: Book, names: Iterable[str]) -> Iterator[NodeView]:
    return (node for name in names if (node := book.state.node(name)) is not None)


def _homes(book: Book, need: Need) -> Iterator[NodeView]:
    """Return the nodes where its held claims are, most units first, then by name: there it needs the others alone."""
    if not need.own:
        return iter(())
    return _nodes(book, sorted(need.own, key=lambda name: (-sum(need.own[name].values()), name)))


def _by_fullness(book: Book, need: Need, names: Iterable[str]) -> list[NodeView]:
    """Return nodes by free units over the set's resources, then by name."""
    return sorted(
        _nodes(book, names),
        key=lambda node: (sum(book.free(node, resource) for resource in need.units), node.name),
    )


def _fullest_first(book: Book, need: Need) -> Iterable[NodeView]:
    """Return the nodes with GPU room: the list of the scarcest resource, by free units over all."""
    usage, asked = book.usage, need.units
    scarcest = min(asked, key=lambda name: (usage.roomy_count(name, asked[name]), name))
    names = usage.roomy(scarcest, asked[scarcest])
    # One resource: its list is in that order already.
    return _nodes(book, names) if len(asked) == 1 else _by_fullness(book, need, names)


def _offering(book: Book, need: Need) -> Iterator[NodeView]:
    """Return the nodes that offer the resource that fewest nodes offer."""
    ranked = book.usage.ranked
    resource = min(need.units, key=lambda name: (len(ranked.get(name, ())), name))
    return _nodes(book, (name for _, name in ranked.get(resource, ())))
