"""Laws of history: what must hold of each decision at the moment it is made, told by counting anew.

`live` steps a book through one input and checks it: the laws, the promises of the state after it, and
that the logged decisions folded anew give the very state that was lived.
"""

from collections.abc import Iterator

from binder.book import Book
from binder.evolve import BYTES_PER_INPUT_MAX, SETS_PER_INPUT_MAX, evolve, evolve_decision, may_place, settle, spent_on
from binder.invariants import check
from binder.snapshot import decode_state, encode_state
from binder.state import NEEDED_KINDS, GpuSet, State
from binder.step import read_input, step
from binder.usage import claims_of
from schemas import decisions as d
from schemas.events import AnyEvent
from schemas.names import CLASS_FINALIZER, GATE
from schemas.objects import PodView, Stamp, VmiView
from schemas.reasons import GiveUp
from tests.binder import laws_held, laws_starts
from tests.binder.oracle import own_on, place, skipped_nodes, used_on, verdict
from tests.binder.oracle_budgets import exceeded, told_so
from tests.binder.oracle_declared import miscounted
from tests.binder.oracle_kept import KEPT_NS, able_nodes, uses_of

PATIENCE_NS = 120_000_000_000
CROWD = 40
"""With more VMIs than this the order of the queue is not counted anew: it takes the square of them."""


def live(book: Book, sequence: int, stamp_ns: int, body: bytes, *, lawful: bool = True) -> tuple[d.Decision, ...]:
    """Return what one input decides; with `lawful`, fail on anything that must not be."""
    if not lawful:
        return step(book, sequence, stamp_ns, body)
    shadow = Book(decode_state(encode_state(book.state)))
    event = read_input(shadow, sequence, body)
    decided = step(book, sequence, stamp_ns, body)
    broken = list(_broken(shadow, sequence, stamp_ns, None if isinstance(event, d.Rejected) else event, decided))
    broken += check(book)
    broken += miscounted(book.state, book.declared.used, book.budgets.used)
    assert not broken, f"input {sequence} {body[:200]!r} -> {decided}: " + "; ".join(broken)
    assert encode_state(shadow.state) == encode_state(book.state), f"input {sequence}: the log tells another state"
    return decided


def _broken(
    shadow: Book, sequence: int, stamp_ns: int, event: AnyEvent | None, decided: tuple[d.Decision, ...]
) -> Iterator[str]:
    state = shadow.state
    now_ns = state.now_ns
    evolve(shadow, sequence, stamp_ns, event)
    if state.now_ns < now_ns:
        yield "logical time went back (T9)"
    told: dict[str, int] = {}
    for entry, decision in enumerate(decided):
        yield from _law(state, decision)
        yield from laws_starts.law(state, decision)
        if isinstance(decision, d.SetWaits):
            told[decision.vmi.uid] = told.get(decision.vmi.uid, 0) + 1
        if isinstance(decision, d.HeldWaits):
            # What a server back from a backup lost is said again, and may be another reason by now (T12).
            fresh = [one for one in decision.claims if not _is_said_again(state, decision.namespace, one)]
            told |= {one.uid: told.get(one.uid, 0) + 1 for one in fresh}
        evolve_decision(shadow, Stamp(state.generation, sequence, entry), decision)
    if max(told.values(), default=0) > 1:
        yield "a set was told two reasons at one input (C59)"
    sets = {decision.vmi.uid for decision in decided if isinstance(decision, _SETS)}
    sets |= {decision.claims[0].uid for decision in decided if isinstance(decision, _HELD)}
    if len(sets) > SETS_PER_INPUT_MAX or sum(len(str(one)) for one in decided) > 4 * BYTES_PER_INPUT_MAX:
        yield "an input decided more than its bound (T5)"
    settle(shadow, decided, spent_on(decided))


def _is_said_again(state: State, namespace: str, claim: d.HeldClaim) -> bool:
    known = state.holding(namespace, claim.name)
    return known is not None and known.again


