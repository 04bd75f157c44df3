"""From creation to removal: what the API server itself writes into an object, and what it ignores.

System fields are the server's, status belongs to the status subresource and the rest doesn't, an
object with finalizers outlives its deletion, and a bound pod waits for its kubelet.
"""

import base64

from deploy.world import pods
from deploy.world.clock import stamp
from deploy.world.manifests import Obj
from deploy.world.traits import Traits
from schemas import kinds
from schemas.kinds import Resource

_SYSTEM = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT_ON_STATUS = ("labels", "annotations", "finalizers")
_GENERATED_BASE = 58
_NAMESPACE_FINALIZER = "kubernetes"


def tidy(obj: Obj) -> Obj:
    """Return an object as typed decoding leaves it: no nulls, no empty metadata maps, no managed fields."""
    whole = {name: value for name, value in obj.items() if value is not None}
    meta = whole.get("metadata") or {}
    whole["metadata"] = {name: value for name, value in meta.items() if value not in (None, {}, [], "")}
    whole["metadata"].pop("managedFields", None)
    if whole.get("kind") == kinds.POD.kind:
        return pods.tidy(whole)
    if whole.get("kind") == "Secret" and "stringData" in whole:
        plain = whole.pop("stringData")
        encoded = {name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()}
        whole["data"] = (whole.get("data") or {}) | encoded
    return whole


def generated_name(base: str, suffix: str) -> str:
    """Return a name that `generateName` asks for."""
    return base[:_GENERATED_BASE] + suffix


def created(resource: Resource, traits: Traits, obj: Obj, *, name: str, uid: str, now: float) -> Obj:
    """Return a new object as it will be stored."""
    whole = dict(obj)
    meta = dict(obj["metadata"])
    for field in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        meta.pop(field, None)
    meta |= {"name": name, "uid": uid, "creationTimestamp": stamp(now)}
    if traits.counted:
        meta["generation"] = 1
    whole["metadata"] = meta
    # Nodes alone may be born with a status: the kubelet writes both at once.
    if traits.status and resource != kinds.NODE:
        whole.pop("status", None)
    if resource == kinds.NAMESPACE:
        whole["spec"] = {"finalizers": [_NAMESPACE_FINALIZER]}
        whole["status"] = {"phase": "Active"}
        meta["labels"] = (meta.get("labels") or {}) | {"kubernetes.io/metadata.name": name}
    elif resource == kinds.POD:
        return pods.created(whole, stamp(now))
    elif resource in (kinds.PV, kinds.PVC):
        whole["status"] = {"phase": "Pending"}
    return whole


def updated(resource: Resource, traits: Traits, old: Obj, new: Obj, *, status: bool) -> Obj:
    """Return the object after a write to it, or to its status: what the request may not touch is as before."""
    whole = _status_of(traits, old, new) if status else _rest_of(resource, traits, old, new)
    meta = dict(whole["metadata"])
    for field in _SYSTEM:
        if field in old["metadata"]:
            meta[field] = old["metadata"][field]
        else:
            meta.pop(field, None)
    meta["resourceVersion"] = old["metadata"]["resourceVersion"]
    meta.pop("generation", None)
    if traits.counted:
        generation = old["metadata"].get("generation", 1)
        meta["generation"] = generation + (not status and _counts(traits, old, whole))
    whole["metadata"] = meta
    return whole


def _status_of(traits: Traits, old: Obj, new: Obj) -> Obj:
    whole = dict(old)
    whole.pop("status", None)
    if "status" in new:
        whole["status"] = new["status"]
    if not traits.custom:
        # Built-in kinds take some metadata along; custom ones drop it without a word.
        meta = dict(old["metadata"])
        for field in _KEPT_ON_STATUS:
            meta.pop(field, None)
            if field in new["metadata"]:
                meta[field] = new["metadata"][field]
        whole["metadata"] = meta
    return whole


def _rest_of(resource: Resource, traits: Traits, old: Obj, new: Obj) -> Obj:
    whole = dict(new)
    if traits.status:
        whole.pop("status", None)
        if "status" in old:
            whole["status"] = old["status"]
    if resource == kinds.NAMESPACE:
        whole["spec"] = old["spec"]
    return whole


def _counts(traits: Traits, old: Obj, new: Obj) -> bool:
    unseen = ("metadata", "status") if traits.status else ("metadata",)
    before = {name: value for name, value in old.items() if name not in unseen}
    after = {name: value for name, value in new.items() if name not in unseen}
    return before != after


def grace_of(resource: Resource, obj: Obj, asked: int | None) -> int:
    """Return the seconds a deletion waits: for a pod on a node its kubelet's, nothing otherwise."""
    if resource != kinds.POD or not obj["spec"].get("nodeName"):
        return 0
    if obj.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    return int(obj["spec"].get("terminationGracePeriodSeconds", 30)) if asked is None else asked


def deleting(resource: Resource, old: Obj, *, grace: int, now: float) -> Obj:
    """Return the object marked as going; a second deletion may shorten the first one's grace only."""
    meta = dict(old["metadata"])
    if "deletionTimestamp" in meta:
        if grace >= meta.get("deletionGracePeriodSeconds", 0):
            return old
    elif "generation" in meta:
        meta["generation"] += 1
    meta["deletionTimestamp"] = stamp(now + grace)
    whole = old | {"metadata": meta}
    if resource == kinds.NAMESPACE:
        whole["status"] = (old.get("status") or {}) | {"phase": "Terminating"}
    else:
        meta["deletionGracePeriodSeconds"] = grace
    return whole


def is_over(resource: Resource, obj: Obj) -> bool:
    """Whether nothing keeps a deleted object any more."""
    meta = obj["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if resource == kinds.NAMESPACE:
        return not obj["spec"].get("finalizers")
    return not meta.get("deletionGracePeriodSeconds")


def emptied(namespace: Obj) -> Obj:
    """Return a namespace after its content is gone: the namespace controller lets go of it."""
    return namespace | {"spec": namespace["spec"] | {"finalizers": []}}
