"""Each node's answer to what waits for one: the same tests that decide, told in words."""

import msgspec

from binder.book import Book
from binder.placement import NOTHING, Need, obstacle
from binder.rules.serving import HARD_EFFECTS, terms_accept, tolerates
from binder.skips import SECOND, end_of
from schemas.objects import NodeSelectorTerm, NodeView, PodView, Taint, VmiView
from schemas.reasons import Wait

CPU, IN_BYTES, HUGE_PAGES = "cpu", ("memory", "ephemeral-storage"), "hugepages-"
MEBIBYTE = 1024 * 1024


class NodeVerdict(msgspec.Struct, frozen=True):
    """One node's answer: `reason` None means the set would fit; `free` of each resource of the set."""

    node: str
    reason: Wait | None
    detail: str
    free: dict[str, int]
    offered: dict[str, int]


class Asked(msgspec.Struct, frozen=True):
    """What the waiting set of `vm`, or held claims, ask of each node.

    `volumes`: the VM's bound ones by name, with who reaches them.
    """

    book: Book
    vm: str
    need: Need
    volumes: dict[str, tuple[NodeSelectorTerm, ...]] = {}

    def free(self, node: NodeView, resource: str) -> int:
        """Return what is free on a node for it: its held claims' own units there are."""
        return self.book.free(node, resource) + self.need.own.get(node.name, NOTHING).get(resource, 0)


def volumes_of(book: Book, vmi: VmiView, pod: PodView) -> dict[str, tuple[NodeSelectorTerm, ...]]:
    """Return a VM's bound volumes by name, with the terms of the nodes that reach each; others restrict nothing."""
    found = {}
    for name in sorted({*vmi.volumes, *pod.pvcs}):
        pvc = book.state.pvc(f"{vmi.namespace}/{name}")
        pv = book.state.pv(pvc.volume) if pvc is not None and pvc.volume else None
        if pv is not None and pv.terms is not None:
            found[name] = pv.terms
    return found


def verdicts(asked: Asked) -> tuple[NodeVerdict, ...]:
    """Return every node's answer, by name."""
    nodes = [asked.book.state.node(name) for name in sorted(asked.book.state.objects["nodes"])]
    return tuple(_verdict(asked, node) for node in nodes if node is not None)


def _verdict(asked: Asked, node: NodeView) -> NodeVerdict:
    reason = obstacle(asked.book, asked.need, node)
    free = {resource: asked.free(node, resource) for resource in sorted(asked.need.units)}
    offered = {resource: node.allocatable.get(resource, 0) for resource in sorted(asked.need.units)}
    return NodeVerdict(node.name, reason, _detail(asked, node, reason), free, offered)


def _detail(asked: Asked, node: NodeView, reason: Wait | None) -> str:
    need = asked.need
    match reason:
        case None:
            return "would fit"
        case Wait.NO_SUCH_DEVICE:
            short = {r: n for r, n in sorted(need.units.items()) if node.allocatable.get(r, 0) < n}
            return "; ".join(f"offers {node.allocatable.get(r, 0)} of {n} {r}" for r, n in short.items())
        case Wait.NODE_NOT_READY:
            return "cordoned" if node.unschedulable else "being deleted" if node.deleting else "not ready"
        case Wait.TAINT_NOT_TOLERATED:
            return "not tolerated: taint " + ", ".join(_taint(taint) for taint in _hard(node, need))
        case Wait.NODE_AFFINITY:
            wrong = [f"{key}={value}" for key, value in need.selector.items() if node.labels.get(key) != value]
            return f"node selector {', '.join(sorted(wrong))}" if wrong else "required node affinity"
        case Wait.VOLUME_ELSEWHERE:
            away = [name for name, terms in asked.volumes.items() if not terms_accept(terms, node)]
            return f"out of its reach: volume {', '.join(away)}"
        case Wait.NO_ROOM:
            return _short(asked, node, need.units)
        case Wait.NODE_KEPT:
            return _kept(asked.book)
        case Wait.NO_ROOM_OTHER:
            return _short(asked, node, need.requests)
        case Wait.NODE_SKIPPED:
            return _skipped(asked, node)
        case _:
            return str(reason)


def _skipped(asked: Asked, node: NodeView) -> str:
    """Say what the node did, how often, and how long it is skipped for unless it changes first."""
    skip = asked.book.skips.at(asked.vm, node.name)
    if skip is None:
        return str(Wait.NODE_SKIPPED)
    left = (end_of(skip) - asked.book.state.now_ns + SECOND - 1) // SECOND
    until = f"for {left} s more" if skip.changed else f"until it changes, for {left} s at most"
    return f"did not take this VM ({skip.why}, {skip.fails} in a row): skipped {until}"


def _kept(book: Book) -> str:
    kept = book.state.kept
    return f"kept for {kept.vmi.namespace}/{kept.vmi.name}, which has waited longer" if kept is not None else "kept"


def _short(asked: Asked, node: NodeView, wanted: dict[str, int]) -> str:
    return "; ".join(
        f"{_amount(name, max(asked.free(node, name), 0))} of {_amount(name, amount)} {name} free"
        for name, amount in sorted(wanted.items())
        if amount and asked.free(node, name) < amount
    )


def _amount(name: str, amount: int) -> str:
    """Return an amount as people write it: cores, MiB, units."""
    if name == CPU:
        rest = f"{amount % 1000:03}".rstrip("0")
        return f"{amount // 1000}.{rest}" if rest else str(amount // 1000)
    if name in IN_BYTES or name.startswith(HUGE_PAGES):
        return f"{amount // MEBIBYTE:,}Mi"
    return str(amount)


def _hard(node: NodeView, need: Need) -> list[Taint]:
    return [
        taint
        for taint in node.taints
        if taint.effect in HARD_EFFECTS and not all(tolerates(tolerations, taint) for tolerations in need.tolerations)
    ]


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
