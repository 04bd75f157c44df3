"""Nodes without kubelets: objects whose status a test writes, with the GPUs and devices a launcher asks for.

What the node-lifecycle controller would do is done here: its taints follow readiness and cordoning.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.cluster.api import Api, Object

# An L40S as a card passed through whole, and as a vGPU profile; an H100 as a card: the device plugins' names.
L40S = "nvidia.com/AD102GL_L40S"
L40S_24C = "nvidia.com/NVIDIA_L40S-24C"
H100 = "nvidia.com/GH100_H100_PCIE"
DEVICES = {f"devices.kubevirt.io/{device}": "1k" for device in ("kvm", "tun", "vhost-net")}
ROOMY = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110", **DEVICES}
_NOT_READY = "node.kubernetes.io/not-ready"
_CORDONED = "node.kubernetes.io/unschedulable"


def node(name: str, labels: Mapping[str, str] | None = None) -> Object:
    """A node that KubeVirt's handler runs on, as it stands before its kubelet has reported anything."""
    common = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubevirt.io/schedulable": "true",
        "machine-type.node.kubevirt.io/q35": "true",
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {**common, **(labels or {})}}}


def gpu_status(allocatable: Mapping[str, str], *, ready: bool = True) -> Object:
    """A node status that reports these resources; capacity is the same."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
        "message": "written by a test",
    }
    return {"allocatable": dict(allocatable), "capacity": dict(allocatable), "conditions": [condition]}


class Nodes:
    """Adds nodes to a cluster, changes them, and removes at the end what it added."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._taints: dict[str, list[Object]] = {}
        self._ready: dict[str, bool] = {}
        self._cordoned: dict[str, bool] = {}

    async def add(
        self,
        name: str,
        resources: Mapping[str, str] | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Object] = (),
    ) -> None:
        """Add a ready node. `resources` (quantities by name) come on top of, or instead of, those of `ROOMY`."""
        await self._api.create("/api/v1/nodes", node(name, labels))
        status = gpu_status({**ROOMY, **(resources or {})})
        await self._api.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        self._ready[name] = True
        self._cordoned[name] = False
        # Admission taints a new node as not ready, and nobody else would take that off again.
        await self.taint(name, taints)

    async def allocatable(self, name: str, resources: Mapping[str, str | None]) -> None:
        """Change the reported quantities; None takes a resource off the node."""
        change = {"allocatable": dict(resources), "capacity": dict(resources)}
        await self._api.patch(f"/api/v1/nodes/{name}/status", {"status": change})

    async def label(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Change labels; None removes one."""
        await self._api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": dict(labels)}})

    async def taint(self, name: str, taints: Sequence[Object]) -> None:
        """Replace the node's own taints ({key, value, effect}); those of its condition are kept."""
        self._taints[name] = [dict(taint) for taint in taints]
        await self._write_taints(name)

    async def ready(self, name: str, *, ready: bool) -> None:
        """Report the node ready or not."""
        condition = gpu_status({}, ready=ready)["conditions"]
        await self._api.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": condition}})
        self._ready[name] = ready
        await self._write_taints(name)

    async def cordon(self, name: str, *, cordoned: bool = True) -> None:
        """Make the node unschedulable, or schedulable again."""
        await self._api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": cordoned or None}})
        self._cordoned[name] = cordoned
        await self._write_taints(name)

    async def _write_taints(self, name: str) -> None:
        taints: list[dict[str, Any]] = list(self._taints[name])
        if not self._ready[name]:
            taints += [{"key": _NOT_READY, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        if self._cordoned[name]:
            taints.append({"key": _CORDONED, "effect": "NoSchedule"})
        await self._api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": taints or None}})

    async def remove(self, name: str) -> None:
        """Delete the node object."""
        await self._api.delete(f"/api/v1/nodes/{name}")
        del self._taints[name]

    async def remove_all(self) -> None:
        """Delete every node that was added here and is still there."""
        for name in list(self._taints):
            await self.remove(name)
