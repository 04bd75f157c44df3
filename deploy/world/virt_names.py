"""KubeVirt's own words, as its controllers write them: kinds, finalizers, labels, reasons, accounts."""

from typing import Final

from schemas.kinds import Resource

VMIM = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration", namespaced=True
)
VMIRS = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancereplicasets", "VirtualMachineInstanceReplicaSet", namespaced=True
)
SECRET = Resource("", "v1", "secrets", "Secret", namespaced=True)
CONTROLLER_REVISION = Resource("apps", "v1", "controllerrevisions", "ControllerRevision", namespaced=True)

VM_FINALIZER: Final = "kubevirt.io/virtualMachineControllerFinalize"
VMI_FINALIZER: Final = "kubevirt.io/foregroundDeleteVirtualMachine"
OLD_VMI_FINALIZER: Final = "foregroundDeleteVirtualMachine"
MIGRATION_FINALIZER: Final = "kubevirt.io/migrationJobFinalize"

NODE_NAME_LABEL: Final = "kubevirt.io/nodeName"
OUTDATED_LABEL: Final = "kubevirt.io/outdatedLauncherImage"
MIGRATION_TARGET_LABEL: Final = "kubevirt.io/migrationTargetNodeName"
MIGRATION_UID_LABEL: Final = "kubevirt.io/migrationJobUID"
MIGRATION_NAME_ANNOTATION: Final = "kubevirt.io/migrationJobName"
MIGRATION_VMI_LABEL: Final = "kubevirt.io/vmi-name"
CREATED_BY: Final = "kubevirt.io/created-by"
SCHEDULABLE_LABEL: Final = "kubevirt.io/schedulable"
OBSOLETE_HOST_MODEL: Final = "node-labeller.kubevirt.io/obsolete-host-model"
MACHINE_TYPE_LABEL: Final = "machine-type.node.kubevirt.io/"

VM_GENERATION: Final = "kubevirt.io/vm-generation"
LATEST_API: Final = "kubevirt.io/latest-observed-api-version"
STORAGE_API: Final = "kubevirt.io/storage-observed-api-version"
PCI_TOPOLOGY: Final = "kubevirt.io/pci-topology-version"

UNPAUSED: Final = "kubevirt.io/virtual-machine-unpaused"

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
SCHEDULED: Final = "Scheduled"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
FINAL_PHASES: Final = frozenset({SUCCEEDED, FAILED})

FAILED_CREATE: Final = "FailedCreate"
FAILED_PVC_NOT_FOUND: Final = "FailedPvcNotFound"
FAILED_DELETE: Final = "FailedDelete"

WFFC: Final = "WaitForFirstConsumer"
LIVE_UPDATE: Final = "LiveUpdate"

# The accounts that virt-api lets change status and spec of a VMI, in KubeVirt's own namespace.
CONTROLLER_ACCOUNT: Final = "kubevirt-controller"
HANDLER_ACCOUNT: Final = "kubevirt-handler"
ACCOUNTS: Final = (
    "kubevirt-apiserver",
    CONTROLLER_ACCOUNT,
    HANDLER_ACCOUNT,
    "kubevirt-synchronization-controller",
)


def account(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def is_kubevirt(user: str, namespace: str) -> bool:
    """Say whether the user is one of KubeVirt's own accounts."""
    return user in {account(namespace, name) for name in ACCOUNTS}
