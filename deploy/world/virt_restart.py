"""Whether a VM asks for a restart: its template of now against the one that its VMI was started from. Pure.

KubeVirt compares the two templates, never the VMI: what admission wrote into that is no difference. CPU and memory
are not plugged into a running guest here, so that they ask for a restart, as KubeVirt has it of VMs that can't migrate.
"""

from collections.abc import Mapping
from typing import Any

from deploy.world.manifests import Obj, copied, dig, drop_condition, has_condition

CONDITION = "RestartRequired"
MESSAGE = "a non-live-updatable field was changed in the template spec"
PLACEMENT = ("affinity", "nodeSelector", "tolerations")
"""Fields of a VMI that LiveUpdate puts back to the template's."""


def needs_restart(started: Obj, current: Obj, *, live_update: bool) -> bool:
    """Say whether a template's spec of now can't reach a VMI that was started from the spec `started`."""
    before, now = copied(started), copied(current)
    if live_update:
        for field in PLACEMENT:
            before.pop(field, None)
            now.pop(field, None)
    plugged = {name for spec in (before, now) for name, volume in _volumes(spec).items() if _is_plugged(volume)}
    for spec in (before, now):
        spec["volumes"] = [one for one in spec.get("volumes") or () if one["name"] not in plugged]
        devices = spec.setdefault("domain", {}).setdefault("devices", {})
        devices["disks"] = [one for one in devices.get("disks") or () if one["name"] not in plugged]
    return before != now


def _volumes(spec: Mapping[str, Any]) -> dict[str, Obj]:
    return {one["name"]: one for one in spec.get("volumes") or ()}


def _is_plugged(volume: Mapping[str, Any]) -> bool:
    return any(dig(volume, source, "hotpluggable") for source in ("persistentVolumeClaim", "dataVolume"))


def tell_restart(vm: Obj, *, needed: bool, now: str) -> None:
    """Let the VM's status say whether it asks for a restart. `now`: RFC 3339."""
    if not needed:
        drop_condition(vm, CONDITION)
    elif not has_condition(vm, CONDITION, "True"):
        told = {"type": CONDITION, "status": "True", "message": MESSAGE}
        vm["status"].setdefault("conditions", []).append(told | {"lastProbeTime": None, "lastTransitionTime": now})
