"""A VMI create at the desk: what is asked of the binder, what is written onto the VMI, what is refused."""

from typing import Any

import msgspec
import pytest

from binder.kube import PatchKind
from schemas.decisions import VmiAdmitted
from schemas.entries import COUNT_MAX, ENTRIES_MAX
from schemas.kinds import KUBEVIRT, NAMESPACE
from schemas.names import VGPU_LABEL
from tests.webhooks.given import CARD, SLICE, Desk, Obj, gpus, vmi

pytestmark = pytest.mark.looptime

OURS = [{"name": "gpubinder-0-0", "deviceName": SLICE}, {"name": "gpubinder-0-1", "deviceName": SLICE}]


def devices(obj: Obj) -> Any:  # noqa: ANN401 - any JSON
    """Return the VMI's gpus."""
    return obj["spec"]["domain"]["devices"].get("gpus")


async def test_an_admitted_vmi_gets_one_entry_per_unit_and_the_policy(desk: Desk) -> None:
    """Each unit becomes a gpus entry with our prefix and the class's resource; nothing else changes (A1, A2)."""
    obj = vmi(gpus({"className": "l40s-24c", "count": 2}, {"className": "l40s"}))
    expected = vmi(gpus({"className": "l40s-24c", "count": 2}, {"className": "l40s"}))
    expected["spec"]["domain"]["devices"]["gpus"] = [*OURS, {"name": "gpubinder-1-0", "deviceName": CARD}]
    expected["metadata"]["annotations"]["cozystack.io/gpu-start-policy"] = "Wait"

    answer = await desk.vmi(obj)

    assert answer.allowed
    assert answer.obj == expected


@pytest.mark.parametrize("domain", [{"devices": None}, {}, {"devices": {"gpus": []}}, {"devices": {"gpus": None}}])
async def test_lists_may_be_absent_or_null(desk: Desk, domain: Obj) -> None:
    """The patch fits a VMI without devices or with an empty list."""
    obj = vmi()
    obj["spec"]["domain"] = domain

    answer = await desk.vmi(obj)

    assert devices(answer.obj) == OURS


async def test_the_second_call_changes_nothing(desk: Desk) -> None:
    """Asked again for its own output, with another uid, the webhook allows it with an empty patch (A10, C26)."""
    first = await desk.vmi(vmi())
    first.obj["spec"]["domain"]["cpu"] = {"cores": 1}

    second = await desk.vmi(first.obj)

    assert second.allowed
    assert second.patch == ()


@pytest.mark.parametrize(
    "entries",
    [
        OURS[:1],
        [OURS[1], OURS[0]],
        [*OURS, {"name": "gpubinder-0-2", "deviceName": SLICE}],
        [OURS[0], {"name": "gpubinder-0-1", "deviceName": CARD}],
        [OURS[0], {**OURS[1], "virtualGPUOptions": {"display": {"enabled": True}}}],
        [{"name": f"gpubinder-0-{n}", "deviceName": SLICE} for n in range(ENTRIES_MAX * COUNT_MAX + 5)],
        [{"name": "gpubinder-0-0", "deviceName": 7}, OURS[1]],
    ],
    ids=["fewer", "swapped", "more", "other class", "more fields", "far more", "no text"],
)
async def test_the_prefix_alone_proves_nothing(desk: Desk, entries: list[Obj]) -> None:
    """Entries with our prefix that are not exactly ours are refused, whoever wrote them (C26)."""
    answer = await desk.vmi(vmi(devices={"gpus": entries}))

    assert (answer.allowed, answer.code, answer.reason) == (False, 403, "ReservedMark")


async def test_null_fields_of_our_entries_are_no_fields(desk: Desk) -> None:
    """A mutator that writes the object back with nulls has not changed our entries (C26)."""
    answer = await desk.vmi(vmi(devices={"gpus": [{**gpu, "virtualGPUOptions": None} for gpu in OURS]}))

    assert answer.allowed


OWN = {
    "own device": (
        {"gpus": [{"name": "g", "deviceName": "nvidia.com/other"}]},
        {},
        "OwnGPUEntries",
        "nvidia.com/other",
    ),
    "own DRA device": ({"gpus": [{"name": "g", "claimName": "c"}]}, {}, "OwnGPUEntries", "(g)"),
    "own nameless device": ({"gpus": [{}]}, {}, "OwnGPUEntries", "one without a name"),
    "host device (C48)": ({"hostDevices": [{"name": "h", "deviceName": CARD}]}, {}, "OwnGPUEntries", '"l40s"'),
    "limit (A2, C48)": ({}, {"limits": {SLICE: "1"}}, "ResourceKey", SLICE),
    "request (A2, C48)": ({}, {"requests": {CARD: 1, "memory": "1Gi"}}, "ResourceKey", '"l40s"'),
}


