"""What the world must show for one set: pure, and the same whatever it shows now.

A plan is not a difference. Each effect is safe to repeat, so that a plan made again after a crash
at any point ends in the same world.
"""

from binder.state import GpuSet, Holding, State
from projector.effects import (
    CreateClaim,
    DropClaim,
    DropPod,
    DropVmi,
    GuardClass,
    Pin,
    Stage,
    UnguardClass,
    Warn,
    WriteStatus,
)
from projector.plan_held import event_name, guards, shows
from schemas.claims import PLACED_REASON, Phase
from schemas.decisions import ClaimDropped, ClassFreed, ClassGuarded, VmiId
from schemas.objects import ClaimView, Stamp
from schemas.reasons import GiveUp

Single = DropClaim | GuardClass | UnguardClass
_RELEASED = "the booking on a node has ended"


def plan(gpu_set: GpuSet, held: tuple[Holding, ...] = ()) -> tuple[Stage, ...]:
    """Return the stages for one set: a pod or VMI that was given up, claims, their status, the pin, then the warning.

    None for a set booked at admission whose VMI is not seen yet: what has an owner that is not there is collected.

    The status comes before the pin: a stale writer, whose status is refused, pins nothing (T22, C20).
    `held`: the held claims that its VMI holds.
    """
    if gpu_set.start is not None:
        return ()
    claims, status = _claims(gpu_set) + guards(held), _status(gpu_set) + shows(held, gpu_set)
    stages = (_given_up(gpu_set), _leaving(gpu_set), claims, status, _pin(gpu_set), _warning(gpu_set))
    return tuple(stage for stage in stages if stage)


def is_open(gpu_set: GpuSet, held: tuple[Holding, ...] = ()) -> bool:
    """Say whether writes of the set, or of the held claims in it, are not yet known to have landed."""
    news = any(max(gpu_set.confirmed, one.confirmed) < one.stamp for one in held)
    if gpu_set.start is not None:
        return False
    return gpu_set.confirmed < gpu_set.stamp or news or bool(gpu_set.pod_uid and not gpu_set.pinned)


def single(decision: ClaimDropped | ClassGuarded | ClassFreed) -> Single:
    """Return the effect of a decision about one object that is no part of a set."""
    match decision:
        case ClaimDropped():
            return DropClaim(VmiId(decision.namespace, "", ""), decision.name, decision.uid)
        case ClassGuarded():
            return GuardClass(VmiId("", "", ""), decision.name, decision.uid)
        case ClassFreed():
            return UnguardClass(VmiId("", "", ""), decision.name, decision.uid)


def guards_told(state: State) -> tuple[tuple[Single, Stamp], ...]:
    """Name the finalizers of classes that were told to come or go and are not seen to have, with who told (K2)."""
    found: list[tuple[Single, Stamp]] = []
    for name, told in sorted(state.class_guards.items()):
        decision = ClassFreed(name, told.uid) if told.freed else ClassGuarded(name, told.uid)
        found.append((single(decision), told.stamp))
    return tuple(found)


def undecided(state: State) -> tuple[DropClaim, ...]:
    """Name the template claims of living VMIs that no set names: at a start, what was told to go before it (T14)."""
    if state.adopting:
        # What was decided of them before this log began is not booked yet.
        return ()
    decided = {f"{one.vmi.namespace}/{claim.name}" for one in state.sets.values() for claim in one.claims}
    alive = {vmi.uid for vmi in state.objects["virtualmachineinstances"].values()}
    found = []
    for key, claim in sorted(state.objects["gpuclaims"].items()):
        assert isinstance(claim, ClaimView)
        stray = claim.template and not claim.deleting and key not in decided
        if stray and (not claim.owner_uid or claim.owner_uid in alive):
            found.append(DropClaim(VmiId(claim.namespace, "", ""), claim.name, claim.uid))
    return tuple(found)


def _given_up(gpu_set: GpuSet) -> Stage:
    """First of all, and whatever becomes of the claims: the pod goes, and its owner is told why."""
    given_up, vmi = gpu_set.given_up, gpu_set.vmi
    if given_up is None:
        return ()
    drop_pod = DropPod(vmi, given_up.pod, given_up.pod_uid, given_up.cause is GiveUp.REFUSED)
    name = event_name(vmi.name, vmi.uid, given_up.told)
    return (drop_pod, Warn(vmi, name, given_up.told, given_up.cause.value, given_up.message))


def _leaving(gpu_set: GpuSet) -> Stage:
    """The VMI goes whatever becomes of its claims, once for each time that it was said; and its owner is told why."""
    leaving, vmi = gpu_set.leaving, gpu_set.vmi
    if leaving is None or leaving.told <= gpu_set.confirmed:
        return ()
    name = event_name(vmi.name, vmi.uid, leaving.told)
    return (DropVmi(vmi, vmi.name), Warn(vmi, name, leaving.told, leaving.reason.value, leaving.message))


def _claims(gpu_set: GpuSet) -> Stage:
    return tuple(CreateClaim(gpu_set.vmi, claim.name, claim.class_name, claim.count) for claim in gpu_set.claims)


def _status(gpu_set: GpuSet) -> Stage:
    shown = _shown(gpu_set)
    if shown is None:
        return ()
    phase, reason, message = shown
    return tuple(
        WriteStatus(
            vmi=gpu_set.vmi,
            name=claim.name,
            stamp=gpu_set.stamp,
            phase=phase,
            node=gpu_set.node,
            resource=claim.resource,
            placed=phase is Phase.BOUND,
            reason=reason,
            message=message,
            attached=gpu_set.vmi,
        )
        for claim in gpu_set.claims
    )


def _shown(gpu_set: GpuSet) -> tuple[Phase, str, str] | None:
    """Return phase, reason and message, None for a set of which nothing was said yet: new claims are Pending."""
    if gpu_set.node:
        return Phase.BOUND, PLACED_REASON, f"all units of the set are on node {gpu_set.node}"
    if gpu_set.reason is not None:
        return Phase.PENDING, gpu_set.reason.value, gpu_set.message
    if gpu_set.released is not None:
        return Phase.PENDING, gpu_set.released.value, _RELEASED
    return None


def _pin(gpu_set: GpuSet) -> Stage:
    if not gpu_set.pod_uid or gpu_set.pinned:
        return ()
    return (Pin(gpu_set.vmi, gpu_set.pod, gpu_set.pod_uid, gpu_set.node, gpu_set.terms),)


def _warning(gpu_set: GpuSet) -> Stage:
    """Told once: a reason whose event has landed is not told again when something else is decided (C59)."""
    if gpu_set.node or gpu_set.reason is None or gpu_set.told <= gpu_set.confirmed:
        return ()
    name = event_name(gpu_set.vmi.name, gpu_set.vmi.uid, gpu_set.told)
    return (Warn(gpu_set.vmi, name, gpu_set.told, gpu_set.reason.value, gpu_set.message),)
