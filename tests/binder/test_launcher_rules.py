"""Admission answers to launchers: who is refused, who waits at the gate, what is tolerated; and any request at all."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.rules.admission import answer_pod, answer_vmi
from binder.rules.gpu_sets import devices_of, mark_of
from schemas.answers import decode_answer, encode_answer
from schemas.decisions import PodAdmitted, Refused, VmiAdmitted, VmiId
from schemas.entries import ENTRIES_MAX
from schemas.events import PodRequest, VmiRequest
from schemas.objects import ClaimView, ClassView
from schemas.reasons import Refusal
from tests.binder.admission import CARD, CLASSES, GPU_TAINT, KUBEVIRT, L40S, PARTITION, POD, VGPU, a_class, pod

POD_REFUSALS = {
    "not KubeVirt": (
        pod(user="system:serviceaccount:tenant-a:kubevirt-controller"),
        Refusal.NOT_KUBEVIRT,
        (
            f"launcher pod of VMI tenant-a/vm1 was not created by KubeVirt ({KUBEVIRT}) and carries its labels: "
            "remove the "
            "label cozystack.io/gpu-reference from the pod, or start a virtual machine instead"
        ),
    ),
    "no KubeVirt at all": (
        pod(kubevirt_namespace="", user="system:serviceaccount::kubevirt-controller"),
        Refusal.NOT_KUBEVIRT,
        "launcher pod of VMI tenant-a/vm1 can't be told from others: no KubeVirt resource says where KubeVirt runs",
    ),
    "no owner": (
        pod(vmi=VmiId("tenant-a", "", "")),
        Refusal.UNKNOWN_VMI,
        "launcher pod in tenant-a has no controlling VirtualMachineInstance among its owner references",
    ),
    "malformed": (
        pod(gpus="{}"),
        Refusal.MALFORMED,
        (
            "launcher pod of VMI tenant-a/vm1 has a malformed annotation cozystack.io/gpus: the list must be a "
            "JSON list "
            "with at least one entry"
        ),
    ),
    "class gone": (
        pod(classes=(L40S,), missing=("l40s-24c",)),
        Refusal.CLASS_NOT_FOUND,
        (
            'launcher pod of VMI tenant-a/vm1 names the GPU class "l40s-24c" in entry 1, which does not exist: '
            "choose one "
            "that `kubectl get gpuclasses` lists"
        ),
    ),
}


@pytest.mark.parametrize(("request_", "reason", "message"), POD_REFUSALS.values(), ids=POD_REFUSALS.keys())
def test_a_launcher_is_refused_in_a_sentence(request_: PodRequest, reason: Refusal, message: str) -> None:
    """Only KubeVirt's own launchers of a VMI pass (T17, T25)."""
    assert answer_pod(request_) == Refused("r2", "tenant-a", request_.vmi.name, reason, message)


@pytest.mark.parametrize(
    ("request_", "gate"),
    [
        (POD, True),
        (pod(policy=""), True),
        (pod(policy="whatever"), True),
        (pod(policy="Refuse"), True),
        (pod(policy="Schedule"), False),
        (pod(temporary=True), True),
        (pod(migration=True), False),
        (pod(migration=True, policy="Schedule"), False),
    ],
)
def test_a_launcher_waits_at_the_gate_unless_told_otherwise(request_: PodRequest, gate: bool) -> None:
    """Gated: launchers and temporary pods; not gated: migration targets, and all under Schedule (P2, T25)."""
    answer = answer_pod(request_)

    assert isinstance(answer, PodAdmitted)
    assert answer.gate is gate


def test_tolerations_are_the_classes_union() -> None:
    """Each toleration once, in the order of the entries, the default operator spelled out (P3, C19)."""
    again = msgspec.structs.replace(PARTITION, operator="Equal")
    answer = answer_pod(pod(classes=a_class(L40S, tolerations=(again,))))

    assert isinstance(answer, PodAdmitted)
    assert answer.tolerations == (again, GPU_TAINT)