@pytest.mark.parametrize(("given", "resources", "reason", "word"), OWN.values(), ids=OWN.keys())
async def test_gpus_of_its_own_are_refused(desk: Desk, given: Obj, resources: Obj, reason: str, word: str) -> None:
    """A device or a resource of any class beside the annotation is refused, the class named (A2, A7, C48)."""
    answer = await desk.vmi(vmi(devices=given, resources=resources))

    assert (answer.allowed, answer.reason) == (False, reason)
    assert word in answer.message


async def test_other_devices_and_resources_are_none_of_our_business(desk: Desk) -> None:
    """A network card passed through and CPU limits stand beside GPUs."""
    hosts = {"hostDevices": [{"name": "nic", "deviceName": "vendor.example/nic"}]}

    assert (await desk.vmi(vmi(devices=hosts, resources={"limits": {"cpu": "4"}}))).allowed


HALVES = {
    "label alone": (None, "true", "the label cozystack.io/gpu-reference=true but not the annotation cozystack.io/gpus"),
    "annotation alone": ("[]", None, "annotation cozystack.io/gpus but not the label cozystack.io/gpu-reference=true"),
    "label with another value": ("[]", "yes", "but not the label cozystack.io/gpu-reference=true"),
}


@pytest.mark.parametrize(("annotation", "label", "words"), HALVES.values(), ids=HALVES.keys())
async def test_half_a_reference_is_refused(desk: Desk, annotation: str | None, label: str | None, words: str) -> None:
    """Label without annotation or the reverse: refused, both named, nothing asked of the binder."""
    obj = vmi()
    obj["metadata"]["annotations"] = {"cozystack.io/gpus": annotation} if annotation is not None else None
    obj["metadata"]["labels"] = {"cozystack.io/gpu-reference": label} if label else {}

    answer = await desk.vmi(obj)

    assert (answer.allowed, answer.code) == (False, 403)
    assert words in answer.message
    assert desk.events() == []


@pytest.mark.parametrize("changes", [{}, {"operation": "UPDATE"}, {"operation": "DELETE"}, {"subResource": "status"}])
async def test_what_reaches_us_by_accident_passes_untouched(desk: Desk, changes: Obj) -> None:
    """A VMI without reference, or anything but a create, is allowed without a patch and without a question."""
    obj = vmi()
    if not changes:
        obj["metadata"] = {"name": "vm1"}

    answer = await desk.vmi(obj, **changes)

    assert (answer.allowed, answer.patch) == (True, ())
    assert desk.events() == []


async def test_the_policy_annotation_is_always_ours(desk: Desk) -> None:
    """What a tenant wrote there is overwritten, and said so."""
    obj = vmi()
    obj["metadata"]["annotations"]["cozystack.io/gpu-start-policy"] = "Schedule"

    answer = await desk.vmi(obj)

    assert answer.obj["metadata"]["annotations"]["cozystack.io/gpu-start-policy"] == "Wait"
    assert "Wait replaces" in answer.warnings[0]


@pytest.mark.parametrize(
    ("field", "key"),
    [("labels", "kubevirt.io/migrationJobUID"), ("annotations", "kubevirt.io/ephemeral-provisioning")],
)
async def test_marks_that_would_pass_the_launcher_off_are_refused(desk: Desk, field: str, key: str) -> None:
    """A template can't make its launchers look like migration targets, which pass ungated, or temporary pods."""
    obj = vmi()
    obj["metadata"][field][key] = "x"

    answer = await desk.vmi(obj)

    assert (answer.allowed, answer.reason) == (False, "ReservedMark")
    assert key in answer.message


async def test_only_what_is_needed_goes_onto_the_stream(desk: Desk) -> None:
    """Cloud-init data, other labels and other annotations stay behind (T16)."""
    obj = vmi()
    obj["metadata"]["annotations"]["note"] = "hunter3"

    await desk.vmi(obj)

    (body,) = desk.events()
    assert b"hunter" not in body
    assert b"tenant-a" in body


async def test_a_refusal_names_a_field_and_never_its_value(desk: Desk) -> None:
    """A VMI that can't be read is refused with the path of the field (T16)."""
    obj = vmi()
    obj["metadata"]["annotations"]["cozystack.io/gpus"] = {"secret": "hunter2"}

    answer = await desk.vmi(obj)

    assert (answer.allowed, answer.code) == (False, 400)
    assert "annotations" in answer.message
    assert "hunter2" not in answer.message


async def test_long_names_stay_whole(desk: Desk) -> None:
    """A VM name of 253 characters with dots goes through, and is no part of a subject or an entry name (C60)."""
    obj = vmi()
    obj["metadata"]["name"] = "v" * 200 + "." + "x" * 52

    answer = await desk.vmi(obj)

    assert devices(answer.obj) == OURS
    assert desk.clerk.asked[0].name == obj["metadata"]["name"]  # type: ignore[union-attr]  # a VMI request has a name
    assert {m.subject for m in desk.journal.streams["GPUBINDER_EVENTS"].messages} == {"gpubinder.events.request.vmi"}


