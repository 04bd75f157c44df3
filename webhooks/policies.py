"""The ValidatingAdmissionPolicies: who may write marks, finalizers, statuses, licence copies and budgets (N4, B2).

The API server holds them by itself, with no webhook to be reached, and takes the settings ConfigMap as their
parameter. It asks them after every mutating webhook and blames the requester for what those wrote, so that what
our own webhooks write at create is never tested at create: there they overwrite or refuse forgeries themselves.

No policy stands in the way of a deletion: DELETE is asked about for budgets alone, and there the control plane's
own accounts pass, as they do where they end what is being deleted. Where the ConfigMap is missing the policies
that need it are silent: a namespace that ends after ours must not hang for it (F1).
"""

from typing import Any, Final

from schemas import names
from schemas.admission import (
    BINDING,
    CREATE,
    DELETE,
    UPDATE,
)
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, GPU_CLASS, POD, SECRET, VMI, Resource
from webhooks import cel
from webhooks.policy_form import Check, Policy, rendered

_STATUS: Final = "status"
_POD_MARKS: Final = (names.GPUS_ANNOTATION, names.POLICY_ANNOTATION, names.ADMISSION_ANNOTATION)
_KUBEVIRT_LABELS: Final = (names.KUBEVIRT_LABEL, names.CREATED_BY_LABEL, names.MIGRATION_LABEL)


def policies(namespace: str) -> tuple[Policy, ...]:
    """Return all of them. `namespace`: where the settings stand, which the sentences name."""
    where = f"ConfigMap {namespace}/{names.SETTINGS_CONFIGMAP}"
    return (
        _claims(where),
        _classes(where),
        _statuses(where),
        _budgets(where),
        _copies(where),
        _launchers(where),
        _gates(where),
        _bindings(),
        _marks("vmis", ((VMI, ""),), (names.GPUS_ANNOTATION, names.POLICY_ANNOTATION)),
        _marks(
            "pods",
            ((POD, ""), (POD, _STATUS)),
            _POD_MARKS,
        ),
    )


def policy_objects(namespace: str) -> tuple[dict[str, Any], ...]:
    """Return each policy and its binding, ready to be applied; the settings stand in `namespace`."""
    return tuple(obj for policy in policies(namespace) for obj in rendered(policy, namespace))


def _claims(where: str) -> Policy:
    return Policy(
        "claims",
        ((GPU_CLAIM, ""),),
        (CREATE, UPDATE),
        (
            Check(
                f"{cel.same(cel.label_of(names.TEMPLATE_LABEL))} || variables.ours",
                f"the label {names.TEMPLATE_LABEL} marks claims that gpubinder makes for a VM: leave it as it is",
            ),
            _finalizer(names.CLAIM_FINALIZER, where),
        ),
    )


def _classes(where: str) -> Policy:
    return Policy("classes", ((GPU_CLASS, ""),), (CREATE, UPDATE), (_finalizer(names.CLASS_FINALIZER, where),))


def _finalizer(finalizer: str, where: str) -> Check:
    """Ours to put on and to take off; the platform may take it off what is being deleted, where we are gone."""
    new = cel.has_finalizer(cel.NEW, finalizer)
    return Check(
        f"{cel.same(cel.finalizer_of(finalizer))} || variables.ours || (!{new} && {cel.IS_GOING} && {cel.IS_PLATFORM})",
        f"the finalizer {finalizer} is put on and taken off by gpubinder alone, once nothing uses the object any more "
        f"({names.SETTING_CONTROLLERS} in {where} names its users)",
    )


def _statuses(where: str) -> Policy:
    return Policy(
        _STATUS,
        tuple((kind, _STATUS) for kind in (GPU_CLAIM, GPU_CLASS, GPU_BUDGET)),
        (UPDATE,),
        (
            Check(
                "variables.ours",
                "the status of GPU claims, classes and budgets shows what gpubinder decided: it is written by its own "
                f"users alone ({names.SETTING_CONTROLLERS} in {where} names them)",
            ),
        ),
    )


def _budgets(where: str) -> Policy:
    passes = f"{cel.IS_PLATFORM} || variables.ours || ({cel.CONTROL_PLANE})"
    return Policy(
        "budgets",
        ((GPU_BUDGET, ""),),
        (CREATE, UPDATE, DELETE),
        (
            Check(
                passes,
                "GPU budgets are set by the platform alone: ask its operator for more (whoever may "
                f"`administer` {GPU_CLAIM.plural}.{GPU_CLAIM.group} in all namespaces can write them, and "
                f"{names.SETTING_CONTROLLERS} in {where})",
            ),
        ),
    )


