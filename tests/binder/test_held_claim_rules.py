"""Admission of VMs that name held claims: which claims can be named, how they count, what is written for them."""

import pytest
from msgspec.structs import replace

from binder.rules.admission import answer_pod, answer_vmi
from binder.rules.gpu_sets import devices_of, mark_of
from schemas.decisions import GpuEntry, PodAdmitted, Refused, VmiAdmitted
from schemas.events import VmiRequest
from schemas.objects import ClaimView, KubeVirtView
from schemas.reasons import Refusal
from tests.binder.admission import CARD, GPU_TAINT, L40S, L40S_24C, PARTITION, VGPU, a_class, pod, vmi

OLD = "nvidia.com/L40S_BEFORE"
MINE = ClaimView("mine", "k1", "7", "tenant-a", class_name="l40s", count=2, resource=CARD)
SLICES = ClaimView("slices", "k2", "8", "tenant-a", class_name="l40s-24c", count=1)
NAMED = '[{"claimName":"mine"}]'
SUBJECT = 'VMI tenant-a/vm1 names the held claim "mine" in entry 0'

REFUSALS = {
    "missing": (
        vmi(gpus=NAMED, missing_claims=("mine",)),
        Refusal.CLAIM_NOT_FOUND,
        f"{SUBJECT}, which does not exist: choose one that `kubectl get gpuclaims -n tenant-a` lists",
    ),
    "terminating": (
        vmi(gpus=NAMED, claims=(replace(MINE, deleting=True),)),
        Refusal.CLAIM_DELETED,
        f"{SUBJECT}, which is being deleted: name another claim",
    ),
    "of another VM's template": (
        vmi(gpus=NAMED, claims=(replace(MINE, template=True),)),
        Refusal.TEMPLATE_CLAIM,
        (
            'VMI tenant-a/vm1 names the claim "mine" in entry 0, which was made for another VM and goes with it: '
            'name its class "l40s" with className instead, or a claim of your own'
        ),
    ),
    "its class is gone": (
        vmi(gpus=NAMED, claims=(replace(MINE, class_name="h100"),), missing=("h100",)),
        Refusal.CLASS_NOT_FOUND,
        (
            f'{SUBJECT}, of the GPU class "h100", which does not exist: name a claim of another class, '
            "or ask the platform operator to create the class again"
        ),
    ),
    "its class goes before it was placed": (
        vmi(gpus=NAMED, claims=(replace(MINE, resource=""),), classes=a_class(L40S, deleting=True)),
        Refusal.CLASS_DELETED,
        f'{SUBJECT}, of the GPU class "l40s", which is being deleted: choose another class',
    ),
    "A6 what it is counted by": (
        vmi(
            gpus=NAMED,
            claims=(replace(MINE, resource=OLD),),
            kubevirt=KubeVirtView("kv", "k", "1", "cozy-kubevirt", permitted=(CARD,)),
        ),
        Refusal.NOT_PERMITTED,
        (
            f'{SUBJECT}, of the GPU class "l40s", whose resource {OLD} is not in KubeVirt\'s permittedHostDevices: '
            "the platform operator has to add it to the KubeVirt resource first"
        ),
    ),
    "A7 a host device of what it is counted by": (
        vmi(gpus=NAMED, claims=(replace(MINE, resource=OLD),), host_devices=(OLD,)),
        Refusal.OWN_GPUS,
        (
            f'VMI tenant-a/vm1 lists the host device {OLD}, which is handed out as the GPU class "l40s": remove it '
            "from spec.domain.devices.hostDevices and name the class in cozystack.io/gpus"
        ),
    ),
    "A4 beside a vGPU class": (
        vmi(gpus='[{"className":"l40s-48c"},{"claimName":"slices"}]', claims=(SLICES,)),
        Refusal.VGPU_MIX,
        (
            'VMI tenant-a/vm1 names the vGPU classes "l40s-48c" and "l40s-24c" together: one VM can have one '
            "vGPU class only, keep one of them"
        ),
    ),
    "A4 more together than one VM can have": (
        vmi(gpus='[{"claimName":"slices"},{"className":"l40s-24c","count":2}]', claims=(SLICES,)),
        Refusal.OVER_MAXIMUM,
        (
            'VMI tenant-a/vm1 asks for 3 units of the GPU class "l40s-24c" in entries 0 and 1, held claims counted '
            "in, of which one VM can have 2 at most: name fewer of them"
        ),
    ),
    "A4 more in one claim than one VM can have": (
        vmi(gpus=NAMED, claims=(replace(MINE, count=17),)),
        Refusal.OVER_MAXIMUM,
        (
            'VMI tenant-a/vm1 asks for 17 units of the GPU class "l40s" in entry 0, held claims counted in, of which '
            "one VM can have 16 at most: name fewer of them"
        ),
    ),
}


