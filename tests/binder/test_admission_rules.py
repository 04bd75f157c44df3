"""Admission answers to VMIs: each refusal's reason and sentence, and what passes."""

import pytest

from binder.rules.admission import answer_vmi
from binder.rules.gpu_sets import devices_of, mark_of
from schemas.decisions import GpuEntry, Refused, VmiAdmitted
from schemas.entries import COUNT_MAX
from schemas.events import VmiRequest
from schemas.objects import KubeVirtView
from schemas.reasons import Refusal
from tests.binder.admission import CARD, L40S, L40S_24C, VGPU, VMI, a_class, vmi

MALFORMED = "VMI tenant-a/vm1 has a malformed annotation cozystack.io/gpus: "

VMI_REFUSALS = {
    "no JSON": (
        vmi(gpus="l40s"),
        Refusal.MALFORMED,
        MALFORMED + 'the list is not JSON; write [{"className": "...", "count": 1}]',
    ),
    "no entry": (
        vmi(gpus="[]"),
        Refusal.MALFORMED,
        MALFORMED + "the list must be a JSON list with at least one entry",
    ),
    "which entry, which field": (
        vmi(gpus='[{"className":"l40s"},{"className":"l40s-24c","count":0}]'),
        Refusal.MALFORMED,
        MALFORMED + f"entry 1 (counted from 0), field count must be a whole number from 1 to {COUNT_MAX}",
    ),
    "an entry that is no object": (
        vmi(gpus='["l40s"]'),
        Refusal.MALFORMED,
        MALFORMED + "entry 0 (counted from 0) must be an object with className or claimName",
    ),
    "A3 missing": (
        vmi(gpus='[{"className":"l40s"},{"className":"h100"}]', missing=("h100",)),
        Refusal.CLASS_NOT_FOUND,
        (
            'VMI tenant-a/vm1 names the GPU class "h100" in entry 1, which does not exist: '
            "choose one that `kubectl get gpuclasses` lists"
        ),
    ),
    "A3 being deleted": (
        vmi(classes=a_class(L40S, deleting=True)),
        Refusal.CLASS_DELETED,
        'VMI tenant-a/vm1 names the GPU class "l40s" in entry 0, which is being deleted: choose another class',
    ),
    "A3 conflict": (
        vmi(classes=a_class(L40S, conflict=True)),
        Refusal.CLASS_CONFLICT,
        (
            f'VMI tenant-a/vm1 names the GPU class "l40s" in entry 0, whose resource name {CARD} belongs to an '
            "older class "
            "(ResourceNameConflict): choose that class, or ask the platform operator to give "
            '"l40s" a resource name of its own'
        ),
    ),
    "A3 conflict not yet marked (K1)": (
        vmi(gpus='[{"className":"l40s"},{"className":"l40s-24c"}]', classes=a_class(L40S_24C, resource=CARD)),
        Refusal.CLASS_CONFLICT,
        (
            f'VMI tenant-a/vm1 names the GPU class "l40s-24c" in entry 1, whose resource name {CARD} belongs to '
            "an older "
            'class ("l40s") (ResourceNameConflict): choose that class, or ask the platform operator to give '
            '"l40s-24c" a resource name of its own'
        ),
    ),
    "marks of KubeVirt's own": (
        vmi(marks=("label kubevirt.io/migrationJobUID",)),
        Refusal.RESERVED_MARK,
        (
            "VMI tenant-a/vm1 carries label kubevirt.io/migrationJobUID, which KubeVirt alone may put on launchers: "
            "remove it from the template's metadata"
        ),
    ),
    "A7 own entries": (
        vmi(own_gpus=(CARD, VGPU, "a", "b")),
        Refusal.OWN_GPUS,
        (
            f"VMI tenant-a/vm1 lists GPU devices of its own ({CARD}, {VGPU}, a and 1 more) beside the annotation "
            "cozystack.io/gpus: remove them from spec.domain.devices.gpus or from its instancetype; "
            "the annotation's entries become devices"
        ),
    ),
    "A7 host device (C48)": (
        vmi(host_devices=("vendor.example/nic", VGPU)),
        Refusal.OWN_GPUS,
        (
            f'VMI tenant-a/vm1 lists the host device {VGPU}, which is handed out as the GPU class "l40s-24c": '
            "remove it "
            "from spec.domain.devices.hostDevices and name the class in cozystack.io/gpus"
        ),
    ),
    "A2 resource key (C48)": (
        vmi(resource_keys=("cpu", "memory", CARD)),
        Refusal.RESOURCE_KEY,
        (
            f"VMI tenant-a/vm1 requests {CARD} under spec.domain.resources, which is handed out as the GPU class "
            '"l40s": '
            "remove the key; the entries of cozystack.io/gpus are what the launcher requests"
        ),
    ),
    "C26 prefix of ours, other device": (
        vmi(bound_gpus=(f"gpubinder-0-0={CARD}", f"gpubinder-0-1={VGPU}")),
        Refusal.RESERVED_MARK,
        (
            "VMI tenant-a/vm1 lists GPU devices named gpubinder-..., a reserved prefix, that differ from what the "
            "annotation cozystack.io/gpus gives: remove them from spec.domain.devices.gpus"
        ),
    ),
    "A4 two vGPU classes": (
        vmi(gpus='[{"className":"l40s-24c"},{"className":"l40s-48c"}]'),
        Refusal.VGPU_MIX,
        (
            'VMI tenant-a/vm1 names the vGPU classes "l40s-24c" and "l40s-48c" together: one VM can have one '
            "vGPU class "
            "only, keep one of them"
        ),
    ),
    "A4 above the class's maximum": (
        vmi(gpus='[{"className":"l40s-24c","count":3}]'),
        Refusal.OVER_MAXIMUM,
        (
            'VMI tenant-a/vm1 asks for 3 units of the GPU class "l40s-24c" in entry 0, of which one VM can have '
            "2 at most: "
            "lower count to 2"
        ),
    ),
    "A4 unset maximum of a vGPU class": (
        vmi(gpus='[{"className":"l40s-48c","count":2}]'),
        Refusal.OVER_MAXIMUM,
        (
            'VMI tenant-a/vm1 asks for 2 units of the GPU class "l40s-48c" in entry 0, of which one VM can have '
            "1 at most: "
            "lower count to 1"
        ),
    ),
    "A4 unset maximum of a passthrough class": (
        vmi(gpus='[{"className":"l40s","count":17}]'),
        Refusal.OVER_MAXIMUM,
        (
            'VMI tenant-a/vm1 asks for 17 units of the GPU class "l40s" in entry 0, of which one VM can have 16 '
            "at most: "
            "lower count to 16"
        ),
    ),
    "A6 not permitted": (
        vmi(kubevirt=KubeVirtView("kv", "k", "1", "cozy-kubevirt", permitted=(VGPU,))),
        Refusal.NOT_PERMITTED,
        (
            f'VMI tenant-a/vm1 names the GPU class "l40s" in entry 0, whose resource {CARD} is not in KubeVirt\'s '
            "permittedHostDevices: the platform operator has to add it to the KubeVirt resource first"
        ),
    ),
    "no name yet": (
        vmi(name="", gpus="?"),
        Refusal.MALFORMED,
        (
            "a new VMI in tenant-a has a malformed annotation cozystack.io/gpus: the list is not JSON; "
            'write [{"className": "...", "count": 1}]'
        ),
    ),
}


