"""What is special about pods: their defaults, and which of their fields may still change.

A gated pod's placement may be narrowed and its gates removed, in one write too; nothing else of it,
and nothing at all of an ungated pod's, may change (tried on 1.36).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from binder.kube import Cause
from deploy.world.manifests import Obj, dig
from deploy.world.refusals import FORBIDDEN, INVALID

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
_OMITTED_WHEN_EMPTY = ("schedulingGates", "tolerations", "nodeSelector", "initContainers", "volumes")
_MUTABLE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def created(pod: Obj, now: str) -> Obj:
    """Return a new pod with the defaults that somebody reads later. `now`: as the server prints time."""
    spec = dict(pod["spec"])
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("priority", 0)
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [_requesting(container) for container in spec[name]]
    status: Obj = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastTransitionTime": now,
            }
        ]
    return pod | {"spec": spec, "status": status}


def tidy(pod: Obj) -> Obj:
    """Return the pod without the empty lists that typed decoding leaves out."""
    spec = pod.get("spec") or {}
    kept = {name: value for name, value in spec.items() if value or name not in _OMITTED_WHEN_EMPTY}
    return pod | {"spec": kept}


def _requesting(container: Obj) -> Obj:
    """Return the container with requests as large as its limits where it names limits alone."""
    resources = container.get("resources") or {}
    if "limits" not in resources:
        return container
    requests = dict(resources["limits"]) | (resources.get("requests") or {})
    return container | {"resources": resources | {"requests": requests}}


def wrong_pod(pod: Obj) -> Iterator[Cause]:
    """Yield what is wrong with a new pod."""
    spec = pod.get("spec") or {}
    if not spec.get("containers"):
        yield Cause("spec.containers", "FieldValueRequired")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield Cause("spec.nodeName", FORBIDDEN)


def wrong_pod_change(old: Obj, new: Obj) -> Iterator[Cause]:
    """Yield what an update of a pod may not change."""
    before, after = old["spec"], new["spec"]
    known = [gate["name"] for gate in before.get("schedulingGates") or ()]
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        if gate["name"] not in known:
            yield Cause(f"spec.schedulingGates[{index}].name", FORBIDDEN)
    was, is_now = _masked(before), _masked(after)
    if known:
        yield from _narrowed_selector(before, after)
        yield from _narrowed_affinity(before, after)
        for spec in (was, is_now):
            spec.pop("nodeSelector", None)
            spec["affinity"] = _without_node_affinity(spec.get("affinity"))
    if was != is_now or _lost_tolerations(before, after):
        yield Cause("spec", FORBIDDEN)


def _masked(spec: Obj) -> Obj:
    """Return the spec without what may always change: images, deadline, tolerations, gates."""
    masked = {name: value for name, value in spec.items() if name not in _MUTABLE}
    for name in ("containers", "initContainers"):
        if name in masked:
            masked[name] = [{k: v for k, v in container.items() if k != "image"} for container in masked[name]]
    return masked


def _lost_tolerations(before: Obj, after: Obj) -> bool:
    kept = after.get("tolerations") or []
    return any(one not in kept for one in before.get("tolerations") or [])


def _without_node_affinity(affinity: Mapping[str, Any] | None) -> Obj:
    return {name: value for name, value in (affinity or {}).items() if name != "nodeAffinity" and value}


def _narrowed_selector(before: Obj, after: Obj) -> Iterator[Cause]:
    wanted = after.get("nodeSelector") or {}
    if any(wanted.get(key) != value for key, value in (before.get("nodeSelector") or {}).items()):
        yield Cause("spec.nodeSelector", INVALID)


def _narrowed_affinity(before: Obj, after: Obj) -> Iterator[Cause]:
    """Terms are ORed, so each of them may only grow, at its end, and none may come or go."""
    old_terms = dig(before, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    if old_terms is None:
        return
    new_terms = dig(after, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms") or []
    if len(old_terms) != len(new_terms):
        yield Cause(_TERMS, INVALID)
        return
    for index, (old, new) in enumerate(zip(old_terms, new_terms, strict=True)):
        if not (_grown(old, new, "matchExpressions") and _grown(old, new, "matchFields")):
            yield Cause(f"{_TERMS}[{index}]", INVALID)


def _grown(old: Mapping[str, Any], new: Mapping[str, Any], field: str) -> bool:
    before: Sequence[object] = old.get(field) or []
    after: Sequence[object] = new.get(field) or []
    return list(after[: len(before)]) == list(before)