async def test_a_vmi_without_a_name_yet_is_answered(desk: Desk) -> None:
    """A replica set's VMI has generateName alone at admission (T17)."""
    obj = vmi()
    obj["metadata"] = {**obj["metadata"], "generateName": "set-"}
    del obj["metadata"]["name"]

    assert (await desk.vmi(obj)).allowed


async def test_capacity_is_not_asked_for(desk: Desk) -> None:
    """Without any node in the cluster a VMI is accepted: it waits behind the gate, not in back-off (A11, C57)."""
    answers = [await desk.vmi(vmi()) for _ in range(20)]

    assert all(answer.allowed for answer in answers)
    assert len({answer.uid for answer in answers}) == 20


async def test_a_refusal_reaches_the_tenant_whole(desk: Desk) -> None:
    """The rule's sentence is the status message, its reason the status reason, and the uid comes back (A3)."""
    answer = await desk.vmi(vmi(gpus({"className": "h100"})), uid="abc-1")

    assert (answer.uid, answer.allowed, answer.code, answer.reason) == ("abc-1", False, 403, "ClassNotFound")
    assert answer.message.startswith('VMI tenant-a/vm1 names the GPU class "h100" in entry 0, which does not exist')


async def test_the_requests_namespace_counts(desk: Desk) -> None:
    """What the body says of its namespace is not believed (C47)."""
    await desk.vmi(vmi(), namespace="tenant-b")

    assert desk.clerk.asked[0].namespace == "tenant-b"


async def test_too_many_resources_are_refused_not_cut(desk: Desk) -> None:
    """Host devices beyond the bound are refused: cutting them off could hide a class's resource."""
    hosts = [{"name": f"h{n}", "deviceName": f"vendor.example/d{n}"} for n in range(300)]

    answer = await desk.vmi(vmi(devices={"hostDevices": hosts}))

    assert (answer.allowed, answer.reason) == (False, "TooManyResources")


async def test_an_answer_of_another_kind_is_no_answer(desk: Desk) -> None:
    """A decision for the same uid that is not about a VMI admits nothing."""
    desk.clerk.instead = VmiAdmitted("abc-2", "tenant-a", "vm1", (), "Wait")
    pod_like = {
        "metadata": vmi()["metadata"]
        | {"labels": {"cozystack.io/gpu-reference": "true", "kubevirt.io": "virt-launcher"}}
    }

    answer = await desk.pod(msgspec.json.decode(msgspec.json.encode({**pod_like, "spec": {}})), uid="abc-2")

    assert (answer.allowed, answer.code) == (False, 503)
    assert "another kind" in answer.message


async def test_a5_a_vgpu_needs_the_namespaces_entitlement(desk: Desk) -> None:
    """A5: without the label "true" a vGPU class is refused, a whole card is not; the namespace is read fresh (A8)."""
    path = {"metadata": {"labels": {VGPU_LABEL: "yes"}}}
    await desk.api.patch(NAMESPACE, "", "tenant-a", msgspec.json.encode(path), kind=PatchKind.MERGE)
    refused, card = await desk.vmi(vmi()), await desk.vmi(vmi(gpus({"className": "l40s"})))
    path["metadata"]["labels"][VGPU_LABEL] = "true"
    await desk.api.patch(NAMESPACE, "", "tenant-a", msgspec.json.encode(path), kind=PatchKind.MERGE)

    assert (refused.allowed, refused.reason) == (False, "NoVGPUEntitlement")
    assert refused.message.startswith(
        'VMI tenant-a/vm1 names the GPU class "l40s-24c" in entry 0, a class of vGPUs, which namespace tenant-a may '
        'not have: its label cozystack.io/vgpu is not "true"'
    )
    assert card.allowed
    assert (await desk.vmi(vmi())).allowed


async def test_the_checks_speak_in_the_order_of_the_clauses(desk: Desk) -> None:
    """A3 before A4 before A5 before A6: of several faults the first clause's is told."""
    labels = {"metadata": {"labels": {VGPU_LABEL: "no"}}}
    await desk.api.patch(NAMESPACE, "", "tenant-a", msgspec.json.encode(labels), kind=PatchKind.MERGE)
    table: Obj = {"spec": {"configuration": {"permittedHostDevices": {"mediatedDevices": []}}}}
    await desk.api.patch(KUBEVIRT, "cozy-kubevirt", "kubevirt", msgspec.json.encode(table), kind=PatchKind.MERGE)
    many, slice_, ghost = {"className": "l40s-24c", "count": 3}, {"className": "l40s-24c"}, {"className": "ghost"}

    said = [(await desk.vmi(vmi(gpus(*entries)))).reason for entries in ((ghost, many), (many,), (slice_,))]
    card = await desk.vmi(vmi(gpus({"className": "l40s"})))

    assert said == ["ClassNotFound", "OverMaximumCount", "NoVGPUEntitlement"]
    assert card.reason == "NotPermittedByKubeVirt"
