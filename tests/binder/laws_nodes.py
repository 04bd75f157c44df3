"""Laws of nodes that can't keep what is booked on them, told by watching: how long what was wrong, and what followed.

The watch notes after each input what is wrong with each node that holds something. It reads none of what the
binder keeps of that, and is as plain as it can be.
"""

from collections.abc import Iterator, Sequence

from binder.evolve import is_dirty, may_place
from binder.state import GpuSet, Holding, State
from schemas import decisions as d
from schemas.names import GATE
from schemas.objects import NodeView, PodView, VmiView
from schemas.reasons import Placing, Release, Unkept
from tests.binder.oracle import in_booking, paused, tolerates, used_on

SECOND = 1_000_000_000
BORNE_NS = {"gone": 60 * SECOND}
BORNE_OTHERWISE_NS = 300 * SECOND
STARTING = ("", "Pending", "Scheduling", "Scheduled")
Claim = d.TemplateClaim | d.HeldClaim
Trouble = tuple[str, str]
"""What is wrong: "gone", "unready", "taint" or "short", and of which taint or resource."""


class Watch:
    """Since when what is wrong with which node; where every booking was when the last input had been decided."""

    def __init__(self) -> None:
        self.since: dict[str, dict[Trouble, int]] = {}
        self.missing: dict[tuple[str, str], int] = {}
        self.machines: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.pods: dict[str, tuple[str, str]] = {}
        self.sets: dict[str, GpuSet] = {}

    def hear(self, state: State, decided: tuple[d.Decision, ...]) -> list[str]:
        """Return what broke a law in this input, and note how things stand now."""
        by_hand = any(isinstance(one, d.Commanded) and one.done for one in decided)
        broken: list[str] = []
        for one in decided:
            broken += [] if by_hand else self._too_early(state, one)
            if isinstance(one, d.SetPlaced):
                # A launcher that takes over is the booking's pod from here on.
                self.pods[one.vmi.uid] = (f"{one.vmi.namespace}/{one.pod}", one.pod_uid)
        broken += [] if by_hand else self._too_many(state, decided)
        self._note(state)
        if may_place(state) and not is_dirty(state) and not paused(state):
            broken += self._left_behind(state)
        return broken

    def _lasts(self, state: State, node: str, what: str) -> list[str]:
        """Return the taints or resources of which something has been wrong for too long."""
        borne = BORNE_NS.get(what, BORNE_OTHERWISE_NS)
        found = self.since.get(node, {}).items()
        return [which for (kind, which), since in found if kind == what and since + borne <= state.now_ns]

    def _fails(self, state: State, node: str, claims: Sequence[Claim]) -> bool:
        """Say whether a node has been useless to a booking of these claims for too long."""
        unready, classes = self._lasts(state, node, "unready"), [claim.class_name for claim in claims]
        if self._lasts(state, node, "gone") or all(claim.resource in unready for claim in claims):
            return True
        view, lasting = state.node(node), self._lasts(state, node, "taint")
        taints = [taint for taint in view.taints if str(taint) in lasting] if view is not None else []
        borne = [one.tolerations for name in classes if (one := state.gpu_class(name)) is not None]
        return any(not any(tolerates(one, taint) for one in each) for taint in taints for each in borne)

    def _too_early(self, state: State, decision: d.Decision) -> Iterator[str]:
        match decision:
            case d.VmiGivenUp():
                gpu_set, vmi = state.sets[decision.vmi.uid], state.vmi(f"{decision.vmi.namespace}/{decision.vmi.name}")
                # Its booking may have gone on to the launcher after a temporary pod, and ended, by the same input.
                pod = _pod(state, gpu_set) or state.pod(self.pods.get(decision.vmi.uid, ("", ""))[0])
                if vmi is None or vmi.uid != decision.vmi.uid or vmi.phase not in STARTING or pod is None or pod.ran:
                    yield f"{decision}: it may run (C35)"
                yield from self._why(state, decision, decision.node, _all_of(gpu_set))
            case d.SetReleased() if decision.reason is Release.NODE_UNKEPT:
                # One that was booked at admission, and whose VMI was not seen yet, is closed with it.
                gpu_set = state.sets.get(decision.vmi.uid) or self.sets[decision.vmi.uid]
                pod = state.pod(self.pods.get(decision.vmi.uid, ("", ""))[0])
                booked = pod is not None and pod.uid == self.pods[decision.vmi.uid][1]
                if booked and pod is not None and not pod.ended and GATE not in pod.gates:
                    yield f"{decision}: its launcher may run (C35)"
                yield from self._why(state, decision, decision.node, _all_of(gpu_set))
            case d.HeldPlaced() if decision.why is Placing.MOVED:
                places = [self.places.get(f"{decision.namespace}/{one.name}", "") for one in decision.claims]
                node = max(places)
                yield from self._why(state, decision, node, decision.claims)
            case d.HeldLost() if decision.reason is Unkept.WRITE_REFUSED:
                shown = [state.claim(f"{decision.namespace}/{one.name}") for one in decision.claims]
                if all(view is not None and view.phase == "Bound" for view in shown):
                    yield f"{decision}: its owner sees the units (T23)"
            case d.HeldLost() if decision.reason not in {Unkept.SPLIT, Unkept.COMMANDED}:
                known = [self.places.get(f"{decision.namespace}/{one.name}", "") for one in decision.claims]
                if decision.node and all(place == decision.node for place in known):
                    yield from self._why(state, decision, decision.node, decision.claims)
            case _:
                pass

    def _why(self, state: State, decision: object, node: str, claims: Sequence[Claim]) -> Iterator[str]:
        if not self._fails(state, node, claims) and not self._lasts(state, node, "short"):
            yield f"{decision}: nothing has been wrong with node {node} for long enough (C16)"

    def _too_many(self, state: State, decided: tuple[d.Decision, ...]) -> Iterator[str]:
        """Of those that leave a node for missing units, the last one was needed (C40)."""
        last: dict[str, tuple[d.Decision, Sequence[Claim]]] = {}
        for one in decided:
            if isinstance(one, d.HeldPlaced) and one.why is Placing.MOVED:
                last[self.places.get(f"{one.namespace}/{one.claims[0].name}", "")] = (one, list(one.claims))
            elif isinstance(one, d.HeldLost | d.VmiGivenUp) and one.reason is Unkept.UNITS_GONE:
                last[one.node] = (
                    one,
                    _all_of(state.sets[one.vmi.uid]) if isinstance(one, d.VmiGivenUp) else one.claims,
                )
        for name, (one, claims) in last.items():
            view = state.node(name)
            if view is None or self._fails(state, name, claims):
                continue
            needed = False
            for resource in {claim.resource for claim in claims}:
                units = sum(claim.count for claim in claims if claim.resource == resource)
                needed = needed or _free(state, view, resource) - units < 0
            if not needed:
                yield f"{one}: node {name} had enough without"

    def _note(self, state: State) -> None:
        self.sets = dict(state.sets)
        booked: list[GpuSet | Holding] = [one for one in state.sets.values() if one.node]
        booked += [one for one in state.holdings.values() if one.node]
        since: dict[str, dict[Trouble, int]] = {}
        missing: dict[tuple[str, str], int] = {}
        for name in {one.node: True for one in booked}:
            here = [one for one in booked if one.node == name]
            view = state.node(name)
            known = self.since.get(name, {})
            if view is not None and self.machines.get(name) not in {None, view.uid}:
                known = {}
            since[name] = {}
            for trouble in _wrong(state, view, here):
                since[name][trouble] = known.get(trouble, state.now_ns)
                if trouble[0] == "short" and view is not None:
                    lack = used_on(state, view, trouble[1]) - view.allocatable.get(trouble[1], 0)
                    if lack > self.missing.get((name, trouble[1]), 0):
                        since[name][trouble] = state.now_ns
                    missing[name, trouble[1]] = lack
        self.since, self.missing = since, missing
        self.machines = {name: view.uid for name, view in state.objects["nodes"].items()}
        self.pods = {
            uid: (f"{one.vmi.namespace}/{one.pod}", one.pod_uid) for uid, one in state.sets.items() if one.node
        }
        self.places = {key: one.node for key, one in state.holdings.items() if one.node}

    def _left_behind(self, state: State) -> Iterator[str]:
        """Nothing that may leave a node stays on one that has failed it for too long (D8, D9)."""
        for gpu_set in state.sets.values():
            if (
                gpu_set.node
                and _may_leave(state, gpu_set)
                and self._should_leave(state, gpu_set.node, _all_of(gpu_set))
            ):
                yield f"the set of {gpu_set.vmi} is left on node {gpu_set.node}"
        for key, held in state.holdings.items():
            if held.node and _is_loose(state, held) and self._should_leave(state, held.node, [held.claim]):
                yield f"claim {key} is left on node {held.node}"

    def _should_leave(self, state: State, name: str, claims: Sequence[Claim]) -> bool:
        if self._fails(state, name, claims):
            return True
        view, asked = state.node(name), {claim.resource for claim in claims}
        short = sorted(asked & set(self._lasts(state, name, "short")))
        return view is not None and any(_free(state, view, resource) < 0 for resource in short)


