"""What should be said of every held claim, found the slow way: every claim, VM and node, from the tables alone."""

import msgspec

from binder.state import Holding, State
from schemas.objects import ClassView, NodeView, VmiView, VmView
from schemas.reasons import Wait
from tests.binder import oracle, oracle_budgets


def named(text: str) -> list[str]:
    """Return the held claims that an annotation names."""
    try:
        entries = msgspec.json.decode(text, type=list[dict[str, str | int]])
    except msgspec.MsgspecError:
        return []
    return [str(one["claimName"]) for one in entries if "claimName" in one]


def owner(state: State, key: str) -> str:
    """Return the VM whose claim this is: of those that name it, the one created first, then by uid."""
    namespace, name = key.split("/")
    vms = [view for view in state.objects["virtualmachines"].values() if isinstance(view, VmView)]
    mine = [vm for vm in vms if vm.namespace == namespace and name in named(vm.gpus)]
    return min(mine, key=lambda vm: (vm.created, vm.uid, vm.key)).key if mine else ""


def together(state: State) -> dict[tuple[str, str], list[str]]:
    """Return which claims go together, by what holds them together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, holding in sorted(state.holdings.items()):
        if holding.freed:
            continue
        if holding.attached is not None:
            whose = ("vmi", holding.attached.uid)
        else:
            vm = owner(state, key)
            whose = ("vm", vm) if vm else ("claim", key)
        groups.setdefault(whose, []).append(key)
    return groups


def usable(state: State, vmi: VmiView) -> Wait | None:
    """Return why a VMI can't have the claims that it names, the worst of its reasons; None where it can."""
    found = []
    for name in named(vmi.gpus):
        key = f"{vmi.namespace}/{name}"
        view, holding = state.claim(key), state.holdings.get(key)
        attached = holding.attached if holding is not None else None
        mine = attached is not None and attached.uid == vmi.uid
        if view is None or view.template or holding is None or holding.freed or (view.deleting and not attached):
            found.append(Wait.CLAIM_NOT_FOUND)
        elif not mine and (attached is not None or owner(state, key) not in {"", vmi.key}):
            found.append(Wait.CLAIM_IN_USE)
        elif not mine and not holding.claim.resource and state.gpu_class(view.class_name) is None:
            found.append(Wait.CLASS_NOT_FOUND)
    return min(found, key=oracle.ORDER.index, default=None)


def with_launcher(state: State, whose: tuple[str, str]) -> bool:
    """Say whether claims are served with their VMI's set: it is booked, or its launcher is at our gate."""
    gpu_set = state.sets.get(whose[1]) if whose[0] == "vmi" else None
    if gpu_set is None or gpu_set.node:
        return gpu_set is not None
    vmis = [one for one in state.objects["virtualmachineinstances"].values() if isinstance(one, VmiView)]
    return any(
        vmi.uid == whose[1]
        and not (vmi.deleting or vmi.phase in {"Succeeded", "Failed"} or vmi.policy not in {"", "Wait", "Refuse"})
        and oracle.launcher(state, vmi) is not None
        for vmi in vmis
    )


def verdict(state: State, keys: list[str]) -> Wait | str:
    """Return why claims that go together have no node, "fits NODE" where one would take them."""
    held = [state.holdings[key] for key in keys]
    if any(one.retry_ns > state.now_ns for one in held):
        return Wait.RELEASED
    classes = {view.name: view for view in state.objects["gpuclasses"].values() if isinstance(view, ClassView)}
    if oracle.paused(state):
        return Wait.PAUSED
    if any(one.claim.class_name not in classes for one in held):
        return Wait.CLASS_NOT_FOUND
    fresh = [(one.claim.class_name, one.claim.count) for one in held if not oracle_budgets.counts(one)]
    if oracle_budgets.over(state, held[0].namespace, oracle_budgets.by_key(fresh)):
        return Wait.OVER_BUDGET
    asked: dict[str, int] = {}
    for one in held:
        by = one.claim.resource or classes[one.claim.class_name].resource
        asked[by] = asked.get(by, 0) + one.claim.count
    best = Wait.NO_SUCH_DEVICE
    for node in sorted(state.objects["nodes"]):
        reason = _obstacle(state, held, asked, node)
        if reason is None:
            return f"fits {node}"
        best = max(best, reason, key=oracle.ORDER.index)
    return best


def _obstacle(state: State, held: list[Holding], asked: dict[str, int], name: str) -> Wait | None:
    node = state.objects["nodes"][name]
    assert isinstance(node, NodeView)
    if any(node.allocatable.get(by, 0) < count for by, count in asked.items()):
        return Wait.NO_SUCH_DEVICE
    if not node.ready or node.unschedulable or node.deleting:
        return Wait.NODE_NOT_READY
    for one in held:
        view = state.gpu_class(one.claim.class_name)
        assert view is not None
        if not oracle.bears(view.tolerations, node):
            return Wait.TAINT_NOT_TOLERATED
    for by, count in asked.items():
        own = sum(one.claim.count for one in held if (one.node, one.claim.resource) == (name, by))
        if node.allocatable.get(by, 0) - oracle.used_on(state, node, by) + own < count:
            return Wait.NO_ROOM
    # Claims without a launcher are behind every set in line.
    return Wait.NODE_KEPT if state.kept is not None and state.kept.node == name else None


def untold(state: State) -> list[str]:
    """Return where held claims were told something else than they should, or have no node where one takes them."""
    found = []
    for whose, keys in sorted(together(state).items()):
        held = [state.holdings[key] for key in keys]
        if all(one.node for one in held) or with_launcher(state, whose):
            continue
        should = verdict(state, keys)
        for key, one in zip(keys, held, strict=True):
            told_of_nodes = should is Wait.OVER_BUDGET and one.reason in oracle.ON_NODES
            if not one.node and one.reason != should and not told_of_nodes:
                found.append(f"claim {key}: told {one.reason}, should be {should}")
    return found
