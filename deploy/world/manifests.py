"""Reading and writing loose Kubernetes objects: owners, conditions, finalizers, pods that are down.

The emulators keep objects whole, as dictionaries: what they do not know must survive their updates.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Obj = dict[str, Any]
"""One object as JSON gives it."""

COMPUTE = "compute"
TEMPORARY_ANNOTATION = "kubevirt.io/ephemeral-provisioning"


def decode(body: bytes | msgspec.Raw) -> Obj:
    """Read one object's JSON."""
    found: Obj = msgspec.json.decode(body)
    return found


def encode(obj: Obj | list[Obj]) -> bytes:
    """Return an object or a patch as JSON."""
    return msgspec.json.encode(obj)


def copied(obj: Obj) -> Obj:
    """Return a deep copy of plain JSON data: through MessagePack, many times faster than `copy.deepcopy`."""
    found: Obj = msgspec.msgpack.decode(msgspec.msgpack.encode(obj))
    return found


def meta(obj: Obj) -> Obj:
    """Return the object's metadata."""
    found: Obj = obj["metadata"]
    return found


def status(obj: Obj) -> Obj:
    """Return the object's status, made empty where it has none."""
    found: Obj = obj.setdefault("status", {})
    return found


def dig(obj: Mapping[str, Any], *path: str) -> Any:  # noqa: ANN401 - JSON has any shape
    """Return the value under the path, or None where some step is missing or null."""
    at: Any = obj
    for step in path:
        if not isinstance(at, Mapping):
            return None
        at = at.get(step)
    return at


def key_of(obj: Obj) -> str:
    """Return `namespace/name`, or the name where there is no namespace."""
    namespace = meta(obj).get("namespace", "")
    return f"{namespace}/{meta(obj)['name']}" if namespace else str(meta(obj)["name"])


def split_key(key: str) -> tuple[str, str]:
    """Return namespace and name of a key."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def deleting(obj: Obj) -> bool:
    """Say whether the object has a deletion timestamp."""
    return bool(meta(obj).get("deletionTimestamp"))


def controller_of(obj: Obj) -> Obj | None:
    """Return the owner reference that controls the object."""
    owner: Obj
    for owner in meta(obj).get("ownerReferences") or ():
        if owner.get("controller"):
            return owner
    return None


def owner_reference(owner: Obj) -> Obj:
    """Return the controlling, deletion-blocking reference to an owner."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta(owner)["name"],
        "uid": meta(owner)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def has_finalizer(obj: Obj, name: str) -> bool:
    """Say whether the finalizer stands."""
    return name in (meta(obj).get("finalizers") or ())


def drop_finalizer(obj: Obj, name: str) -> None:
    """Take the finalizer off, and the empty list with it."""
    left = [one for one in meta(obj).get("finalizers") or () if one != name]
    if left:
        meta(obj)["finalizers"] = left
    else:
        meta(obj).pop("finalizers", None)


def condition(obj: Obj, kind: str) -> Obj | None:
    """Return the condition of that type."""
    found: Obj
    for found in dig(obj, "status", "conditions") or ():
        if found.get("type") == kind:
            return found
    return None


def has_condition(obj: Obj, kind: str, value: str, reason: str = "") -> bool:
    """Say whether the condition stands with that status, and that reason where one is asked for."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == value and (not reason or found.get("reason") == reason)


def set_condition(obj: Obj, new: Obj) -> None:
    """Replace the condition of that type in its place or append it; an unchanged one keeps its times."""
    conditions: list[Obj] = status(obj).setdefault("conditions", [])
    for index, old in enumerate(conditions):
        if old.get("type") == new["type"]:
            if _told(old) != _told(new):
                conditions[index] = new
            return
    conditions.append(new)


def _told(one: Obj) -> tuple[object, ...]:
    return one.get("status"), one.get("reason") or "", one.get("message") or ""


def drop_condition(obj: Obj, kind: str) -> None:
    """Take the condition of that type off."""
    left = [one for one in dig(obj, "status", "conditions") or () if one.get("type") != kind]
    if left:
        obj["status"]["conditions"] = left
    elif "status" in obj:
        obj["status"].pop("conditions", None)


def is_temporary(pod: Obj) -> bool:
    """Say whether the pod is one of KubeVirt's that only binds WaitForFirstConsumer volumes."""
    return TEMPORARY_ANNOTATION in (meta(pod).get("annotations") or {})


def pod_ended(pod: Obj) -> bool:
    """Say whether the pod's phase is final."""
    return dig(pod, "status", "phase") in {"Succeeded", "Failed"}


def pod_down(pod: Obj) -> bool:
    """Say whether the pod ended, is being deleted, or its compute container has stopped."""
    return deleting(pod) or pod_ended(pod) or _compute(pod, "terminated") is not None


def pod_runs(pod: Obj) -> bool:
    """Say whether the pod is Running and so is its compute container."""
    return dig(pod, "status", "phase") == "Running" and _compute(pod, "running") is not None and not deleting(pod)


def _compute(pod: Obj, state: str) -> Obj | None:
    for container in dig(pod, "status", "containerStatuses") or ():
        if container.get("name") == COMPUTE:
            found: Obj | None = dig(container, "state", state)
            return found
    return None


def oldest_first(objects: Iterable[Obj]) -> list[Obj]:
    """Return the objects by creation time, then name."""
    return sorted(objects, key=lambda one: (meta(one).get("creationTimestamp") or "", meta(one)["name"]))