def _all_of(gpu_set: GpuSet) -> list[Claim]:
    return [*gpu_set.claims, *gpu_set.held]


def _wrong(state: State, view: NodeView | None, here: list[GpuSet | Holding]) -> list[Trouble]:
    if view is None:
        return [("gone", "")]
    claims: list[Claim] = []
    for one in here:
        claims += _all_of(one) if isinstance(one, GpuSet) else [one.claim]
    nodes = [one for one in state.objects["nodes"].values() if isinstance(one, NodeView) and one.ready]
    offered = {by for one in nodes for by, amount in one.allocatable.items() if amount > 0}
    found = [] if view.ready else [("unready", claim.resource) for claim in claims if claim.resource in offered]
    for taint in view.taints:
        if not view.ready and taint.key in {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}:
            continue
        classes = [state.gpu_class(claim.class_name) for claim in claims]
        alone = [gpu_class for gpu_class in classes if gpu_class is not None]
        hard = taint.effect in {"NoSchedule", "NoExecute"}
        if hard and not all(any(tolerates(one, taint) for one in gpu_class.tolerations) for gpu_class in alone):
            found.append(("taint", str(taint)))
    resources = sorted({claim.resource for claim in claims})
    return found + [("short", by) for by in resources if used_on(state, view, by) > view.allocatable.get(by, 0)]


