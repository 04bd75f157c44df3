"""The status virt-controller gives a VMI: phases, conditions, activePods. Pure, case by case as in lifecycle.go.

The phase that is judged is the one the VMI had; what is written is judged again on the next round.
"""

import msgspec

from deploy.world.manifests import (
    COMPUTE,
    Obj,
    condition,
    copied,
    deleting,
    dig,
    drop_condition,
    drop_finalizer,
    has_condition,
    is_temporary,
    meta,
    pod_down,
    pod_runs,
    set_condition,
)
from deploy.world.virt_names import (
    FAILED,
    FAILED_PVC_NOT_FOUND,
    FINAL_PHASES,
    NODE_NAME_LABEL,
    OLD_VMI_FINALIZER,
    OUTDATED_LABEL,
    PENDING,
    RUNNING,
    SCHEDULED,
    SCHEDULING,
    VM_FINALIZER,
    VMI_FINALIZER,
)
from deploy.world.virt_volumes import Volumes


class SyncError(msgspec.Struct, frozen=True):
    """Why a VMI could not be synced: the reason and message of its Synchronized condition."""

    reason: str
    message: str
    retried: bool = True


class Seen(msgspec.Struct, frozen=True):
    """What virt-controller knows beside the VMI itself.

    `pod`: the VMI's current pod. `pods`: uid to node of every pod it controls, as far as the cache has them.
    `all_gone`: no pod of the VMI's is left. `now`: the time as the API server prints it.
    """

    pod: Obj | None
    pods: dict[str, str]
    all_gone: bool
    owned_by_vm: bool
    volumes: Volumes
    error: SyncError | None
    image: str
    now: str


def phase_of(vmi: Obj) -> str:
    """Return the VMI's phase; '' is Pending."""
    return str(dig(vmi, "status", "phase") or PENDING)


def is_final(vmi: Obj) -> bool:
    """Say whether the VMI is Succeeded or Failed."""
    return phase_of(vmi) in FINAL_PHASES


def was_running(vmi: Obj) -> bool:
    """Say whether the VMI ever reached Running."""
    times = dig(vmi, "status", "phaseTransitionTimestamps") or ()
    return any(one.get("phase") == RUNNING for one in times)


def next_vmi(vmi: Obj, seen: Seen) -> Obj:
    """Return the VMI as virt-controller would write it now: equal to the one given where nothing changes."""
    new = copied(vmi)
    status: Obj = new.setdefault("status", {})
    real = seen.pod if seen.pod is not None and not is_temporary(seen.pod) else None
    if seen.pods or status.get("activePods") is not None:
        status["activePods"] = dict(seen.pods)
    _set_ready(new, real, seen.now)
    if real is not None:
        _set_image(new, real, seen.image)
    _set_data_volumes(new, seen.volumes)
    phase = phase_of(vmi)
    if phase == PENDING:
        _from_pending(new, real, seen)
    elif phase == SCHEDULING:
        _from_scheduling(new, real)
    elif phase in FINAL_PHASES:
        _from_final(new, seen)
    elif real is None:
        status["phase"] = FAILED
    if phase in {SCHEDULED, RUNNING}:
        return new
    if not status.get("activePods"):
        status.pop("activePods", None)
    _set_failure(new, seen.error, seen.now)
    if status.get("phase") != dig(vmi, "status", "phase"):
        times: list[Obj] = status.setdefault("phaseTransitionTimestamps", [])
        times.append({"phase": status["phase"], "phaseTransitionTimestamp": seen.now})
    return new


def _from_pending(vmi: Obj, real: Obj | None, seen: Seen) -> None:
    status = vmi["status"]
    if real is not None:
        status["phase"] = SCHEDULING
        return
    if deleting(vmi) or seen.volumes.failed:
        status["phase"] = FAILED
        return
    status["phase"] = PENDING
    if seen.volumes.wffc:
        if condition(vmi, "Provisioning") is None:
            status.setdefault("conditions", []).append(
                {"type": "Provisioning", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
            )
        if seen.pod is not None:
            _copy_pod_scheduled(vmi, seen.pod)
            if pod_down(seen.pod) and dig(seen.pod, "status", "phase") != "Succeeded":
                status["phase"] = FAILED
    if seen.error is not None and seen.error.reason == FAILED_PVC_NOT_FOUND:
        set_condition(
            vmi,
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": seen.error.message,
                "lastProbeTime": None,
                "lastTransitionTime": None,
            },
        )


