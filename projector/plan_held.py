"""What the world must show for held claims: pure, alone or as part of a VMI's set.

A claim that a VMI holds is written with that VMI's set, so that its status stands before the pin; else in
a lane of its own.
"""

import hashlib

from binder.state import GpuSet, Holding, State
from projector.effects import GuardClaim, Stage, UnguardClaim, Warn, WriteStatus
from schemas.claims import FREED_REASON, PLACED_REASON, WAITING_REASON, Phase
from schemas.decisions import VmiId
from schemas.kinds import GPU_CLAIM
from schemas.objects import Stamp

EVENT_NAME_MAX = 253
_FREED = "the claim is being deleted, and its units are free"
_LOST = "the node can't keep these units any more, and no other takes them"
_UNTOLD = "no node was looked for yet"

Shown = tuple[Phase, str, str]
"""Phase, reason, message."""


def plan_held(holding: Holding) -> tuple[Stage, ...]:
    """Return the stages for a claim that no VMI holds: the finalizer, its status, and why it has no place.

    One that is freed shows that before its finalizer goes: a stale writer, whose status is refused, frees nothing.
    """
    if holding.freed:
        return (_show(holding, None), (UnguardClaim(_nobody(holding), holding.claim.name, holding.claim.uid),))
    return tuple(stage for stage in (_guard(holding), _show(holding, None), _warning(holding)) if stage)


def guards(held: tuple[Holding, ...]) -> Stage:
    """Return the finalizers of a set's held claims."""
    return tuple(effect for one in held for effect in _guard(one))


def shows(held: tuple[Holding, ...], gpu_set: GpuSet) -> Stage:
    """Return the status of a set's held claims: who holds them, and why their VM waits."""
    return tuple(effect for one in held for effect in _show(one, gpu_set))


def is_open_held(holding: Holding) -> bool:
    """Say whether writes of a held claim are not yet known to have landed."""
    return holding.confirmed < holding.stamp


def held_by(state: State, gpu_set: GpuSet) -> tuple[Holding, ...]:
    """Return the held claims that a set's VMI holds, as they stand."""
    found = [state.holding(gpu_set.vmi.namespace, claim.name) for claim in gpu_set.held]
    return tuple(one for one in found if one is not None and one.attached == gpu_set.vmi)


def event_name(name: str, uid: str, told: Stamp) -> str:
    """Name an event by its object's uid and the decision: said again after a crash, it is the same event (T22)."""
    text = f"{uid} {told.generation} {told.sequence} {told.entry}"
    tail = f".{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return name[: EVENT_NAME_MAX - len(tail)].rstrip("-.") + tail


def _nobody(holding: Holding) -> VmiId:
    """Say that no VMI has to do with it: outcomes then name the claim itself."""
    return VmiId(holding.namespace, "", "")


def _guard(holding: Holding) -> Stage:
    return (GuardClaim(_nobody(holding), holding.claim.name, holding.claim.uid),)


def _show(holding: Holding, gpu_set: GpuSet | None) -> Stage:
    phase, reason, message = _shown(holding, gpu_set)
    return (
        WriteStatus(
            vmi=gpu_set.vmi if gpu_set is not None else _nobody(holding),
            name=holding.claim.name,
            # Whichever is newer: who is shown, and where, changes with the decisions on the set and on the claim.
            stamp=max(holding.stamp, gpu_set.stamp) if gpu_set is not None else holding.stamp,
            phase=phase,
            node=holding.node,
            resource=holding.claim.resource,
            placed=phase is Phase.BOUND,
            reason=reason,
            message=message,
            attached=gpu_set.vmi if gpu_set is not None else None,
            uid=holding.claim.uid,
        ),
    )


def _shown(holding: Holding, gpu_set: GpuSet | None) -> Shown:
    """Tell where the units are; and why their VM waits, or why they have no place."""
    waits = gpu_set is not None and not gpu_set.node and gpu_set.reason is not None
    if holding.freed:
        return Phase.PENDING, FREED_REASON, _FREED
    if holding.node:
        here = f"all units are on node {holding.node}"
        if gpu_set is None or gpu_set.reason is None or not waits:
            return Phase.BOUND, PLACED_REASON, here
        return Phase.BOUND, gpu_set.reason.value, f"{here}; VM {gpu_set.vmi.name} waits: {gpu_set.message}"
    phase = Phase.LOST if holding.lost is not None else Phase.PENDING
    if gpu_set is not None and gpu_set.reason is not None and waits:
        return phase, gpu_set.reason.value, gpu_set.message
    if holding.lost is not None and holding.reason is not None:
        # Why it is Lost is what its owner has to know first; the rest of the sentence tells why it still is.
        return phase, holding.lost.value, f"{_LOST}: {holding.message} ({holding.reason.value})"
    if holding.lost is not None:
        return phase, holding.lost.value, holding.message
    if holding.reason is not None:
        return phase, holding.reason.value, holding.message
    return phase, WAITING_REASON, _UNTOLD


def _warning(holding: Holding) -> Stage:
    """Told once, on the claim, since there is no VM to be told (D5, C59)."""
    if holding.node or holding.told <= holding.confirmed or not (holding.reason or holding.lost):
        return ()
    _, reason, message = _shown(holding, None)
    claim = holding.claim
    name = event_name(claim.name, claim.uid, holding.told)
    about = VmiId(holding.namespace, claim.name, claim.uid)
    return (Warn(about, name, holding.told, reason, message, GPU_CLAIM),)