@pytest.mark.parametrize(("request_", "reason", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_claim_that_cannot_be_used_is_refused_by_name(request_: VmiRequest, reason: Refusal, message: str) -> None:
    """The tenant reads the claim, its class, and what to do (A3, A4, A6, A7)."""
    assert answer_vmi(request_, "Wait") == Refused("r1", "tenant-a", "vm1", reason, message)


PASSES = {
    "alone": (vmi(gpus=NAMED, claims=(MINE,)), (GpuEntry("l40s", 2, CARD, "mine"),)),
    "beside class entries, in their order": (
        vmi(gpus='[{"className":"l40s-24c"},{"claimName":"mine"},{"className":"l40s"}]', claims=(MINE,)),
        (GpuEntry("l40s-24c", 1, VGPU), GpuEntry("l40s", 2, CARD, "mine"), GpuEntry("l40s", 1, CARD)),
    ),
    "not placed yet: the class's resource of now": (
        vmi(gpus='[{"claimName":"slices"}]', claims=(SLICES,)),
        (GpuEntry("l40s-24c", 1, VGPU, "slices"),),
    ),
    "the class was edited since: as it was placed (T24)": (
        vmi(gpus=NAMED, claims=(replace(MINE, resource=OLD),)),
        (GpuEntry("l40s", 2, OLD, "mine"),),
    ),
    "its class goes after it was placed (K2)": (
        vmi(gpus=NAMED, claims=(MINE,), classes=a_class(L40S, deleting=True, conflict=True)),
        (GpuEntry("l40s", 2, CARD, "mine"),),
    ),
    "one vGPU class, named and held": (
        vmi(gpus='[{"className":"l40s-24c"},{"claimName":"slices"}]', claims=(SLICES,)),
        (GpuEntry("l40s-24c", 1, VGPU), GpuEntry("l40s-24c", 1, VGPU, "slices")),
    ),
}


@pytest.mark.parametrize(("request_", "entries"), PASSES.values(), ids=PASSES.keys())
def test_a_held_claim_is_resolved_to_its_units(request_: VmiRequest, entries: tuple[GpuEntry, ...]) -> None:
    """Each entry comes back with what its units are counted by, and which claim gives them (A1)."""
    assert answer_vmi(request_, "Wait") == VmiAdmitted("r1", "tenant-a", "vm1", entries, "Wait")


@pytest.mark.parametrize(("policy", "mark"), [("Wait", "Wait"), ("Schedule", "Wait"), ("Refuse", "Refuse")])
def test_who_names_a_held_claim_is_placed_by_the_binder(policy: str, mark: str) -> None:
    """kube-scheduler does not know where held units are: under Schedule too their VM waits at the gate (A12)."""
    answer = answer_vmi(vmi(gpus=NAMED, claims=(MINE,)), policy)

    assert isinstance(answer, VmiAdmitted)
    assert answer.policy == mark


def test_devices_follow_the_order_of_the_entries() -> None:
    """A device per unit, held ones where their entry stands, so that asked again they are ours (A1, A10)."""
    entries = (GpuEntry("l40s-24c", 1, VGPU), GpuEntry("l40s", 2, CARD, "mine"), GpuEntry("l40s", 1, CARD))

    assert [mark_of(d.name, d.device_name) for d in devices_of(entries)] == [
        f"gpubinder-0-0={VGPU}",
        f"gpubinder-1-0={CARD}",
        f"gpubinder-1-1={CARD}",
        f"gpubinder-2-0={CARD}",
    ]


def test_a_launcher_tolerates_what_its_held_claims_classes_do() -> None:
    """P3: tolerations of classes named and held, each once, in the order of the entries."""
    gpus = '[{"claimName":"mine"},{"className":"l40s-24c"}]'
    answer = answer_pod(pod(gpus=gpus, classes=(L40S, L40S_24C), claims=(MINE,)))

    assert isinstance(answer, PodAdmitted)
    assert answer.tolerations == (GPU_TAINT, replace(PARTITION, operator="Equal"))


@pytest.mark.parametrize("fields", [{"deleting": True}, {"resource": ""}])
def test_a_claim_that_goes_still_serves_who_was_admitted(fields: dict[str, object]) -> None:
    """A deletion after the VMI passed does not strand its launcher: the binder says at the gate what becomes of it."""
    assert isinstance(answer_pod(pod(gpus=NAMED, claims=(replace(MINE, **fields),))), PodAdmitted)


def test_a_launcher_without_its_claim_is_refused() -> None:
    """A claim that is not there has no class, and nobody knows what it tolerates; KubeVirt asks again."""
    answer = answer_pod(pod(gpus=NAMED, missing_claims=("mine",)))

    assert answer == Refused(
        "r2",
        "tenant-a",
        "vm1",
        Refusal.CLAIM_NOT_FOUND,
        'launcher pod of VMI tenant-a/vm1 names the held claim "mine" in entry 0, which does not exist: '
        "choose one that `kubectl get gpuclaims -n tenant-a` lists",
    )
