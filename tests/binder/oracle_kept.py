"""Whom a node should be kept for, and which classes should be guarded or let go: found from the tables alone."""

from binder.state import State
from schemas.names import CLASS_FINALIZER
from schemas.objects import ClaimView, ClassView, NodeView, PodView, VmiView
from schemas.reasons import Wait
from tests.binder import oracle

KEPT_NS = 600_000_000_000


def starved(state: State) -> list[str]:
    """Name who waits for room for more than ten minutes, with a node that could take it, and has none kept for it.

    The first one in line is meant; nobody, where a node is kept for somebody.
    """
    if state.kept is not None:
        return []
    found = []
    for vmi in state.objects["virtualmachineinstances"].values():
        assert isinstance(vmi, VmiView)
        first, gpu_set, pod = state.first_wait.get(vmi.key), state.sets.get(vmi.uid), oracle.launcher(state, vmi)
        if first is not None and first + KEPT_NS <= state.now_ns and gpu_set is not None and pod is not None:
            room = oracle.verdict(state, vmi) in {Wait.NO_ROOM, Wait.NO_ROOM_OTHER}
            found += [vmi.key] if room and able_nodes(state, vmi) else []
    return found


def able_nodes(state: State, vmi: VmiView) -> list[str]:
    """Return the nodes that a waiting VMI's set would fit on if nothing else were there."""
    gpu_set, pod = state.sets.get(vmi.uid), oracle.launcher(state, vmi)
    if (
        oracle.verdict(state, vmi) is None
        or gpu_set is None
        or pod is None
        or oracle.standing(state, vmi, gpu_set, pod) is not None
    ):
        return []
    able = []
    for node in state.objects["nodes"].values():
        assert isinstance(node, NodeView)
        room = oracle.obstacle(state, vmi, gpu_set, pod, node) in {
            None,
            Wait.NO_ROOM,
            Wait.NODE_KEPT,
            Wait.NO_ROOM_OTHER,
        }
        large = all(node.allocatable.get(name, 0) >= amount for name, amount in pod.requests.items() if amount)
        if room and large and node.name not in oracle.skipped_nodes(state, vmi.key):
            able.append(node.name)
    return able


def uses_of(state: State, name: str) -> list[str]:
    """Return the claims and sets of a class; while VMIs are not served, a set counts as long as it has a pod."""
    session = state.sessions.get("virtualmachineinstances")
    owners = {pod.owner_uid for pod in state.objects["pods"].values() if isinstance(pod, PodView)}
    claims = [
        key
        for key, claim in state.objects["gpuclaims"].items()
        if isinstance(claim, ClaimView) and claim.class_name == name
    ]
    return claims + [
        uid
        for uid, gpu_set in state.sets.items()
        if name in {*(one.class_name for one in gpu_set.claims), *(one.class_name for one in gpu_set.held)}
        and (session is None or session.served or uid in owners)
    ]


def unfinalized(state: State) -> list[str]:
    """Name the classes that should have been guarded or freed by now."""
    found = []
    for name, view in state.objects["gpuclasses"].items():
        assert isinstance(view, ClassView)
        ours, said = CLASS_FINALIZER in view.finalizers, state.class_guards.get(name)
        due = not uses_of(state, name) if view.deleting and ours else not view.deleting and not ours
        if due and (said is None or (said.uid, said.freed) != (view.uid, view.deleting)):
            found.append(f"{name}: {'used by nobody' if view.deleting else 'without our finalizer'}")
    return found