_HELD = (d.HeldPlaced, d.HeldLost, d.HeldWaits)
_SETS = (d.SetOpened, d.SetPlaced, d.SetBooked, d.SetWaits, d.SetReleased, d.NodeSkipped, d.SetClosed)


def _law(state: State, decision: d.Decision) -> Iterator[str]:
    if isinstance(decision, _HELD):
        yield from laws_held.law(state, decision)
    if isinstance(decision, d.HeldFreed):
        yield from laws_held.freeing(state, decision)
    if isinstance(decision, (*_SETS, *_HELD, d.ClaimDropped)) and not _is_seen(state, decision):
        yield f"{decision} was decided on a picture that may be old (T11)"
    match decision:
        case d.SetPlaced():
            yield from _placing(state, decision)
            yield from exceeded(state, decision)
        case d.HeldPlaced():
            yield from exceeded(state, decision)
        case d.SetReleased():
            gpu_set = state.sets[decision.vmi.uid]
            pod = _pod(state, gpu_set)
            holds = pod is not None and not pod.ended and GATE not in pod.gates and not gpu_set.temporary
            if holds:
                yield f"{decision}: the launcher still runs"
        case d.NodeSkipped():
            yield from _skipping(state, decision)
        case d.SetWaits():
            gpu_set_or_none = state.sets.get(decision.vmi.uid)
            if gpu_set_or_none is not None and (told_so(gpu_set_or_none, decision) or gpu_set_or_none.node):
                yield f"{decision} is told again, or to a set that has a place (C59)"
        case d.NodeKept():
            yield from _keeping(state, decision)
        case d.ClassGuarded() | d.ClassFreed():
            yield from _finalizing(state, decision)
        case d.SetClosed():
            if decision.vmi.uid in {view.uid for view in state.objects["virtualmachineinstances"].values()}:
                yield f"{decision}: its VMI is there"
        case _:
            pass


def _is_seen(state: State, decision: d.Decision) -> bool:
    """Say whether all is known that a decision leans on: claims that no VMI holds need nothing of KubeVirt (C61)."""
    if may_place(state) or not isinstance(decision, (*_HELD, d.SetReleased)):
        return may_place(state)
    for kind in NEEDED_KINDS:
        session = state.sessions.get(kind)
        missing = session is None or session.progress <= state.epoch_events
        may_be_missing = kind.startswith(("kubevirt", "virtualmachine", "helmrelease"))
        if missing or not (session and (session.synced or (may_be_missing and not session.served))):
            return False
    if isinstance(decision, d.SetReleased):
        pod = _pod(state, state.sets[decision.vmi.uid])
        return not state.sessions["virtualmachineinstances"].served and (pod is None or pod.ended)
    held = [state.holding(decision.namespace, claim.name) for claim in decision.claims]
    return not any(one is not None and one.attached for one in held)


def _finalizing(state: State, decision: d.ClassGuarded | d.ClassFreed) -> Iterator[str]:
    """A class goes when nothing of it is seen or held any more; one that lives is guarded once (K2, C23)."""
    view = state.gpu_class(decision.name)
    if view is None or view.uid != decision.uid or view.deleting != isinstance(decision, d.ClassFreed):
        yield f"{decision}: the class is another one by now"
    elif isinstance(decision, d.ClassGuarded) and CLASS_FINALIZER in view.finalizers:
        yield f"{decision}: it has our finalizer"
    elif isinstance(decision, d.ClassFreed) and uses_of(state, decision.name):
        yield f"{decision}: it is used by {uses_of(state, decision.name)}"


def _keeping(state: State, decision: d.NodeKept) -> Iterator[str]:
    """A node is kept for one that has waited ten minutes and could be there, whom nobody it is kept for is ahead of."""
    vmi, kept = state.vmi(_key(decision.vmi)), state.kept
    alive = vmi if vmi is not None and vmi.uid == decision.vmi.uid else None
    if not decision.node:
        placed = state.sets.get(decision.vmi.uid)
        if kept is None or kept.vmi != decision.vmi or not kept.node:
            yield f"{decision}: nothing is kept for it"
        elif alive and (placed is None or not placed.node) and kept.node in able_nodes(state, alive):
            yield f"{decision}: it still waits, and could be there"
        return
    if alive is None or decision.node not in able_nodes(state, alive):
        yield f"{decision}: it could not be there"
        return
    if state.first_wait.get(alive.key, state.now_ns) + KEPT_NS > state.now_ns:
        yield f"{decision}: it has waited for less than ten minutes"
    ahead = state.vmi(_key(kept.vmi)) if kept is not None and kept.node else None
    if ahead is not None and place(state, ahead) < place(state, alive):
        yield f"{decision}: {ahead.key} is ahead of it"