def _from_scheduling(vmi: Obj, real: Obj | None) -> None:
    status = vmi["status"]
    drop_condition(vmi, "Provisioning")
    if real is None:
        # The pod was there once, and a VMI never gets a second.
        status["phase"] = FAILED
        return
    quality = dig(real, "status", "qosClass")
    if quality:
        status["qosClass"] = quality
    else:
        status.pop("qosClass", None)
    _copy_pod_scheduled(vmi, real)
    if pod_runs(real) and not deleting(vmi):
        node = real["spec"]["nodeName"]
        status["phase"] = SCHEDULED
        status["nodeName"] = node
        status["migrationTransport"] = "Unix"
        volumes = vmi["spec"].get("volumes") or ()
        if volumes:
            status["volumeStatus"] = [{"name": volume["name"], "target": ""} for volume in volumes]
        networks = dig(vmi, "spec", "domain", "devices", "interfaces") or ()
        if networks:
            status["interfaces"] = [{"name": one["name"], "podInterfaceName": "eth0"} for one in networks[:1]]
        meta(vmi).setdefault("labels", {})[NODE_NAME_LABEL] = node
    elif pod_down(real):
        status["phase"] = FAILED


def _from_final(vmi: Obj, seen: Seen) -> None:
    if seen.all_gone:
        drop_finalizer(vmi, VMI_FINALIZER)
        drop_finalizer(vmi, OLD_VMI_FINALIZER)
        (meta(vmi).get("labels") or {}).pop(OUTDATED_LABEL, None)
        vmi["status"].pop("launcherContainerImageVersion", None)
    if not seen.owned_by_vm:
        drop_finalizer(vmi, VM_FINALIZER)


def _copy_pod_scheduled(vmi: Obj, pod: Obj) -> None:
    told = condition(pod, "PodScheduled")
    if told is not None and told.get("status") == "False":
        # Only added where absent: after the gate is gone the old reason stays.
        if condition(vmi, "PodScheduled") is None:
            vmi["status"].setdefault("conditions", []).append(
                {name: told.get(name) for name in ("type", "status", "reason", "message", "lastTransitionTime")}
                | {"lastProbeTime": told.get("lastProbeTime")}
            )
    else:
        drop_condition(vmi, "PodScheduled")


def _set_ready(vmi: Obj, real: Obj | None, now: str) -> None:
    told = {"type": "Ready", "status": "False", "lastProbeTime": now, "lastTransitionTime": now}
    if real is None:
        told |= {"reason": "PodNotExists", "message": "virt-launcher pod has not yet been scheduled"}
    elif pod_down(real):
        told |= {"reason": "PodTerminating", "message": "virt-launcher pod is terminating"}
    elif phase_of(vmi) != RUNNING:
        told |= {"reason": "GuestNotRunning", "message": "Guest VM is not reported as running"}
    else:
        ready = condition(real, "Ready")
        if ready is None:
            told |= {"reason": "PodConditionMissing", "message": "virt-launcher pod is missing the Ready condition"}
        else:
            kept = ("type", "status", "reason", "message", "lastProbeTime", "lastTransitionTime")
            told = {name: ready[name] for name in kept if name in ready}
    set_condition(vmi, told)


def _set_image(vmi: Obj, real: Obj, image: str) -> None:
    found = next((one.get("image", "") for one in real["spec"]["containers"] if one["name"] == COMPUTE), "")
    labels: Obj = meta(vmi).get("labels") or {}
    if found and found != image:
        meta(vmi).setdefault("labels", {})[OUTDATED_LABEL] = ""
    else:
        labels.pop(OUTDATED_LABEL, None)
    vmi["status"]["launcherContainerImageVersion"] = found


def _set_data_volumes(vmi: Obj, volumes: Volumes) -> None:
    if not volumes.data_volumes:
        return
    told: Obj = {"type": "DataVolumesReady", "lastProbeTime": None, "lastTransitionTime": None}
    if volumes.succeeded:
        told |= {"status": "True", "reason": "AllDVsReady", "message": "All of the VMI's DVs are bound and ready"}
    else:
        told |= {"status": "Unknown", "reason": "NotAllDVsReady", "message": "Not all of the VMI's DVs are ready"}
    set_condition(vmi, told)


def _set_failure(vmi: Obj, error: SyncError | None, now: str) -> None:
    if error is None:
        drop_condition(vmi, "Synchronized")
    elif not has_condition(vmi, "Synchronized", "False", error.reason):
        # The first message under a reason stays, however often it is tried again.
        drop_condition(vmi, "Synchronized")
        told = {"type": "Synchronized", "status": "False", "reason": error.reason, "message": error.message}
        vmi["status"].setdefault("conditions", []).append(told | {"lastProbeTime": None, "lastTransitionTime": now})
