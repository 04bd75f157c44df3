"""A launcher create at the desk: the stamp, the gate, the tolerations, and whose pod it is."""

from typing import Any

import pytest

from schemas.decisions import VmiId
from schemas.events import PodRequest
from schemas.kinds import GPU_CLASS
from tests.webhooks.given import CARD, GPU_TAINT, PARTITION, Desk, Obj, gpus, launcher

pytestmark = pytest.mark.looptime

GATE = {"name": "cozystack.io/gpu"}
STAMP = "cozystack.io/gpu-admission"
PARTITION_IN_FULL = {**PARTITION, "operator": "Equal"}


def pod(**spec: Any) -> Obj:  # noqa: ANN401 - any JSON
    """Return a launcher with more in its spec."""
    obj = launcher()
    obj["spec"].update(spec)
    return obj


async def test_a_launcher_is_stamped_gated_and_tolerant(desk: Desk) -> None:
    """The request's uid is stamped on the pod, our gate holds it, the classes' tolerations are added (P2, P3, T25)."""
    expected = pod(schedulingGates=[GATE], tolerations=[GPU_TAINT, PARTITION_IN_FULL])
    expected["metadata"]["annotations"][STAMP] = "r-1"

    answer = await desk.pod(launcher(), uid="r-1")

    assert (answer.uid, answer.allowed) == ("r-1", True)
    assert answer.obj == expected


@pytest.mark.parametrize(
    ("given", "gates", "tolerations"),
    [
        ({"schedulingGates": None, "tolerations": None}, [GATE], [GPU_TAINT, PARTITION_IN_FULL]),
        ({"schedulingGates": [], "tolerations": []}, [GATE], [GPU_TAINT, PARTITION_IN_FULL]),
        (
            {"schedulingGates": [{"name": "other"}], "tolerations": [{"key": "x", "operator": "Exists"}]},
            [{"name": "other"}, GATE],
            [{"key": "x", "operator": "Exists"}, GPU_TAINT, PARTITION_IN_FULL],
        ),
        ({"schedulingGates": [GATE], "tolerations": [PARTITION]}, [GATE], [PARTITION, GPU_TAINT]),
        ({"tolerations": [PARTITION_IN_FULL, GPU_TAINT]}, [GATE], [PARTITION_IN_FULL, GPU_TAINT]),
    ],
    ids=["null", "empty", "others there", "ours there", "tolerations there"],
)
async def test_what_is_there_stays_and_comes_once(
    desk: Desk, given: Obj, gates: list[Obj], tolerations: list[Obj]
) -> None:
    """Gates and tolerations of others stay, ours are added once, equal ones are known as equal (C19, C26)."""
    answer = await desk.pod(pod(**given))

    assert answer.obj["spec"]["schedulingGates"] == gates
    assert answer.obj["spec"]["tolerations"] == tolerations


async def test_the_second_call_changes_the_stamp_alone(desk: Desk) -> None:
    """Asked again under another uid, the stamp follows it; one gate, each toleration once (C26, T25)."""
    first = await desk.pod(launcher(), uid="r-1")

    second = await desk.pod(first.obj, uid="r-2")

    assert [(op["path"], op["value"]) for op in second.patch] == [
        ("/metadata/annotations/cozystack.io~1gpu-admission", "r-2")
    ]


async def test_a_stamp_from_elsewhere_is_overwritten(desk: Desk) -> None:
    """What the VMI's annotations brought along under our key does not survive (T25)."""
    obj = launcher()
    obj["metadata"]["annotations"][STAMP] = "forged"

    answer = await desk.pod(obj, uid="r-1")

    assert answer.obj["metadata"]["annotations"][STAMP] == "r-1"


