"""Nodes that did not take a VM's launcher: skipped for that VM for ten minutes, or until they change (D7).

A refusal is remembered by VM, namespace and name, so that the next VMI of it knows. A change of the
node ends the first skip at once; after each further refusal in a row a change has to wait longer, so
that a flapping device plugin can't burn one VMI per flap (C41).
"""

import heapq

from binder.members import Members
from binder.state import GpuSet, Holding, Skip, State
from schemas import decisions as d
from schemas.objects import NodeView, PodView
from schemas.reasons import GiveUp

SECOND = 1_000_000_000
SKIP_NS = 600 * SECOND
"""For so much logical time a node is skipped that does not change."""

HOLD_NS_FIRST = 60 * SECOND
"""So long a change waits after the second refusal in a row; doubling, to ten minutes (C41)."""

DOUBLINGS_MAX = 8
KEPT_NS = 3600 * SECOND
"""Refusals no further apart than this are in a row, unless a launcher of the VM ran on the node between them."""

STUCK_NS = 120 * SECOND
"""For so much logical time a pinned pod may be unschedulable before it is given up (C17)."""

START_NS = 60 * SECOND
"""For so much logical time a VMI may be on its way from its admission into the API server: twice its longest (T18)."""

LEAVING_NS = 300 * SECOND
"""After so much logical time a VMI that was given up and is still there is given up once more (D8)."""

OUT_OF = "OutOf"
REFUSALS = ("UnexpectedAdmissionError", "TopologyAffinityError")
REASON_CHARS_MAX = 128


def is_refusal(reason: str) -> bool:
    """Say whether a failed pod's reason is a kubelet's refusal for lack of resources; no other one is (C15)."""
    return reason in REFUSALS or (reason.startswith(OUT_OF) and reason != OUT_OF)


def refusal_of(gpu_set: GpuSet, pod: PodView) -> str:
    """Return why the booked node refused the pod that was pinned to it, '' where it did not.

    A pod that shows a container which was started was taken, whatever it died of.
    """
    refused = pod.phase == "Failed" and pod.node == gpu_set.node and not pod.ran and is_refusal(pod.reason)
    return pod.reason[:REASON_CHARS_MAX] if refused else ""


def looks_otherwise(before: NodeView, after: NodeView) -> bool:
    """Say whether a node changed in what may end a refusal: another machine, allocatable, taints, readiness."""
    return (before.uid, before.allocatable, before.taints, before.ready) != (
        after.uid,
        after.allocatable,
        after.taints,
        after.ready,
    )


def end_of(skip: Skip) -> int:
    """Return the logical time at which a node is tried again."""
    if not skip.changed:
        return skip.at_ns + SKIP_NS
    hold = HOLD_NS_FIRST << min(skip.fails - 2, DOUBLINGS_MAX) if skip.fails > 1 else 0
    return skip.at_ns + min(hold, SKIP_NS)


def giving_up(gpu_set: GpuSet, now_ns: int) -> d.NodeSkipped | None:
    """Give up a pinned launcher that its node refused, or that kube-scheduler can't place there for too long."""
    node = gpu_set.node
    if not gpu_set.pinned:
        # An API server back from a backup may show it behind our gate again.
        return None
    if gpu_set.refusal:
        cause, why = GiveUp.REFUSED, f"node {node} refused the launcher ({gpu_set.refusal})"
    elif gpu_set.stuck_ns and gpu_set.stuck_ns + STUCK_NS <= now_ns:
        cause = GiveUp.NOT_SCHEDULED
        why = f"kube-scheduler did not let the launcher onto node {node} for {STUCK_NS // SECOND} seconds"
    else:
        return None
    until = "ten minutes, or until its resources, taints or readiness change"
    message = f"{why}: the node is skipped for this VM for {until}"
    return d.NodeSkipped(gpu_set.vmi, node, gpu_set.pod, gpu_set.pod_uid, cause, message)


def deadlines_of(one: GpuSet | Holding | None) -> tuple[int, ...]:
    """Return when a set must be looked at again: for a refused write, a pod that is stuck, a VMI that goes.

    Of a held claim: when one that an operator released may be bound anew.
    """
    if one is None:
        return ()
    retry = (one.retry_ns,) if one.retry_ns else ()
    if isinstance(one, Holding):
        return retry
    stuck = (one.stuck_ns + STUCK_NS,) if one.stuck_ns else ()
    leaving = (one.leaving.at_ns + LEAVING_NS,) if one.leaving else ()
    start = (one.start.at_ns + START_NS,) if one.start and not one.start.due else ()
    return (*retry, *stuck, *leaving, *start)


class Skips:
    """The state's skips with their indexes: VMs by node, and when what ends."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.vms = Members()
        self.due: list[tuple[int, str, str]] = []
        for key, nodes in state.skips.items():
            for node, skip in nodes.items():
                self._index(key, node, skip)

    def of(self, key: str) -> tuple[str, ...]:
        """Return the nodes that are skipped for a VM (namespace/name) now, by name."""
        nodes = self._state.skips.get(key)
        if not nodes:
            return ()
        now_ns = self._state.now_ns
        return tuple(sorted(node for node, skip in nodes.items() if now_ns < end_of(skip)))

    def at(self, key: str, node: str) -> Skip | None:
        """Return what is remembered of a VM and a node, also after the skip has ended."""
        return self._state.skips.get(key, {}).get(node)

    def put(self, key: str, node: str, skip: Skip | None) -> None:
        """Remember a refusal, or forget it (None)."""
        nodes = self._state.skips.setdefault(key, {})
        if skip is not None:
            nodes[node] = skip
            self._index(key, node, skip)
            return
        nodes.pop(node, None)
        self.vms.drop(node, key)
        if not nodes:
            del self._state.skips[key]

    def ended(self) -> list[str]:
        """Forget what is old; return the VMs whose skips have ended by now, in the order of their ends."""
        now_ns = self._state.now_ns
        if not self.due or self.due[0][0] > now_ns:
            # This is asked at every input.
            return []
        found = dict[str, bool]()
        while self.due and self.due[0][0] <= now_ns:
            at_ns, key, node = heapq.heappop(self.due)
            skip = self.at(key, node)
            if skip is None:
                continue
            if at_ns == end_of(skip):
                found[key] = True
            if at_ns == skip.at_ns + KEPT_NS:
                self.put(key, node, None)
        return list(found)

    def open_dues(self) -> list[tuple[int, str, str]]:
        """Return the ends that are still to come, each once: others are left over from what was overtaken."""
        now_ns = self._state.now_ns
        return sorted({due for due in self.due if due[0] > now_ns and self._stands(due)})

    def _stands(self, due: tuple[int, str, str]) -> bool:
        skip = self.at(due[1], due[2])
        return skip is not None and due[0] in (end_of(skip), skip.at_ns + KEPT_NS)

    def _index(self, key: str, node: str, skip: Skip) -> None:
        self.vms.add(node, key)
        for at_ns in (end_of(skip), skip.at_ns + KEPT_NS):
            # What is over by now has been acted on: a restart must not act on it again.
            if at_ns > self._state.now_ns:
                heapq.heappush(self.due, (at_ns, key, node))
