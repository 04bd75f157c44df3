"""Admission reviews: what the API server sends and reads back, and where our webhooks stand in its order."""

from typing import Final

from schemas import kinds, names

REVIEW_API_VERSION: Final = "admission.k8s.io/v1"
REVIEW_KIND: Final = "AdmissionReview"
PATCH_TYPE: Final = "JSONPatch"
CREATE: Final = "CREATE"

KUBEVIRT_GROUP: Final = kinds.VMI.group
GATES_PATH: Final = "/spec/schedulingGates"

CONFIGURATION: Final = kinds.Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)

# The API server calls configurations in the order of their names. This one sorts behind
# "virt-api-mutator": what KubeVirt's presets and defaults add to a VMI is there when we look at it, a VMI
# is asked about once rather than again after each of KubeVirt's changes, and disks of ours come last.
CONFIGURATION_NAME: Final = f"webhooks.gpubinder.{names.DOMAIN}"
VMI_WEBHOOK: Final = f"vmis.gpubinder.{names.DOMAIN}"
POD_WEBHOOK: Final = f"pods.gpubinder.{names.DOMAIN}"
VMI_PATH: Final = "/mutate/vmis"
POD_PATH: Final = "/mutate/pods"
