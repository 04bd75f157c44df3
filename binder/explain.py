"""Why a VM runs where it runs, or why it waits, node by node: the same tests that decide, told in words."""

import msgspec

from binder.book import Book
from binder.decide_set import need_of
from binder.placement import Need, obstacle
from binder.rules.serving import tolerates
from binder.state import GpuSet
from binder.usage import units
from schemas.decisions import TemplateClaim
from schemas.objects import NodeView, Taint
from schemas.reasons import Wait


class NodeVerdict(msgspec.Struct, frozen=True):
    """One node's answer: `reason` None means the set would fit; `free` of each resource of the set."""

    node: str
    reason: Wait | None
    detail: str
    free: dict[str, int]
    offered: dict[str, int]


class Explanation(msgspec.Struct, frozen=True):
    """What is known of one VM's set. `phase`: Placed, Waiting, NotStarted, NoGPUs or Unknown.

    `place`: position in the queue from 1, 0 where it does not wait. `since_ns`: logical time it waits.
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
        return Explanation(namespace, name, "NotStarted", "the VM refers to GPUs and has no VMI: it is not started")
    gpu_set = state.sets.get(vmi.uid)
    if gpu_set is None:
        return Explanation(namespace, name, "NotStarted", "no admitted launcher stands behind our gate yet")
    if gpu_set.node:
        told = "pinned, our gate removed" if gpu_set.pinned else "booked, the pin is being written"
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
    verdicts = _verdicts(book, need) if isinstance(need, Need) else ()
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


def _verdicts(book: Book, need: Need) -> tuple[NodeVerdict, ...]:
    nodes = [book.state.node(name) for name in sorted(book.state.objects["nodes"])]
    return tuple(_verdict(book, need, node) for node in nodes if node is not None)


def _verdict(book: Book, need: Need, node: NodeView) -> NodeVerdict:
    reason = obstacle(book, need, node)
    free = {resource: book.free(node, resource) for resource in sorted(need.units)}
    offered = {resource: node.allocatable.get(resource, 0) for resource in sorted(need.units)}
    return NodeVerdict(node.name, reason, _detail(book, need, node, reason), free, offered)


def _detail(book: Book, need: Need, node: NodeView, reason: Wait | None) -> str:
    match reason:
        case None:
            return "would fit"
        case Wait.NO_SUCH_DEVICE:
            short = {r: n for r, n in sorted(need.units.items()) if node.allocatable.get(r, 0) < n}
            return "; ".join(f"offers {node.allocatable.get(r, 0)} of {n} {r}" for r, n in short.items())
        case Wait.NODE_NOT_READY:
            return "cordoned" if node.unschedulable else "being deleted" if node.deleting else "not ready"
        case Wait.TAINT_NOT_TOLERATED:
            return "taint " + ", ".join(_taint(taint) for taint in _hard(node, need)) + " not tolerated by every class"
        case Wait.NODE_AFFINITY:
            return "the launcher's node selector or required affinity does not accept it"
        case Wait.VOLUME_ELSEWHERE:
            return "a volume can't be reached from it"
        case Wait.NO_ROOM:
            return _short(book, node, need.units)
        case Wait.NO_ROOM_OTHER:
            return _short(book, node, need.requests)
        case _:
            return str(reason)


def _short(book: Book, node: NodeView, wanted: dict[str, int]) -> str:
    return "; ".join(
        f"{max(book.free(node, name), 0)} of {amount} {name} free"
        for name, amount in sorted(wanted.items())
        if amount and book.free(node, name) < amount
    )


def _hard(node: NodeView, need: Need) -> list[Taint]:
    return [
        taint
        for taint in node.taints
        if taint.effect in {"NoSchedule", "NoExecute"}
        and not all(tolerates(tolerations, taint) for tolerations in need.tolerations)
    ]


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def held(book: Book) -> list[tuple[GpuSet, dict[str, int]]]:
    """Return every set with its units, by namespace and VMI name: what a table of the state shows."""
    sets = sorted(book.state.sets.values(), key=lambda gpu_set: gpu_set.vmi)
    return [(gpu_set, units(gpu_set)) for gpu_set in sets]
