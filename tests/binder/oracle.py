"""What should be said of every set, found the slow way: every node, every pod, from the tables alone.

Written apart from the rules it checks: it shares no code with them, and is as plain as it can be.
"""

import msgspec

from binder.state import GpuSet, Holding, State
from schemas.names import GATE
from schemas.objects import (
    ClassView,
    NodeSelectorTerm,
    NodeView,
    PodView,
    Requirement,
    Taint,
    Toleration,
    VmiView,
)
from schemas.reasons import Wait
from tests.binder import oracle_budgets, oracle_held

ORDER = list(Wait)
ON_NODES = ORDER[ORDER.index(Wait.NO_SUCH_DEVICE) :]


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Match as the API documents it: an empty key with Exists is every key, an empty effect every effect."""
    if toleration.effect not in {"", taint.effect}:
        return False
    if toleration.operator == "Exists":
        return toleration.key in {"", taint.key}
    return toleration.operator in {"", "Equal"} and (toleration.key, toleration.value) == (taint.key, taint.value)


def requirement_holds(need: Requirement, value: str | None) -> bool:
    """Match as the API documents it: NotIn and DoesNotExist also hold where the key is missing."""
    if need.operator in {"Gt", "Lt"}:
        if value is None or len(need.values) != 1:
            return False
        texts = (value, need.values[0])
        if not all(text.isascii() and text.lstrip("+-").isdigit() and abs(int(text)) < 1 << 63 for text in texts):
            return False
        have, bound = map(int, texts)
        return have > bound if need.operator == "Gt" else have < bound
    there = value is not None
    listed = there and value in need.values
    answers = {"In": listed, "NotIn": not listed, "Exists": there, "DoesNotExist": not there}
    return answers.get(need.operator, False)


def terms_hold(terms: tuple[NodeSelectorTerm, ...] | None, node: NodeView) -> bool:
    """Terms are ORed, requirements ANDed, an empty term holds for no node."""
    if terms is None:
        return True
    for term in terms:
        needs = [(need, node.labels.get(need.key)) for need in term.match_expressions]
        needs += [(need, node.name if need.key == "metadata.name" else None) for need in term.match_fields]
        if needs and all(requirement_holds(need, value) for need, value in needs):
            return True
    return False


def launcher(state: State, vmi: VmiView) -> PodView | None:
    """Return the pod that is to be placed for a VMI."""
    pods = [pod for pod in state.objects["pods"].values() if isinstance(pod, PodView)]
    admitted = state.admitted.get(vmi.uid)
    found = [
        pod
        for pod in pods
        if admitted is not None
        and (pod.owner_uid, pod.launcher, pod.migration, pod.ended, pod.deleting)
        == (vmi.uid, True, False, False, False)
        and GATE in pod.gates
        and pod.uid in vmi.active_pods
        and pod.admission in admitted.requests
        and [other.uid for other in pods if (other.admission, other.namespace) == (pod.admission, pod.namespace)]
        == [pod.uid]
    ]
    return max(found, key=lambda pod: (pod.created, pod.name), default=None)


def used_on(state: State, node: NodeView, resource: str) -> int:
    """Count what bookings and other pods use of a node, from the tables alone."""
    booked = [gpu_set for gpu_set in state.sets.values() if gpu_set.node == node.name]
    own = {uid for gpu_set in booked for uid in (gpu_set.pod_uid, gpu_set.former) if uid}
    held = [one for one in state.holdings.values() if one.node == node.name and not in_booking(state, one)]
    pods = [pod for pod in state.objects["pods"].values() if isinstance(pod, PodView)]
    return (
        sum(gpu_set.requests.get(resource, 0) for gpu_set in booked)
        + sum(one.claim.count for one in held if one.claim.resource == resource)
        + sum(
            pod.requests.get(resource, 0)
            for pod in pods
            if pod.node == node.name and not pod.ended and pod.uid not in own
        )
    )


def in_booking(state: State, holding: Holding) -> bool:
    """Say whether a launcher's booking counts what a claim holds."""
    gpu_set = state.sets.get(holding.attached.uid) if holding.attached else None
    return gpu_set is not None and bool(gpu_set.node)


