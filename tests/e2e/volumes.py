"""Volumes in end-to-end tests: bound to nodes beforehand, or where their first consumer lands."""

from collections.abc import Mapping

from schemas.kinds import PV, PVC
from tests.cluster.api import Object
from tests.e2e.tenant import Tenant

CAPACITY = {"storage": "1Gi"}
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def volume(name: str, tenant: str, claim: str, labels: Mapping[str, str], storage_class: str = "") -> Object:
    """Return a volume that only nodes with these labels reach, meant for one PVC."""
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    spec = {
        "capacity": CAPACITY,
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": tenant, "name": claim},
        "hostPath": {"path": "/tmp/nothing"},  # noqa: S108 - nobody mounts it
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def claim_on(name: str, volume_name: str = "", storage_class: str = "", **metadata: object) -> Object:
    """Return a PVC: for a given volume, or for one still to be made."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": {"requests": CAPACITY}}
    return {"metadata": {"name": name, **metadata}, "spec": spec | ({"volumeName": volume_name} if volume_name else {})}


async def bound_volume(program: Tenant, name: str, labels: Mapping[str, str]) -> None:
    """Create a PV that only nodes with these labels reach, and a PVC bound to it."""
    made = f"{program.tenant}-{name}"
    await program.api.create(PV.path(), volume(made, program.tenant, name, labels))
    await program.api.create(PVC.path(program.tenant), claim_on(name, made))
    await is_bound(program, name)


async def is_bound(program: Tenant, name: str) -> None:
    """Wait until the PVC is bound."""

    def bound(pvc: Object | None) -> bool:
        return pvc is not None and pvc["status"]["phase"] == "Bound"

    await program.api.until(PVC.path(program.tenant, name), bound)