def _copies(where: str) -> Policy:
    """Copies of licences. What is being deleted may lose finalizers of others, and nothing else."""
    kept = f"{cel.IS_GOING} && {cel.same(cel.label_of(names.CLASS_LABEL))} && {cel.same(cel.data)}"
    return Policy(
        "licences",
        ((SECRET, ""),),
        (CREATE, UPDATE),
        (
            Check(
                f"variables.ours || ({kept})",
                f"a Secret with the label {names.CLASS_LABEL} is a copy of a licence and written by gpubinder alone "
                f"({names.SETTING_CONTROLLERS} in {where} names its users): change the source in the licence "
                "namespace, or leave the label off a Secret of your own",
            ),
        ),
        labelled=names.CLASS_LABEL,
    )


def _launchers(where: str) -> Policy:
    """Known once the settings say where KubeVirt runs: a guess that is wrong would stop every VM there is (I2)."""
    marks = (
        *(cel.label_of(key) for key in _KUBEVIRT_LABELS),
        cel.annotation_of(names.EPHEMERAL_ANNOTATION),
    )
    kept = " && ".join(cel.same(mark) for mark in marks)
    return Policy(
        "launchers",
        ((POD, ""), (POD, _STATUS)),
        (CREATE, UPDATE),
        (
            Check(
                f"variables.kubevirt || (!({cel.IS_CREATE}) && {kept})",
                f"the labels and annotations of a launcher ({names.KUBEVIRT_LABEL}={names.LAUNCHER_VALUE} and what "
                f"goes with it) are KubeVirt's alone: start a virtual machine instead ({names.SETTING_KUBEVIRT} in "
                f"{where} says where KubeVirt runs)",
            ),
        ),
        labelled=names.KUBEVIRT_LABEL,
        value=names.LAUNCHER_VALUE,
        when=(("kubevirt-is-known", cel.KUBEVIRT_IS_KNOWN),),
    )


def _gates(where: str) -> Policy:
    """Who took our gate off would have a launcher scheduled that nothing is booked for. The platform can, by hand."""
    kept = f"!{cel.has_gate(cel.OLD, names.GATE)} || {cel.has_gate(cel.NEW, names.GATE)}"
    return Policy(
        "gates",
        ((POD, ""),),
        (UPDATE,),
        (
            Check(
                f"{kept} || variables.ours || ({cel.IS_GOING}) || {cel.IS_PLATFORM}",
                f"the scheduling gate {names.GATE} is taken off by gpubinder alone, once the GPUs of the pod are "
                f"booked ({names.SETTING_CONTROLLERS} in {where} names its users)",
            ),
        ),
        labelled=names.REFERENCE_LABEL,
    )


def _bindings() -> Policy:
    """A Binding's labels and annotations are copied onto its pod, past everything that guards pods.

    It can be written below its pod, and as a kind of its own, which the API server serves still.
    """
    marks = (
        *(cel.annotation_of(key) for key in (*_POD_MARKS, names.EPHEMERAL_ANNOTATION)),
        *(cel.label_of(key) for key in (names.REFERENCE_LABEL, *_KUBEVIRT_LABELS)),
    )
    return Policy(
        "bindings",
        ((POD, "binding"), (BINDING, "")),
        (CREATE,),
        (
            Check(
                " && ".join(f"{mark(cel.NEW)} == []" for mark in marks),
                "a Binding carries no labels or annotations of KubeVirt or gpubinder: they would be written onto its "
                "pod, where they stay as they were admitted",
            ),
        ),
        settings=False,
    )


def _marks(name: str, on: tuple[tuple[Resource, str], ...], annotations: tuple[str, ...]) -> Policy:
    """What a machine was admitted with stays on it: nobody changes it, ourselves included."""
    checks = [
        Check(
            cel.same(cel.annotation_of(key)),
            f"the annotation {key} stays as it was admitted: change the template of the virtual machine and restart it",
        )
        for key in annotations
    ]
    label = Check(
        cel.same(cel.label_of(names.REFERENCE_LABEL)),
        f"the label {names.REFERENCE_LABEL} stays as it was admitted: change the template of the virtual machine and "
        "restart it",
    )
    return Policy(name, on, (UPDATE,), (label, *checks), labelled=_referring(name), settings=False)


def _referring(name: str) -> str:
    """Pods are written all day: those without a reference, before and after, are none of our business."""
    return names.REFERENCE_LABEL if name == POD.plural else ""