def own_on(state: State, uid: str, node: str, resource: str) -> int:
    """Count what the claims attached to a VMI hold on a node."""
    return sum(
        one.claim.count
        for one in state.holdings.values()
        if one.attached and (one.attached.uid, one.node, one.claim.resource) == (uid, node, resource)
    )


def place(state: State, vmi: VmiView) -> tuple[int, bool, int, str, str]:
    """Return where a VMI stands in the queue: less is earlier, and who never waited is behind who did (D6)."""
    pod, first = launcher(state, vmi), state.first_wait.get(vmi.key)
    return (-(pod.priority if pod else 0), first is None, first or 0, vmi.namespace, vmi.name)


def verdict(state: State, vmi: VmiView) -> Wait | str | None:
    """Return the reason a VMI must have been told, "fits NODE" where it must have been placed, None for neither."""
    gpu_set = state.sets.get(vmi.uid)
    pod = launcher(state, vmi)
    if vmi.deleting or vmi.phase in {"Succeeded", "Failed"} or vmi.policy not in {"", "Wait", "Refuse"} or pod is None:
        return None
    if gpu_set is not None and gpu_set.node:
        return None
    if gpu_set is None or not (gpu_set.claims or gpu_set.held):
        return (_classless(state, vmi) or oracle_held.usable(state, vmi)) if _entries(vmi) else None
    return standing(state, vmi, gpu_set, pod) or _over_nodes(state, vmi, gpu_set, pod)


def _entries(vmi: VmiView) -> bool:
    try:
        return bool(msgspec.json.decode(vmi.gpus))
    except msgspec.MsgspecError:
        return False


def _classless(state: State, vmi: VmiView) -> Wait | None:
    entries = msgspec.json.decode(vmi.gpus, type=list[dict[str, str | int]])
    there = {view.name for view in state.objects["gpuclasses"].values()}
    return Wait.CLASS_NOT_FOUND if {one["className"] for one in entries if "className" in one} - there else None


def _asked(gpu_set: GpuSet) -> dict[str, int]:
    asked: dict[str, int] = {}
    for claims in (gpu_set.claims, gpu_set.held):
        for claim in claims:
            asked[claim.resource] = asked.get(claim.resource, 0) + claim.count
    return asked


def paused(state: State) -> bool:
    """Say whether an operator has placing paused."""
    settings = state.objects["configmaps"].values()
    return bool(state.paused) or any(getattr(view, "data", {}).get("paused") == "true" for view in settings)


def standing(state: State, vmi: VmiView, gpu_set: GpuSet, pod: PodView) -> Wait | None:
    """Return why a set is not even asked for a node."""
    asked = _asked(gpu_set)
    classes = {view.name: view for view in state.objects["gpuclasses"].values() if isinstance(view, ClassView)}
    counted = {view.resource for view in classes.values()} | set(asked)
    if gpu_set.retry_ns > state.now_ns:
        return Wait.WRITE_REFUSED
    if paused(state):
        return Wait.PAUSED
    usable = oracle_held.usable(state, vmi)
    if usable is not None:
        return usable
    if pod.gates != (GATE,):
        return Wait.FOREIGN_GATE
    if {name: amount for name, amount in pod.requests.items() if amount and name in counted} != asked:
        return Wait.REQUESTS_MISMATCH
    for name in {*vmi.volumes, *pod.pvcs}:
        pvc = state.pvc(f"{vmi.namespace}/{name}")
        if pvc is None or (pvc.volume and state.pv(pvc.volume) is None):
            return Wait.VOLUME_NOT_FOUND
    if {claim.class_name for claims in (gpu_set.claims, gpu_set.held) for claim in claims} - set(classes):
        return Wait.CLASS_NOT_FOUND
    if oracle_budgets.over(state, vmi.namespace, oracle_budgets.asked(state, gpu_set)):
        return Wait.OVER_BUDGET
    return None


def _over_nodes(state: State, vmi: VmiView, gpu_set: GpuSet, pod: PodView) -> Wait | str:
    best = Wait.NO_SUCH_DEVICE
    fits: list[tuple[int, str]] = []
    for node in state.objects["nodes"].values():
        assert isinstance(node, NodeView)
        reason = obstacle(state, vmi, gpu_set, pod, node)
        if reason is None:
            free = sum(node.allocatable.get(name, 0) - used_on(state, node, name) for name in _asked(gpu_set))
            fits.append((free, node.name))
        elif ORDER.index(reason) > ORDER.index(best):
            best = reason
    return f"fits {min(fits)[1]}" if fits else best


