"""The status virt-controller gives a VM: its printable word, its mirrored conditions, its failed starts. Pure."""

import msgspec

from deploy.world.clock import stamp
from deploy.world.manifests import Obj, condition, copied, deleting, dig, drop_condition, has_condition, meta
from deploy.world.virt_names import FAILED_PVC_NOT_FOUND, PENDING, RUNNING, SCHEDULED, SCHEDULING, VM_GENERATION
from deploy.world.virt_restart import CONDITION, tell_restart
from deploy.world.virt_status import is_final, phase_of, was_running
from deploy.world.virt_volumes import Volumes

BACKOFF_BASE_S = 10
BACKOFF_MOST_S = 300
_OWN_CONDITIONS = frozenset({"Ready", "Failure", CONDITION})


class VmSeen(msgspec.Struct, frozen=True):
    """What the VM's status is told from. `vmi`: its VMI before this round, `started`: after it.

    `failure`: why its VMI could not be created. `jitter`: seconds on top of the next back-off, made by the
    caller of 0..base/2. `now`: seconds since 1970. `restart`: its template was changed beyond what reaches its VMI.
    """

    vmi: Obj | None
    started: Obj | None
    volumes: Volumes
    failure: str
    jitter: int
    now: float
    restart: bool = False


def run_strategy(vm: Obj) -> str:
    """Return the VM's run strategy; `running` is its older form."""
    spec = vm["spec"]
    if spec.get("runStrategy"):
        return str(spec["runStrategy"])
    return "Always" if spec.get("running") else "Halted"


def backoff_base(failures: int) -> int:
    """Return the seconds before the next start after so many failed ones, without jitter and cap."""
    return BACKOFF_BASE_S * failures * failures


def backoff(failures: int, jitter: int) -> int:
    """Return the seconds before the next start after so many failed ones."""
    return min(backoff_base(failures) + jitter, BACKOFF_MOST_S)


def new_failure(vm: Obj, vmi: Obj | None) -> int:
    """Return how many starts have failed in a row, this VMI's included; 0 where it is no new failure."""
    if vmi is None or not is_final(vmi) or was_running(vmi):
        return 0
    failed = dig(vm, "status", "startFailure") or {}
    if failed.get("lastFailedVMIUID") == meta(vmi)["uid"]:
        return 0
    return int(failed.get("consecutiveFailCount") or 0) + 1


def next_status(vm: Obj, seen: VmSeen) -> Obj:
    """Return the VM with the status virt-controller would write now."""
    new = copied(vm)
    status: Obj = new.setdefault("status", {})
    vmi = seen.vmi
    failures = new_failure(vm, vmi)
    if failures:
        assert vmi is not None
        status["startFailure"] = {
            "consecutiveFailCount": failures,
            "lastFailedVMIUID": meta(vmi)["uid"],
            "retryAfterTimestamp": stamp(seen.now + backoff(failures, seen.jitter)),
        }
    elif vmi is not None and (phase_of(vmi) == RUNNING or was_running(vmi)):
        status.pop("startFailure", None)
    if vmi is None:
        status.pop("created", None)
        status.pop("ready", None)
    else:
        status["created"] = True
        _flag(status, "ready", on=has_condition(vmi, "Ready", "True"))
        status["desiredGeneration"] = meta(vm).get("generation", 1)
        generation = (meta(vmi).get("annotations") or {}).get(VM_GENERATION)
        if generation:
            status["observedGeneration"] = int(generation)
        status["runStrategy"] = run_strategy(vm)
    _mirror(new, vmi, stamp(seen.now))
    _set_failure(new, seen.failure, stamp(seen.now))
    tell_restart(new, needed=seen.restart, now=stamp(seen.now))
    status["printableStatus"] = printable(new, seen.started, seen)
    return new


def _flag(status: Obj, name: str, *, on: bool) -> None:
    if on:
        status[name] = True
    else:
        status.pop(name, None)


def _mirror(vm: Obj, vmi: Obj | None, now: str) -> None:
    told: Obj = {"type": "Ready", "status": "False", "lastProbeTime": now, "lastTransitionTime": now}
    if vmi is None:
        _set(vm, told | {"reason": "VMINotExists", "message": "VMI does not exist"})
        return
    ready = condition(vmi, "Ready")
    if ready is None:
        _set(vm, told | {"reason": "VMIConditionMissing", "message": "VMI is missing the Ready condition"})
    else:
        _set(vm, dict(ready))
    mirrored = [one for one in dig(vmi, "status", "conditions") or () if one["type"] not in _OWN_CONDITIONS]
    kinds = {one["type"] for one in mirrored}
    for one in list(vm["status"]["conditions"]):
        if one["type"] not in kinds | _OWN_CONDITIONS:
            drop_condition(vm, one["type"])
    for one in mirrored:
        _set(vm, dict(one))


def _set(vm: Obj, told: Obj) -> None:
    conditions: list[Obj] = vm["status"].setdefault("conditions", [])
    compared = ("status", "reason", "message")
    for index, old in enumerate(conditions):
        if old["type"] == told["type"]:
            if any(old.get(name) != told.get(name) for name in compared):
                conditions[index] = told
            return
    conditions.append(told)


def _set_failure(vm: Obj, failure: str, now: str) -> None:
    if not failure:
        drop_condition(vm, "Failure")
    elif not has_condition(vm, "Failure", "True", "FailedCreate"):
        message = f"Failure while starting VMI: {failure}"
        told = {"type": "Failure", "status": "True", "reason": "FailedCreate", "message": message}
        vm["status"].setdefault("conditions", []).append(told | {"lastProbeTime": None, "lastTransitionTime": now})


def printable(vm: Obj, vmi: Obj | None, seen: VmSeen) -> str:
    """Return the VM's printable status: the first word of KubeVirt's list that fits."""
    alive = vmi is not None and not is_final(vmi)
    phase = phase_of(vmi) if vmi is not None else ""
    failing = int(dig(vm, "status", "startFailure", "consecutiveFailCount") or 0) > 0
    words = (
        ("Terminating", deleting(vm)),
        ("Stopping", alive and vmi is not None and (deleting(vmi) or run_strategy(vm) == "Halted")),
        ("Migrating", alive and vmi is not None and _migrating(vmi)),
        ("Paused", alive and vmi is not None and has_condition(vmi, "Paused", "True")),
        ("Running", phase == RUNNING),
        ("ErrorPvcNotFound", vmi is not None and has_condition(vmi, "Synchronized", "False", FAILED_PVC_NOT_FOUND)),
        ("DataVolumeError", seen.volumes.failed),
        ("ErrorUnschedulable", vmi is not None and has_condition(vmi, "PodScheduled", "False", "Unschedulable")),
        ("Provisioning", seen.volumes.filling),
        ("WaitingForVolumeBinding", seen.volumes.unbound and run_strategy(vm) != "Halted"),
        ("Starting", phase in {PENDING, SCHEDULING, SCHEDULED}),
        ("CrashLoopBackOff", not alive and failing and run_strategy(vm) in {"Always", "RerunOnFailure"}),
        ("Stopped", not alive),
    )
    return next((word for word, fits in words if fits), "Unknown")


def _migrating(vmi: Obj) -> bool:
    state = dig(vmi, "status", "migrationState") or {}
    return bool(state.get("startTimestamp")) and not state.get("endTimestamp")