async def test_the_vmi_is_looked_for_in_the_requests_namespace(desk: Desk) -> None:
    """Neither the body's namespace nor its absence matters, and name and uid may be missing (C47)."""
    obj = launcher()
    obj["metadata"]["namespace"] = "elsewhere"

    await desk.pod(launcher())
    await desk.pod(obj)

    assert [asked.vmi for asked in desk.clerk.asked if isinstance(asked, PodRequest)] == [
        VmiId("tenant-a", "vm1", "u1"),
        VmiId("tenant-a", "vm1", "u1"),
    ]


OWNERS: dict[str, list[Obj] | None] = {
    "none": None,
    "not the controller": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "a", "uid": "u"}],
    "another group": [
        {"apiVersion": "v1", "kind": "VirtualMachineInstance", "name": "a", "uid": "u", "controller": True}
    ],
    "another kind": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": True}],
}


@pytest.mark.parametrize("owners", OWNERS.values(), ids=OWNERS.keys())
async def test_a_launcher_of_no_vmi_is_refused(desk: Desk, owners: list[Obj] | None) -> None:
    """The controlling owner must be a VMI of KubeVirt's group (T17, D11)."""
    obj = launcher()
    obj["metadata"]["ownerReferences"] = owners

    answer = await desk.pod(obj)

    assert (answer.allowed, answer.reason) == (False, "UnknownVMI")


async def test_only_kubevirt_makes_launchers(desk: Desk) -> None:
    """A tenant's pod with KubeVirt's labels and an owner reference of its own writing is refused (T17, D11)."""
    answer = await desk.pod(launcher(), userInfo={"username": "system:serviceaccount:tenant-a:kubevirt-controller"})

    assert (answer.allowed, answer.code, answer.reason) == (False, 403, "NotCreatedByKubeVirt")


@pytest.mark.parametrize(
    ("kind", "policy", "gated"),
    [
        ("launcher", "Wait", True),
        ("launcher", "", True),
        ("launcher", "Schedule", False),
        ("temporary", "Wait", True),
        ("migration", "Wait", False),
    ],
)
async def test_who_waits_at_the_gate(desk: Desk, kind: str, policy: str, gated: bool) -> None:
    """Launchers and temporary pods wait; a migration target and everything under Schedule does not (P2, T25)."""
    obj = launcher(policy=policy)
    if kind == "temporary":
        obj["metadata"]["annotations"]["kubevirt.io/ephemeral-provisioning"] = "true"
    if kind == "migration":
        obj["metadata"]["labels"]["kubevirt.io/migrationJobUID"] = "m1"

    answer = await desk.pod(obj)

    assert ("schedulingGates" in answer.obj["spec"]) is gated
    assert answer.obj["spec"]["tolerations"] == [GPU_TAINT, PARTITION_IN_FULL]


@pytest.mark.parametrize("mark", ["hotplug-disk", None])
async def test_other_pods_pass_untouched(desk: Desk, mark: str | None) -> None:
    """A hotplug pod inherits the labels and is no launcher; a plain pod is none of our business (C24)."""
    obj = launcher()
    obj["metadata"]["labels"] = {"cozystack.io/gpu-reference": "true"} | ({"kubevirt.io": mark} if mark else {})

    answer = await desk.pod(obj)

    assert (answer.allowed, answer.patch) == (True, ())
    assert desk.events() == []


async def test_a_launcher_with_half_a_reference_is_refused(desk: Desk) -> None:
    """KubeVirt copies label and annotation both: one without the other is refused, both named."""
    obj = launcher()
    del obj["metadata"]["annotations"]["cozystack.io/gpus"]

    answer = await desk.pod(obj)

    assert not answer.allowed
    assert "but not the annotation cozystack.io/gpus" in answer.message


async def test_a_class_without_tolerations_adds_none(desk: Desk) -> None:
    """No tolerations, no list: the spec has none afterwards (P3)."""
    await desk.create(GPU_CLASS, "plain", {"spec": {"resourceName": CARD + "X", "mode": "Passthrough"}})

    answer = await desk.pod(launcher(gpus({"className": "plain"})))

    assert answer.allowed
    assert "tolerations" not in answer.obj["spec"]