def _key(vmi: d.VmiId) -> str:
    return f"{vmi.namespace}/{vmi.name}"


def _skipping(state: State, decision: d.NodeSkipped) -> Iterator[str]:
    """A node is skipped for a pod of ours that is not running there, and never twice for one refusal (C14, C15)."""
    gpu_set = state.sets[decision.vmi.uid]
    if not gpu_set.pinned or (gpu_set.node, gpu_set.pod_uid) != (decision.node, decision.pod_uid):
        yield f"{decision}: no pod of ours was pinned there"
    pod = _pod(state, gpu_set)
    if pod is not None and not pod.ended and pod.node:
        yield f"{decision}: the launcher has a node"
    if decision.cause is GiveUp.NOT_SCHEDULED and state.now_ns - gpu_set.stuck_ns < PATIENCE_NS:
        yield f"{decision}: kube-scheduler had less than two minutes"


def _placing(state: State, decision: d.SetPlaced) -> Iterator[str]:
    gpu_set = state.sets[decision.vmi.uid]
    pod = state.pod(f"{decision.vmi.namespace}/{decision.pod}")
    if (
        pod is None
        or pod.uid != decision.pod_uid
        or pod.gates != (GATE,)
        or pod.ended
        or pod.owner_uid != gpu_set.vmi.uid
    ):
        yield f"{decision}: no such pod of the VMI waits behind our gate alone (C56)"
        return
    admitted = state.admitted.get(pod.owner_uid)
    if admitted is None or pod.admission not in admitted.requests:
        yield f"{decision}: the pod was not admitted (T25)"
    asked: dict[str, int] = {}
    for claim in claims_of(gpu_set):
        asked[claim.resource] = asked.get(claim.resource, 0) + claim.count
    if {name: pod.requests.get(name, 0) for name in asked} != asked or not asked:
        yield f"{decision}: the pod's requests are not its set's"
    if gpu_set.node:
        if gpu_set.node != decision.node:
            yield f"{decision}: a booked set moves from {gpu_set.node}"
        return
    if decision.node in skipped_nodes(state, f"{decision.vmi.namespace}/{decision.vmi.name}"):
        yield f"{decision}: the node is skipped for the VM (D7)"
    yield from _jumped(state, decision)
    node = state.node(decision.node)
    if node is None or not node.ready or node.unschedulable:
        yield f"{decision}: the node can't serve"
        return
    for resource, amount in pod.requests.items():
        free = node.allocatable.get(resource, 0) - used_on(state, node, resource)
        free += own_on(state, gpu_set.vmi.uid, decision.node, resource)
        if amount and amount > free:
            yield f"{decision}: {free} of {resource} are free, {amount} are taken"


def _jumped(state: State, decision: d.SetPlaced) -> Iterator[str]:
    """Nobody is placed before one who is ahead of it in the queue and would fit somewhere (D6)."""
    vmis = [view for view in state.objects["virtualmachineinstances"].values() if isinstance(view, VmiView)]
    if len(vmis) > CROWD:
        return
    places = {vmi.uid: place(state, vmi) for vmi in vmis}
    for vmi in vmis:
        if places[vmi.uid] < places[decision.vmi.uid] and str(verdict(state, vmi)).startswith("fits"):
            yield f"{decision}: {vmi.key} is ahead of it, and fits"


def _pod(state: State, gpu_set: GpuSet) -> PodView | None:
    pod = state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}")
    return pod if pod is not None and pod.uid == gpu_set.pod_uid else None
