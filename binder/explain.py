"""Why a VM runs where it runs, or why it waits, node by node: the same tests that decide, told in words."""

import msgspec

from binder.book import Book
from binder.decide_set import need_of
from binder.placement import Need, obstacle
from binder.rules.serving import HARD_EFFECTS, terms_accept, tolerates
from binder.skips import SECOND, end_of
from binder.state import GpuSet
from binder.usage import units
from schemas.decisions import TemplateClaim
from schemas.objects import NodeSelectorTerm, NodeView, PodView, Taint, VmiView
from schemas.reasons import Wait

CPU, IN_BYTES, HUGE_PAGES = "cpu", ("memory", "ephemeral-storage"), "hugepages-"
MEBIBYTE = 1024 * 1024
NOT_STARTED = "it has no VMI: it is stopped, or its start was refused, which its events tell"


class NodeVerdict(msgspec.Struct, frozen=True):
    """One node's answer: `reason` None means the set would fit; `free` of each resource of the set."""

    node: str
    reason: Wait | None
    detail: str
    free: dict[str, int]
    offered: dict[str, int]


class Explanation(msgspec.Struct, frozen=True):
    """What is known of one VM's set. `phase`: Placed, Waiting, NotStarted or Unknown.

    `place`: position in the queue from 1, 0 where it does not wait. `waits_ns`: logical time it waits.
    """

    namespace: str
    name: str
    phase: str
    summary: str
    node: str = ""
    pod: str = ""
    pinned: bool = False
    reason: Wait | None = None
    claims: tuple[TemplateClaim, ...] = ()
    place: int = 0
    waits_ns: int = 0
    nodes: tuple[NodeVerdict, ...] = ()


def explain(book: Book, namespace: str, name: str) -> Explanation:
    """Return why the VM (or bare VMI) `namespace/name` stands where it stands."""
    state, key = book.state, f"{namespace}/{name}"
    vmi = state.vmi(key)
    if vmi is None:
        known = state.vm(key)
        if known is None:
            return Explanation(namespace, name, "Unknown", "no VM or VMI with a GPU reference has this name")
        return Explanation(namespace, name, "NotStarted", NOT_STARTED)
    gpu_set = state.sets.get(vmi.uid)
    if gpu_set is None:
        return Explanation(namespace, name, "NotStarted", "no admitted launcher stands behind our gate yet")
    if gpu_set.node:
        told = "pinned, our gate removed" if gpu_set.pinned else "booked, the pin is being written"
        told = gpu_set.leaving.message if gpu_set.leaving is not None else told
        return Explanation(
            namespace,
            name,
            "Placed",
            f"on {gpu_set.node}: {told}",
            gpu_set.node,
            gpu_set.pod,
            gpu_set.pinned,
            None,
            gpu_set.claims,
        )
    pod = book.launcher_of(vmi)
    need = need_of(book, vmi, gpu_set, pod) if pod is not None and gpu_set.claims else None
    asked = _Asked(book, key, need, _volumes(book, vmi, pod)) if pod is not None and isinstance(need, Need) else None
    verdicts = _verdicts(asked) if asked is not None else ()
    waiting = [uid for uid, other in state.sets.items() if other.reason is not None and not other.node]
    first = state.first_wait.get(key, gpu_set.opened_ns)
    return Explanation(
        namespace,
        name,
        "Waiting" if gpu_set.reason else "NotStarted",
        gpu_set.message or (f"its booking ended: {gpu_set.released}" if gpu_set.released else "being looked at"),
        reason=gpu_set.reason,
        claims=gpu_set.claims,
        place=book.in_line(waiting).index(vmi.uid) + 1 if gpu_set.reason else 0,
        waits_ns=state.now_ns - first if gpu_set.reason else 0,
        nodes=verdicts,
    )


class _Asked(msgspec.Struct, frozen=True):
    """What the waiting set of `vm` asks of each node; `volumes`: its bound ones by name, with who reaches them."""

    book: Book
    vm: str
    need: Need
    volumes: dict[str, tuple[NodeSelectorTerm, ...]]


def _volumes(book: Book, vmi: VmiView, pod: PodView) -> dict[str, tuple[NodeSelectorTerm, ...]]:
    found = {}
    for name in sorted({*vmi.volumes, *pod.pvcs}):
        pvc = book.state.pvc(f"{vmi.namespace}/{name}")
        pv = book.state.pv(pvc.volume) if pvc is not None and pvc.volume else None
        if pv is not None and pv.terms is not None:
            found[name] = pv.terms
    return found


def _verdicts(asked: _Asked) -> tuple[NodeVerdict, ...]:
    nodes = [asked.book.state.node(name) for name in sorted(asked.book.state.objects["nodes"])]
    return tuple(_verdict(asked, node) for node in nodes if node is not None)


def _verdict(asked: _Asked, node: NodeView) -> NodeVerdict:
    reason = obstacle(asked.book, asked.need, node)
    free = {resource: asked.book.free(node, resource) for resource in sorted(asked.need.units)}
    offered = {resource: node.allocatable.get(resource, 0) for resource in sorted(asked.need.units)}
    return NodeVerdict(node.name, reason, _detail(asked, node, reason), free, offered)


def _detail(asked: _Asked, node: NodeView, reason: Wait | None) -> str:
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
            return _short(asked.book, node, need.units)
        case Wait.NO_ROOM_OTHER:
            return _short(asked.book, node, need.requests)
        case Wait.NODE_SKIPPED:
            return _skipped(asked, node)
        case _:
            return str(reason)


def _skipped(asked: _Asked, node: NodeView) -> str:
    """Say what the node did, how often, and how long it is skipped for unless it changes first."""
    skip = asked.book.skips.at(asked.vm, node.name)
    if skip is None:
        return str(Wait.NODE_SKIPPED)
    left = (end_of(skip) - asked.book.state.now_ns + SECOND - 1) // SECOND
    until = f"for {left} s more" if skip.changed else f"until it changes, for {left} s at most"
    return f"did not take this VM ({skip.why}, {skip.fails} in a row): skipped {until}"


def _short(book: Book, node: NodeView, wanted: dict[str, int]) -> str:
    return "; ".join(
        f"{_amount(name, max(book.free(node, name), 0))} of {_amount(name, amount)} {name} free"
        for name, amount in sorted(wanted.items())
        if amount and book.free(node, name) < amount
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


def held(book: Book) -> list[tuple[GpuSet, dict[str, int]]]:
    """Return every set with its units, by namespace and VMI name: what a table of the state shows."""
    sets = sorted(book.state.sets.values(), key=lambda gpu_set: gpu_set.vmi)
    return [(gpu_set, units(gpu_set)) for gpu_set in sets]
