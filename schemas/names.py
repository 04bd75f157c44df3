"""Every label, annotation, finalizer, gate, quota key and settings name, defined once (N1).

`deploy.generate` publishes this list as a page and as JSON for charts and API servers that must agree.
"""

from typing import Final

DOMAIN: Final = "cozystack.io"

# On a VM template; KubeVirt copies both to the VMI and to every launcher (N2).
GPUS_ANNOTATION: Final = f"{DOMAIN}/gpus"
REFERENCE_LABEL: Final = f"{DOMAIN}/gpu-reference"
REFERENCE_VALUE: Final = "true"

# Written by our webhooks alone, always overwriting.
POLICY_ANNOTATION: Final = f"{DOMAIN}/gpu-start-policy"
ADMISSION_ANNOTATION: Final = f"{DOMAIN}/gpu-admission"
GPU_ENTRY_PREFIX: Final = "gpubinder-"

# On launchers: the scheduling gate of policy Wait (P2).
GATE: Final = f"{DOMAIN}/gpu"

# On claims and classes: deletion waits for what uses them (F1, K2).
CLAIM_FINALIZER: Final = f"{DOMAIN}/gpu-claim"
CLASS_FINALIZER: Final = f"{DOMAIN}/gpu-class"

# On claims: a template claim is marked; the mark names no VMI, names can exceed a label value (N3).
TEMPLATE_LABEL: Final = f"{DOMAIN}/gpu-template-claim"
CLASS_LABEL: Final = f"{DOMAIN}/gpu-class"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
FIELD_MANAGER: Final = "gpubinder"

# On namespaces: the vGPU entitlement (A5).
VGPU_LABEL: Final = f"{DOMAIN}/vgpu"

# On objects whose status is not ours to stamp: the decision, or the place in the log, that they show (T22).
STAMP_ANNOTATION: Final = f"{DOMAIN}/gpu-stamp"

# Licence copies: Secrets with the class label, a stamp, and the keyed digest of what they hold; on VMIs their volume.
LICENCE_PREFIX: Final = "gpu-licence-"
LICENCE_DIGEST_ANNOTATION: Final = f"{DOMAIN}/gpu-licence-digest"
LICENCE_VOLUME: Final = "gpubinder-licence"
DIGEST_KEY_SECRET: Final = "gpubinder-digest-key"
DIGEST_KEY: Final = "key"
LICENCE_TOKEN_KEY: Final = "client_configuration_token.tok"
LICENCE_CONF_KEY: Final = "gridd.conf"
LICENCE_VOLUME_LABEL: Final = "GPULICENCE"

# Budget keys: units over all classes, units of a class (its name follows); every other key is a resource name.
BUDGET_TOTAL: Final = "gpus.cozystack.io"
BUDGET_CLASS_PREFIX: Final = "gpus.cozystack.io/"

# Budgets that mirror a tenant's HelmRelease: one in the tenant's namespace, under this name.
MIRRORED_BUDGET: Final = "tenant-quotas"

# Settings and identity.
SETTINGS_CONFIGMAP: Final = "gpubinder-settings"
ANCHOR_CONFIGMAP: Final = "gpubinder-anchor"
LEASE_PREFIX: Final = "gpubinder-"
WEBHOOK_TLS_SECRET: Final = "gpubinder-webhook-tls"
SETTING_ENABLED: Final = "enabled"
SETTING_POLICY: Final = "startPolicy"
SETTING_PAUSED: Final = "paused"
SETTING_CONTROLLERS: Final = "controllers"
SETTING_KUBEVIRT: Final = "kubevirtNamespace"
SETTING_LICENCES: Final = "licenceNamespace"
POLICY_WAIT: Final = "Wait"
POLICY_REFUSE: Final = "Refuse"
POLICY_SCHEDULE: Final = "Schedule"

# KubeVirt's marks, as it writes them.
KUBEVIRT_LABEL: Final = "kubevirt.io"
LAUNCHER_VALUE: Final = "virt-launcher"
CREATED_BY_LABEL: Final = "kubevirt.io/created-by"
MIGRATION_LABEL: Final = "kubevirt.io/migrationJobUID"
EPHEMERAL_ANNOTATION: Final = "kubevirt.io/ephemeral-provisioning"
KUBEVIRT_CONTROLLER_ACCOUNT: Final = "kubevirt-controller"
SCHEDULABLE_LABEL: Final = "kubevirt.io/schedulable"
VMI_KIND: Final = "VirtualMachineInstance"

# Cozystack's tenants, as it names them and marks their HelmReleases.
TENANT_PREFIX: Final = "tenant-"
TENANT_ROOT: Final = "tenant-root"
TENANT_KIND: Final = "Tenant"
TENANT_CHART: Final = "tenant"
APPLICATION_KIND_LABEL: Final = "apps.cozystack.io/application.kind"

# Kubernetes' own.
ARCHITECTURE_LABEL: Final = "kubernetes.io/arch"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
KUBEVIRT_DEVICES: Final = "devices.kubevirt.io/"
NODE_NAME_FIELD: Final = "metadata.name"

# Usage records: Workloads, named after the kind of what they tell of; each claim has one (F2, N3, W2).
CLAIM_RECORD_PREFIX: Final = "gpuclaim-"
POD_RECORD_PREFIX: Final = "pod-"
PVC_RECORD_PREFIX: Final = "pvc-"
SERVICE_RECORD_PREFIX: Final = "svc-"
CLAIM_RECORD_KIND: Final = "gpu"
RECORD_NODE_ANNOTATION: Final = f"{DOMAIN}/gpu-node"
RECORD_VM_ANNOTATION: Final = f"{DOMAIN}/gpu-vm"

# Marks of Workloads and of what a WorkloadMonitor tracks, as cozystack has them (W1-W3).
WORKLOAD_LABEL_PREFIX: Final = f"workloads.{DOMAIN}/"
MONITOR_LABEL: Final = f"{WORKLOAD_LABEL_PREFIX}monitor"
INSTANCE_TYPE_LABEL: Final = f"{WORKLOAD_LABEL_PREFIX}kubevirt-vmi-instance-type"
INSTANCE_PROFILE_LABEL: Final = f"{WORKLOAD_LABEL_PREFIX}kubevirt-vmi-instance-profile"
RESOURCES_ANNOTATION: Final = f"workload.{DOMAIN}/resources"
INSTANCE_TYPE_ANNOTATION: Final = "kubevirt.io/cluster-instancetype-name"
INSTANCE_PROFILE_ANNOTATION: Final = "kubevirt.io/cluster-instanceprofile-name"
POOL_ANNOTATION: Final = "metallb.io/ip-allocated-from-pool"
POOL_ANNOTATION_BEFORE: Final = "metallb.universe.tf/ip-allocated-from-pool"
DATA_VOLUME_REASON: Final = "DataVolumeNotReady"
STORAGE_KEY: Final = "{}.storageclass.storage.k8s.io/requests.{}"
ADDRESSES_KEY: Final = "{}.ipaddresspool.metallb.io/requests.ipaddresses"