def _free(state: State, view: NodeView, resource: str) -> int:
    """Count what is free, with what VMIs that were given up are about to free."""
    goes = [one for one in state.sets.values() if one.node == view.name and _goes(state, one)]
    going = sum(claim.count for one in goes for claim in _all_of(one) if claim.resource == resource)
    return view.allocatable.get(resource, 0) - used_on(state, view, resource) + going


def _goes(state: State, gpu_set: GpuSet) -> bool:
    return gpu_set.leaving is not None and state.now_ns < gpu_set.leaving.at_ns + BORNE_OTHERWISE_NS


def _may_leave(state: State, gpu_set: GpuSet) -> bool:
    """Say whether ending a booking would surely start nothing a second time."""
    vmi = state.objects["virtualmachineinstances"].get(f"{gpu_set.vmi.namespace}/{gpu_set.vmi.name}")
    pod = _pod(state, gpu_set)
    if gpu_set.temporary or pod is None or pod.ended:
        return False
    if not gpu_set.pinned:
        return GATE in pod.gates and gpu_set.confirmed < gpu_set.stamp
    starting = isinstance(vmi, VmiView) and vmi.uid == gpu_set.vmi.uid and vmi.phase in STARTING and not vmi.deleting
    return starting and not pod.ran and not pod.deleting and not _goes(state, gpu_set)


def _is_loose(state: State, holding: Holding) -> bool:
    """Say whether no launcher may use a claim."""
    if in_booking(state, holding):
        return False
    pods = [one for one in state.objects["pods"].values() if isinstance(one, PodView)]
    whose = holding.attached.uid if holding.attached else None
    mine = [pod for pod in pods if pod.owner_uid and pod.owner_uid == whose and pod.launcher]
    return all(pod.ended or GATE in pod.gates for pod in mine)


def _pod(state: State, gpu_set: GpuSet) -> PodView | None:
    pod = state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}")
    return pod if pod is not None and pod.uid == gpu_set.pod_uid else None
