"""The scale subresource: a count of replicas, shown and written apart from the object that has it (T20)."""

from deploy.world.manifests import Obj, dig

KIND = {"group": "autoscaling", "version": "v1", "kind": "Scale"}

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(obj: Obj) -> Obj:
    """Return an object's Scale; an admission review of one shows no labels and no owner."""
    status: Obj = {"replicas": dig(obj, "status", "replicas") or 0}
    selector = dig(obj, "status", "labelSelector")
    if selector:
        status["selector"] = selector
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {name: obj["metadata"][name] for name in _KEPT if name in obj["metadata"]},
        "spec": {"replicas": dig(obj, "spec", "replicas") or 0},
        "status": status,
    }


def scaled(obj: Obj, scale: Obj) -> Obj:
    """Return the object with the Scale's replicas."""
    return obj | {"spec": obj["spec"] | {"replicas": dig(scale, "spec", "replicas") or 0}}
