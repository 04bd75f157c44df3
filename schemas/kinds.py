"""The Kubernetes kinds this program reads or writes: group, version, plural, scope."""

from typing import Self
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

GROUP = "cozystack.io"
VERSION = "v1alpha1"
RBAC_GROUP = "rbac.authorization.k8s.io"
_IN_NAMES = ":"


class Resource(msgspec.Struct, frozen=True, omit_defaults=True):
    """One served resource; `path` builds the REST path of a collection or an object.

    `labelled`: where it is listed and watched, only objects that carry this label. `older`: versions of it that hold
    the same where we read, for clusters that do not serve the newest.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    labelled: str = ""
    older: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple[Self, ...]:
        """Return the kind in each version that may be served, newest first."""
        return (self, *(replace(self, version=version, older=()) for version in self.older))

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the bare version of the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the REST path: of all namespaces where `namespace` is empty. A name is one step of it always."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        middle = f"/namespaces/{quote(namespace, safe=_IN_NAMES)}" if self.namespaced and namespace else ""
        tail = f"/{quote(name, safe=_IN_NAMES)}" if name else ""
        sub = f"/{subresource}" if subresource else ""
        return f"{root}{middle}/{self.plural}{tail}{sub}"


NODE = Resource("", "v1", "nodes", "Node", namespaced=False)
POD = Resource("", "v1", "pods", "Pod", namespaced=True)
PV = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PVC = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True)
SERVICE = Resource("", "v1", "services", "Service", namespaced=True)
NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRET = Resource("", "v1", "secrets", "Secret", namespaced=True)
CONFIGMAP = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
EVENT = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)
LEASE = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
CRD = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
PRIORITY_CLASS = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)

GPU_CLASS = Resource(GROUP, VERSION, "gpuclasses", "GPUClass", namespaced=False)
GPU_CLAIM = Resource(GROUP, VERSION, "gpuclaims", "GPUClaim", namespaced=True)
GPU_BUDGET = Resource(GROUP, VERSION, "gpubudgets", "GPUBudget", namespaced=True)
HELM_RELEASE = Resource("helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease", namespaced=True)
WORKLOAD = Resource(GROUP, VERSION, "workloads", "Workload", namespaced=True)
WORKLOAD_MONITOR = Resource(GROUP, VERSION, "workloadmonitors", "WorkloadMonitor", namespaced=True)

DATA_VOLUME = Resource("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume", namespaced=True)
KUBEVIRT = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt", namespaced=True)
VM = Resource("kubevirt.io", "v1", "virtualmachines", "VirtualMachine", namespaced=True)
VMI = Resource("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance", namespaced=True)
VMI_REPLICA_SET = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancereplicasets", "VirtualMachineInstanceReplicaSet", namespaced=True
)
VM_POOL = Resource(
    "pool.kubevirt.io", "v1beta1", "virtualmachinepools", "VirtualMachinePool", namespaced=True, older=("v1alpha1",)
)