def bears(tolerations: tuple[Toleration, ...], node: NodeView) -> bool:
    """Say whether tolerations allow for every hard taint of a node."""
    hard = [taint for taint in node.taints if taint.effect in {"NoSchedule", "NoExecute"}]
    return all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in hard)


def obstacle(state: State, vmi: VmiView, gpu_set: GpuSet, pod: PodView, node: NodeView) -> Wait | None:
    """Return what keeps a set off a node."""
    asked = _asked(gpu_set)
    if any(node.allocatable.get(name, 0) < count for name, count in asked.items()):
        return Wait.NO_SUCH_DEVICE
    if not node.ready or node.unschedulable or node.deleting:
        return Wait.NODE_NOT_READY
    for name in {claim.class_name: True for claims in (gpu_set.claims, gpu_set.held) for claim in claims}:
        view = state.gpu_class(name)
        assert view is not None
        if not bears(view.tolerations, node):
            return Wait.TAINT_NOT_TOLERATED
    if any(node.labels.get(key) != value for key, value in pod.node_selector.items()) or not terms_hold(
        pod.terms, node
    ):
        return Wait.NODE_AFFINITY
    for name in {*vmi.volumes, *pod.pvcs}:
        pvc = state.pvc(f"{vmi.namespace}/{name}")
        pv = state.pv(pvc.volume) if pvc is not None and pvc.volume else None
        if pv is not None and not terms_hold(pv.terms, node):
            return Wait.VOLUME_ELSEWHERE
    free = {
        name: node.allocatable.get(name, 0) - used_on(state, node, name) + own_on(state, vmi.uid, node.name, name)
        for name in pod.requests
    }
    short = {name for name, amount in pod.requests.items() if amount and amount > free[name]}
    if short & set(asked):
        return Wait.NO_ROOM
    holds_all = all(own_on(state, vmi.uid, node.name, name) >= count for name, count in asked.items())
    if is_kept_from(state, vmi, node.name) and not holds_all:
        return Wait.NODE_KEPT
    if short:
        return Wait.NO_ROOM_OTHER
    return Wait.NODE_SKIPPED if node.name in skipped_nodes(state, vmi.key) else None


def is_kept_from(state: State, vmi: VmiView, node: str) -> bool:
    """Say whether a node is kept for somebody ahead of a VMI (C55)."""
    kept = state.kept
    if kept is None or kept.node != node or kept.vmi.uid == vmi.uid:
        return False
    ahead = state.objects["virtualmachineinstances"].get(f"{kept.vmi.namespace}/{kept.vmi.name}")
    assert isinstance(ahead, VmiView)
    return place(state, ahead) < place(state, vmi)


def skipped_nodes(state: State, vm: str) -> list[str]:
    """Return the nodes that a VM must not be placed on for now: ten minutes, or less where they changed (D7, C41)."""
    found = []
    for node, skip in state.skips.get(vm, {}).items():
        hold_s = 600 if not skip.changed else 0 if skip.fails == 1 else min(600, 60 * 2 ** (skip.fails - 2))
        if state.now_ns < skip.at_ns + hold_s * 1_000_000_000:
            found.append(node)
    return found


def untold(state: State) -> list[str]:
    """Return where the sets of a state were told something else than they should, or not placed where they fit."""
    found = []
    for key, vmi in sorted(state.objects["virtualmachineinstances"].items()):
        assert isinstance(vmi, VmiView)
        should, gpu_set = verdict(state, vmi), state.sets.get(vmi.uid)
        if should is Wait.OVER_BUDGET and gpu_set is not None and gpu_set.reason in ON_NODES:
            # A budget that fills up wakes nobody: who was told of nodes hears of it when a node has a place for it.
            should = gpu_set.reason
        if should is not None and (gpu_set is None or gpu_set.reason != should):
            found.append(f"{key}: told {gpu_set.reason if gpu_set else None}, should be {should}")
    return found + oracle_held.untold(state)
