"""What declares units, and orders: bodies as tenants write them."""

from schemas.kinds import GPU_CLAIM, VM, VM_POOL, VMI_REPLICA_SET
from tests.webhooks.given import Obj, gpus, vmi


def vm(count: int, **metadata: object) -> Obj:
    """Return a VM of so many units, with a password in it."""
    template = vmi(gpus({"className": "l40s", "count": count}))
    head = {"name": "vm1", "uid": "u1", "resourceVersion": "7", **metadata}
    body = {"template": {"metadata": template["metadata"], "spec": template["spec"]}}
    return {"apiVersion": VM.api_version, "kind": VM.kind, "metadata": head, "spec": body}


def pool(replicas: int | None, **metadata: object) -> Obj:
    """Return a pool of VMs of two units each."""
    head = {"name": "pool", "namespace": "tenant-a", **metadata}
    spec = {"replicas": replicas, "selector": {}, "virtualMachineTemplate": {"spec": vm(2)["spec"]}}
    return {"apiVersion": VM_POOL.api_version, "kind": VM_POOL.kind, "metadata": head, "spec": spec}


def replica_set(replicas: int | None) -> Obj:
    """Return a replica set of VMIs of two units each."""
    spec = {"replicas": replicas, "selector": {}, "template": vm(2)["spec"]["template"]}
    head = {"name": "set", "namespace": "tenant-a"}
    return {"apiVersion": VMI_REPLICA_SET.api_version, "kind": VMI_REPLICA_SET.kind, "metadata": head, "spec": spec}


def scale(replicas: int) -> Obj:
    """Return a Scale, which shows no template."""
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "pool"},
        "spec": {"replicas": replicas},
    }


def claim(count: int = 1, gpu_class: str = "l40s", **labels: str) -> Obj:
    """Return an order."""
    spec = {"className": gpu_class, "count": count}
    head = {"name": "c", "namespace": "tenant-a", "labels": labels}
    return {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind, "metadata": head, "spec": spec}