@pytest.mark.parametrize(("request_", "reason", "message"), VMI_REFUSALS.values(), ids=VMI_REFUSALS.keys())
def test_a_vmi_is_refused_in_a_sentence(request_: VmiRequest, reason: Refusal, message: str) -> None:
    """The tenant reads the class, the entry, the numbers and the remedy (A2-A4, A6, A7)."""
    expected = Refused("r1", "tenant-a", request_.name, reason, message)

    assert answer_vmi(request_, "Wait") == expected


VMI_PASSES = {
    "both at their maximum": (
        vmi(gpus='[{"className":"l40s","count":16},{"className":"l40s-24c","count":2}]'),
        (GpuEntry("l40s", 16, CARD), GpuEntry("l40s-24c", 2, VGPU)),
    ),
    "count left out": (vmi(gpus='[{"className":"l40s"}]'), (GpuEntry("l40s", 1, CARD),)),
    "no table, no check (A6)": (
        vmi(kubevirt=KubeVirtView("kv", "k", "1", "cozy-kubevirt")),
        (GpuEntry("l40s", 2, CARD),),
    ),
    "permitted (A6)": (
        vmi(kubevirt=KubeVirtView("kv", "k", "1", "cozy-kubevirt", permitted=(VGPU, CARD))),
        (GpuEntry("l40s", 2, CARD),),
    ),
    "asked again (A10, C26)": (
        vmi(bound_gpus=(f"gpubinder-0-0={CARD}", f"gpubinder-0-1={CARD}")),
        (GpuEntry("l40s", 2, CARD),),
    ),
    "host devices that no class has": (
        vmi(host_devices=("vendor.example/nic",), resource_keys=("cpu", "memory")),
        (GpuEntry("l40s", 2, CARD),),
    ),
}


@pytest.mark.parametrize(("request_", "entries"), VMI_PASSES.values(), ids=VMI_PASSES.keys())
def test_a_vmi_passes_with_its_entries_resolved(request_: VmiRequest, entries: tuple[GpuEntry, ...]) -> None:
    """Each entry comes back with its class's resource name (A1); nothing asks for capacity (A11, C57)."""
    assert answer_vmi(request_, "Wait") == VmiAdmitted("r1", "tenant-a", "vm1", entries, "Wait")


@pytest.mark.parametrize("bound", [(f"gpubinder-0-0={CARD}",), (f"gpubinder-0-0={CARD}+tag", f"gpubinder-0-1={CARD}")])
def test_the_prefix_alone_proves_nothing(bound: tuple[str, ...]) -> None:
    """Fewer entries than ours, or ours with a further field, are not ours (C26)."""
    answer = answer_vmi(vmi(bound_gpus=bound), "Wait")

    assert isinstance(answer, Refused)
    assert answer.reason is Refusal.RESERVED_MARK


@pytest.mark.parametrize(
    ("policy", "mark"),
    [("Wait", "Wait"), ("Schedule", "Schedule"), ("Refuse", "Refuse"), ("", "Wait"), ("wait", "Wait")],
)
def test_the_policy_mark_is_one_we_keep(policy: str, mark: str) -> None:
    """A VMI is marked with the policy in force, and follows it for its life; one that nobody knows is Wait (T17)."""
    answer = answer_vmi(VMI, policy)

    assert isinstance(answer, VmiAdmitted)
    assert answer.policy == mark


def test_devices_are_one_per_unit_and_named_apart() -> None:
    """A device per unit, named by entry and unit, whatever the classes are called (A1, C60)."""
    devices = devices_of((GpuEntry("c" * 253, 2, CARD), GpuEntry("d", 1, VGPU)))

    assert [mark_of(d.name, d.device_name) for d in devices] == [
        f"gpubinder-0-0={CARD}",
        f"gpubinder-0-1={CARD}",
        f"gpubinder-1-0={VGPU}",
    ]
