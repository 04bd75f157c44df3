"""Admission reviews: what the API server sends and reads back, and where our webhooks stand in its order."""

from typing import Final

from schemas import kinds, names

REVIEW_API_VERSION: Final = "admission.k8s.io/v1"
REVIEW_KIND: Final = "AdmissionReview"
PATCH_TYPE: Final = "JSONPatch"
CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

KUBEVIRT_GROUP: Final = kinds.VMI.group
GATES_FIELD: Final = "schedulingGates"
GATES_PATH: Final = f"/spec/{GATES_FIELD}"

REGISTRATION_GROUP: Final = "admissionregistration.k8s.io"
CONFIGURATION: Final = kinds.Resource(
    REGISTRATION_GROUP,
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)

# The API server calls configurations in the order of their names. This one sorts behind
# "virt-api-mutator": what KubeVirt's presets and defaults add to a VMI is there when we look at it, a VMI
# is asked about once rather than again after each of KubeVirt's changes, and disks of ours come last.
CONFIGURATION_NAME: Final = f"webhooks.gpubinder.{names.DOMAIN}"
# What is asked about objects as they will be stored, after every mutator.
VALIDATING_CONFIGURATION: Final = kinds.Resource(
    REGISTRATION_GROUP,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
VMI_WEBHOOK: Final = f"vmis.gpubinder.{names.DOMAIN}"
POD_WEBHOOK: Final = f"pods.gpubinder.{names.DOMAIN}"
VMI_PATH: Final = "/mutate/vmis"
POD_PATH: Final = "/mutate/pods"
BUDGETS_DOMAIN: Final = f"budgets.gpubinder.{names.DOMAIN}"
ORDER_WEBHOOK: Final = f"orders.gpubinder.{names.DOMAIN}"
WRITE_PATH: Final = "/validate/writes"
ORDER_PATH: Final = "/validate/orders"
SCALE: Final = "scale"
START_WEBHOOK: Final = f"starts.gpubinder.{names.DOMAIN}"
START_PATH: Final = "/validate/starts"

# Policies that the API server itself holds writers to; each is bound under its own name.
POLICY: Final = kinds.Resource(
    REGISTRATION_GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
POLICY_BINDING: Final = kinds.Resource(
    REGISTRATION_GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
POLICY_SUFFIX: Final = f".gpubinder.{names.DOMAIN}"

# What puts a pod on its node, as the API server still takes it beside the subresource of pods.
BINDING: Final = kinds.Resource("", "v1", "bindings", "Binding", namespaced=True)

# Who the API server takes us for.
SELF_REVIEW: Final = kinds.Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)

# Whom policies know by the API server's own names.
ACCOUNTS_GROUP: Final = "system:serviceaccounts:"
ACCOUNT_PREFIX: Final = "system:serviceaccount:"
CONTROL_PLANE_GROUP: Final = f"{ACCOUNTS_GROUP}kube-system"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"
PLATFORM_VERB: Final = "administer"