@pytest.mark.parametrize("fields", [{"deleting": True}, {"conflict": True}])
def test_a_class_that_ends_still_serves_who_was_admitted(fields: dict[str, object]) -> None:
    """A deletion or a conflict after the VMI passed does not strand its launcher (K2)."""
    assert isinstance(answer_pod(pod(classes=a_class(L40S, **fields))), PodAdmitted)


texts = st.text(max_size=30)
entries = st.lists(
    st.fixed_dictionaries(
        {"className": st.sampled_from(["l40s", "l40s-24c", "l40s-48c", "h100"])},
        optional={"count": st.integers(-1, 20), "x": texts},
    )
    | st.fixed_dictionaries({"claimName": st.sampled_from(["mine", "other", "none"])}),
    max_size=ENTRIES_MAX + 1,
)
claims = st.lists(
    st.builds(
        ClaimView,
        name=st.sampled_from(["mine", "other"]),
        uid=st.just("u"),
        rv=st.just("1"),
        namespace=st.just("tenant-a"),
        deleting=st.booleans(),
        class_name=st.sampled_from(["l40s", "l40s-24c", "h100"]),
        count=st.integers(1, 4),
        template=st.booleans(),
        resource=st.sampled_from(["", CARD, "nvidia.com/before"]),
    ),
    max_size=2,
    unique_by=lambda view: view.name,
).map(tuple)
annotations = texts | entries.map(lambda found: msgspec.json.encode(found).decode())
devices = st.lists(st.sampled_from([CARD, VGPU, f"gpubinder-0-0={CARD}", ""]) | texts, max_size=4).map(tuple)
classes = st.lists(
    st.sampled_from(CLASSES).flatmap(
        lambda view: st.builds(
            lambda conflict, deleting, most: msgspec.structs.replace(
                view, conflict=conflict, deleting=deleting, max_count=most
            ),
            st.booleans(),
            st.booleans(),
            st.none() | st.integers(1, 4),
        )
    ),
    max_size=3,
    unique_by=lambda view: view.name,
).map(tuple)
vmis = st.builds(
    VmiRequest,
    request=st.just("r1"),
    namespace=st.just("tenant-a"),
    name=texts,
    user=texts,
    gpus=annotations,
    own_gpus=devices,
    bound_gpus=devices,
    host_devices=devices,
    resource_keys=devices,
    classes=classes,
    claims=claims,
)


@given(vmis, st.sampled_from(["Wait", "Schedule", "Refuse", ""]))
def test_every_vmi_gets_one_answer_and_twice_the_same(request_: VmiRequest, policy: str) -> None:
    """Any request is answered, the same again, and the answer travels whole (T10, T17, C26)."""
    answer = answer_vmi(request_, policy)

    assert answer_vmi(request_, policy) == answer
    assert decode_answer(encode_answer(answer)) == answer


@given(vmis)
def test_an_admitted_vmi_passes_again_with_what_we_wrote(request_: VmiRequest) -> None:
    """Our own entries, read back, are admitted with the same resolution (A10, C26)."""
    answer = answer_vmi(request_, "Wait")
    if isinstance(answer, VmiAdmitted):
        written = tuple(mark_of(d.name, d.device_name) for d in devices_of(answer.entries))

        assert answer_vmi(msgspec.structs.replace(request_, bound_gpus=written), "Wait") == answer


@given(annotations, classes, claims, texts, st.booleans())
def test_every_launcher_gets_an_answer(
    gpus: str, seen: tuple[ClassView, ...], held: tuple[ClaimView, ...], user: str, ours: bool
) -> None:
    """Any launcher request is answered, and only KubeVirt's own passes (T17)."""
    answer = answer_pod(pod(gpus=gpus, classes=seen, claims=held, user=KUBEVIRT if ours else user))

    assert ours or isinstance(answer, Refused)
    assert decode_answer(encode_answer(answer)) == answer
