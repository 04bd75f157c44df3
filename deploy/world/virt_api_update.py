"""virt-api at VMI update, and at VM create: who may change what.

Nobody but KubeVirt's own accounts changes a VMI's spec (refused) or its status (silently put back);
anybody may add labels, annotations and finalizers. So a VMI can be shaped at its creation only.
"""

import uuid

from binder.kube import Cause
from deploy.world.manifests import Obj, copied, dig, meta
from deploy.world.virt_names import (
    CREATED_BY,
    MIGRATION_TARGET_LABEL,
    MIGRATION_UID_LABEL,
    NODE_NAME_LABEL,
    PCI_TOPOLOGY,
    SCHEDULABLE_LABEL,
    is_kubevirt,
)

RESTRICTED_LABELS = (
    CREATED_BY,
    MIGRATION_UID_LABEL,
    NODE_NAME_LABEL,
    MIGRATION_TARGET_LABEL,
    SCHEDULABLE_LABEL,
    "kubevirt.io/install-strategy",
)
RESTRICTED = "update of VMI object is restricted"
_FIRMWARE = uuid.UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")


def mutate_vmi_update(old: Obj, new: Obj, *, user: str, namespace: str) -> Obj:
    """Return the VMI as virt-api hands it on: a stranger's change of status is put back without a word.

    `namespace`: KubeVirt's own, whose service accounts are no strangers.
    """
    if is_kubevirt(user, namespace) or old.get("status") == new.get("status"):
        return new
    put_back = copied(new)
    if "status" in old:
        put_back["status"] = copied(old["status"])
    else:
        put_back.pop("status", None)
    return put_back


def validate_vmi_update(old: Obj, new: Obj, *, user: str, namespace: str) -> tuple[Cause, ...]:
    """Return why virt-api refuses the change of a VMI; nothing where it does not."""
    if is_kubevirt(user, namespace):
        return ()
    if old.get("spec") != new.get("spec"):
        return (Cause("spec", RESTRICTED),)
    before = meta(old).get("labels") or {}
    after = meta(new).get("labels") or {}
    return tuple(
        Cause(f"metadata.labels.{name}", "modification of the following reserved kubevirt.io/ labels is prohibited")
        for name in RESTRICTED_LABELS
        if before.get(name) != after.get(name)
    )


def mutate_vm(vm: Obj) -> Obj:
    """Return a VM as virt-api hands it on: architecture, machine type and firmware of its template."""
    new = copied(vm)
    template: Obj = new.setdefault("spec", {}).setdefault("template", {})
    template.setdefault("metadata", {}).setdefault("annotations", {}).setdefault(PCI_TOPOLOGY, "v3")
    spec: Obj = template.setdefault("spec", {})
    spec.setdefault("architecture", "amd64")
    domain: Obj = spec.setdefault("domain", {})
    domain.setdefault("machine", {})
    domain["machine"]["type"] = domain["machine"].get("type") or "q35"
    domain.setdefault("resources", {})
    whose = f"{meta(new).get('namespace', '')}/{meta(new).get('name', '')}"
    firmware: Obj = domain.setdefault("firmware", {})
    for field in ("serial", "uuid"):
        firmware.setdefault(field, str(uuid.uuid5(_FIRMWARE, f"{field}:{whose}")))
    return new


def validate_vm(vm: Obj) -> tuple[Cause, ...]:
    """Return why virt-api refuses the VM: no run strategy, or two of them."""
    spec = vm.get("spec") or {}
    if spec.get("running") is not None and spec.get("runStrategy"):
        return (Cause("spec.running", "Running and RunStrategy are mutually exclusive"),)
    if spec.get("running") is None and not spec.get("runStrategy"):
        return (Cause("spec.running", "One of Running or RunStrategy must be specified"),)
    if dig(spec, "template", "spec", "domain") is None:
        return (Cause("spec.template", "missing virtual machine template"),)
    return ()
