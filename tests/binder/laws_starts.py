"""Laws of starts under policy Refuse: who is booked fits there as it stands, who is refused fits nowhere (A12)."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from binder.state import GpuSet, State
from schemas import decisions as d
from schemas.events import StartRequest
from schemas.names import POLICY_REFUSE
from schemas.objects import NodeView, PodView, Stamp, VmiView
from schemas.reasons import Release, Wait
from tests.binder import oracle, oracle_budgets

TIME_NS = 60_000_000_000
EARLY = (Release.NEVER_SEEN, Release.WITHDRAWN, Release.SUPERSEDED)


def law(state: State, decision: d.Decision) -> Iterator[str]:
    """Say what is wrong with a decision about a start, or about a booking whose launcher was not seen yet."""
    match decision:
        case d.SetBooked():
            known = state.sets.get(decision.vmi.uid)
            if known is not None and known.node:
                if (known.node, known.claims, known.held) != (decision.node, decision.claims, decision.held):
                    yield f"{decision}: asked again, it is booked otherwise"
                return
            yield from _booking(state, decision)
        case d.Refused():
            yield from _refusal(state, decision)
        case d.SetReleased():
            yield from _release(state, decision)
        case _:
            pass


def _booking(state: State, decision: d.SetBooked) -> Iterator[str]:
    asked = state.asked.get(decision.vmi.uid)
    if asked is None or asked.event.request != decision.request:
        yield f"{decision}: nobody asked for it"
        return
    if oracle.paused(state):
        yield f"{decision}: placing is paused"
    key = f"{decision.vmi.namespace}/{decision.vmi.name}"
    if state.vmi(key) is not None or any(_is_of(one, key) and one.node for one in state.sets.values()):
        yield f"{decision}: an earlier run of the VM is not over"
    yield from oracle_budgets.exceeded(state, decision)
    world = _World(state, asked.event, decision.claims, decision.held)
    fits = world.fitting()
    if decision.node not in fits:
        yield f"{decision}: it does not fit there: {world.obstacle(decision.node)}"


def _refusal(state: State, decision: d.Refused) -> Iterator[str]:
    """Whoever is refused for want of a place fits nowhere; by its reasons alone, not by the rules'."""
    asked = next((one for one in state.asked.values() if one.event.request == decision.request), None)
    if asked is None or decision.reason not in {str(one) for one in oracle.ON_NODES}:
        return
    kept = state.kept.node if state.kept is not None else ""
    fits = [name for name in _World(state, asked.event, *_named(state, asked.event)).fitting() if name != kept]
    if fits:
        yield f"{decision}: it fits on {fits}"


def _named(state: State, event: StartRequest) -> tuple[tuple[d.TemplateClaim, ...], tuple[d.HeldClaim, ...]]:
    """Return what the annotation names: classes as they were read for the request, held claims as they stand."""
    claims, held = [], []
    for entry in msgspec.json.decode(event.asked.gpus, type=list[dict[str, str | int]]):
        if "className" in entry:
            view = next(one for one in event.asked.classes if one.name == entry["className"])
            claims.append(d.TemplateClaim("", view.name, int(entry.get("count", 1)), view.resource))
            continue
        claim = state.holdings[f"{event.vmi.namespace}/{entry['claimName']}"].claim
        known = state.gpu_class(claim.class_name)
        held.append(replace(claim, resource=claim.resource or (known.resource if known is not None else "")))
    return tuple(claims), tuple(held)


def _release(state: State, decision: d.SetReleased) -> Iterator[str]:
    gpu_set = state.sets[decision.vmi.uid]
    start = gpu_set.start
    if decision.reason in EARLY and (start is None or gpu_set.pod_uid):
        yield f"{decision}: its VMI or its launcher was seen"
    if decision.reason is Release.NEVER_SEEN and start is not None:
        session = state.sessions["virtualmachineinstances"]
        if state.now_ns - start.at_ns < TIME_NS or session.progress <= start.due:
            yield f"{decision}: its VMI may still come (T18)"
    answered = state.admitted.get(decision.vmi.uid)
    if gpu_set.node and not gpu_set.pod_uid and answered is not None:
        view = state.vmi(f"{decision.vmi.namespace}/{decision.vmi.name}")
        is_there = view is not None and view.uid == decision.vmi.uid
        if decision.reason is not Release.VMI_GONE or (is_there and state.now_ns - answered.at_ns < TIME_NS):
            yield f"{decision}: a launcher was pinned there, and may be on its way"


def undecided(state: State) -> list[str]:
    """Return the starts that wait though nothing holds them up."""
    if oracle.paused(state):
        return []
    found = []
    for uid, asked in sorted(state.asked.items()):
        key = f"{asked.event.vmi.namespace}/{asked.event.vmi.name}"
        if state.vmi(key) is None and not any(_is_of(one, key) and one.node for one in state.sets.values()):
            found.append(f"start of {key} ({uid}) is not decided, and nothing holds it up")
    return found


def _is_of(gpu_set: GpuSet, key: str) -> bool:
    return f"{gpu_set.vmi.namespace}/{gpu_set.vmi.name}" == key


class _World:
    """The cluster as a start finds it: its VMI and launcher as if they were there, its held claims as if attached."""

    def __init__(
        self,
        state: State,
        event: StartRequest,
        claims: tuple[d.TemplateClaim, ...],
        held: tuple[d.HeldClaim, ...],
    ) -> None:
        vmi = event.vmi
        holdings = dict(state.holdings)
        for claim in held:
            key = f"{vmi.namespace}/{claim.name}"
            if key in holdings:
                holdings[key] = replace(holdings[key], attached=vmi)
        self.state = replace(state, holdings=holdings)
        self.vmi = VmiView(
            vmi.name,
            vmi.uid,
            "",
            vmi.namespace,
            gpus=event.asked.gpus,
            policy=POLICY_REFUSE,
            volumes=event.launcher.volumes,
        )
        self.gpu_set = GpuSet(vmi, Stamp(), 0, claims, held=held)
        requests = dict(event.launcher.requests)
        units: dict[str, int] = {}
        for resource, count in [(one.resource, one.count) for one in claims] + [
            (one.resource, one.count) for one in held
        ]:
            units[resource] = units.get(resource, 0) + count
        requests |= units
        said = event.launcher
        self.pod = PodView(
            "", "", "", vmi.namespace, requests=requests, node_selector=said.node_selector, terms=said.terms
        )

    def obstacle(self, name: str) -> Wait | None:
        """Return what keeps the set off a node."""
        node = self.state.node(name)
        assert node is not None
        return oracle.obstacle(self.state, self.vmi, self.gpu_set, self.pod, node)

    def fitting(self) -> list[str]:
        """Return the nodes that the set fits on."""
        nodes = [node for node in self.state.objects["nodes"].values() if isinstance(node, NodeView)]
        return sorted(node.name for node in nodes if self.obstacle(node.name) is None)
