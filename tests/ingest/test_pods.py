"""Pods to views: launchers with all that placing needs, others as the room they take."""

import pytest

from ingest.pods import read_pod
from schemas.objects import (
    Gone,
    NodeSelectorTerm,
    PodView,
    Requirement,
    Toleration,
)
from tests.ingest.given import POD_UID, VMI_UID, seen

ADA = Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")


def test_a_launcher_shows_all_that_placing_needs() -> None:
    """Gates, effective requests, required terms as they stand, tolerations, volumes, owner and marks."""
    assert read_pod(seen("launcher")) == PodView(
        "virt-launcher-vm1-x7k2p",
        POD_UID,
        "2041",
        "tenant-a",
        phase="Pending",
        gates=("cozystack.io/gpu", "example.com/other"),
        requests={
            "cpu": 405,
            "devices.kubevirt.io/kvm": 1,
            "ephemeral-storage": 50_000_000,
            "memory": 9528 * 2**20 + 35_000_000,
            "nvidia.com/NVIDIA_L40S-24C": 1,
        },
        launcher=True,
        owner_uid=VMI_UID,
        owner_name="vm1",
        admission="5d0c1f2e-aaaa-4000-8000-000000000009",
        node_selector={"kubernetes.io/arch": "amd64", "kubevirt.io/schedulable": "true"},
        terms=(
            NodeSelectorTerm(
                match_expressions=(
                    Requirement("zone", "In", ("a", "b")),
                    Requirement("node-labeller.kubevirt.io/obsolete-host-model", "DoesNotExist"),
                )
            ),
            NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", ("n2",)),)),
        ),
        tolerations=(
            ADA,
            Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute", 300),
        ),
        priority=1000,
        pvcs=("vm1-root", "virt-launcher-vm1-x7k2p-scratch"),
        created=1_777_798_801,
    )


def test_temporary_and_migration_pods_are_marked() -> None:
    """The annotation of provisioning pods and the label of migration targets, as KubeVirt writes them."""
    temporary = read_pod(seen("launcher", metadata__annotations={"kubevirt.io/ephemeral-provisioning": "true"}))
    labels = {
        "kubevirt.io": "virt-launcher",
        "cozystack.io/gpu-reference": "true",
        "kubevirt.io/migrationJobUID": "m1",
    }
    target = read_pod(seen("launcher", metadata__labels=labels))

    assert isinstance(temporary, PodView)
    assert isinstance(target, PodView)
    assert (temporary.temporary, temporary.migration) == (True, False)
    assert (target.temporary, target.migration) == (False, True)


@pytest.mark.parametrize(
    "labels",
    [{"kubevirt.io": "virt-launcher"}, {"cozystack.io/gpu-reference": "true"}, {"kubevirt.io": "hotplug-disk"}],
)
def test_other_pods_matter_on_a_node_and_for_their_room_alone(labels: dict[str, str]) -> None:
    """Without both marks of a launcher a pod has no view until it stands on a node, and then only what it takes."""
    waiting = read_pod(seen("launcher", metadata__labels=labels))
    placed = read_pod(seen("launcher", metadata__labels=labels, spec__nodeName="n1"))

    assert waiting == Gone("virt-launcher-vm1-x7k2p", POD_UID, "2041", "tenant-a")
    assert isinstance(placed, PodView)
    assert placed == PodView(
        "virt-launcher-vm1-x7k2p",
        POD_UID,
        "2041",
        "tenant-a",
        node="n1",
        requests=placed.requests,
        owner_uid=VMI_UID,
        owner_name="vm1",
    )
    assert placed.requests["nvidia.com/NVIDIA_L40S-24C"] == 1


@pytest.mark.parametrize(("phase", "ended"), [("Succeeded", True), ("Failed", True), ("Running", False)])
def test_a_terminal_pod_has_ended(phase: str, ended: bool) -> None:
    """Succeeded and Failed pods give their room back (C33); a failed one says why (C15)."""
    pod = read_pod(seen("launcher", status={"phase": phase, "reason": "UnexpectedAdmissionError"}))

    assert isinstance(pod, PodView)
    assert (pod.ended, pod.reason) == (ended, "UnexpectedAdmissionError")


@pytest.mark.parametrize(
    "owner",
    [
        {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm1", "uid": "u"},
        {
            "apiVersion": "example.io/v1",
            "kind": "VirtualMachineInstance",
            "name": "vm1",
            "uid": "u",
            "controller": True,
        },
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "vm1", "uid": "u", "controller": True},
    ],
)
def test_an_owner_is_a_controlling_vmi_of_kubevirt(owner: dict[str, object]) -> None:
    """A reference that does not control, of another group or of another kind names no VMI."""
    pod = read_pod(seen("launcher", metadata__ownerReferences=[owner]))

    assert isinstance(pod, PodView)
    assert (pod.owner_uid, pod.owner_name) == ("", "")


@pytest.mark.parametrize(
    ("statuses", "ran"),
    [
        ({}, False),
        ({"containerStatuses": [{"name": "compute", "state": {"waiting": {"reason": "ContainerCreating"}}}]}, False),
        ({"containerStatuses": [{"name": "compute", "ready": True, "state": {"running": {}}}]}, True),
        ({"containerStatuses": [{"name": "compute", "state": {"terminated": {"exitCode": 1}}}]}, True),
        ({"containerStatuses": [{"name": "compute", "state": {"waiting": {}}, "lastState": {"terminated": {}}}]}, True),
        ({"initContainerStatuses": [{"name": "disk", "state": {"terminated": {"exitCode": 0}}}]}, True),
    ],
)
def test_a_launcher_shows_whether_a_container_of_it_was_started(statuses: dict[str, object], *, ran: bool) -> None:
    """C15: a kubelet that refuses a pod starts nothing of it; what was started was taken, whatever it died of."""
    view = read_pod(seen("launcher", status={"phase": "Failed", "reason": "OutOfcpu"} | statuses))

    assert isinstance(view, PodView)
    assert (view.reason, view.ran) == ("OutOfcpu", ran)


@pytest.mark.parametrize(
    ("status", "reason", "unschedulable"),
    [("False", "Unschedulable", True), ("False", "SchedulingGated", False), ("True", "", False)],
)
def test_a_launcher_shows_that_no_node_is_found_for_it(status: str, reason: str, *, unschedulable: bool) -> None:
    """C17: kube-scheduler's word; a gated pod is not scheduled for another reason."""
    condition = {"type": "PodScheduled", "status": status, "reason": reason}
    view = read_pod(seen("launcher", status={"phase": "Pending", "conditions": [condition]}))

    assert isinstance(view, PodView)
    assert view.unschedulable is unschedulable
