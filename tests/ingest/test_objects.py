"""Objects to views: each kind's fields, what does not matter, and what an unreadable object says of itself."""

import msgspec
import pytest

from ingest.classes import read_claim, read_class
from ingest.nodes import read_namespace, read_node
from ingest.settings import read_settings
from ingest.sources import OBJECT_BYTES_MAX, Unreadable, watched
from ingest.volumes import read_pv, read_pvc
from schemas.objects import (
    ClaimView,
    ClassView,
    Gone,
    NamespaceView,
    NodeSelectorTerm,
    NodeView,
    PvcView,
    PvView,
    Requirement,
    SettingsView,
    Stamp,
    Taint,
    Toleration,
)
from tests.ingest.given import UID, VMI_UID, raw, seen

ADA = Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")
SOURCES = {source.kind: source for source in watched("gpubinder")}


def test_a_node_shows_what_it_offers_and_what_it_refuses() -> None:
    """Allocatable in integers, taints, cordon, readiness and labels; the hostname label need not be its name (C18)."""
    assert read_node(seen("node")) == NodeView(
        "n1",
        UID.format(1),
        "812",
        labels={"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": "host-17", "zone": "a"},
        taints=(
            Taint("nvidia.com/gpu", "present", "NoSchedule"),
            Taint("node.kubernetes.io/unreachable", "", "NoExecute"),
        ),
        unschedulable=True,
        ready=True,
        allocatable={
            "cpu": 63_500,
            "devices.kubevirt.io/kvm": 1000,
            "ephemeral-storage": 2**40,
            "memory": 527_961_124 * 1024,
            "nvidia.com/AD102GL_L40S": 8,
            "pods": 110,
        },
    )


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_node_is_ready_only_if_it_says_so(status: str) -> None:
    """Unknown is not ready, and neither is a node without conditions."""
    assert not read_node(seen("node", status__conditions=[{"type": "Ready", "status": status}])).ready
    assert not read_node(seen("node", status=None)).ready


def test_a_volume_shows_its_terms() -> None:
    """Terms are kept as alternatives; no affinity means everywhere, an empty list nowhere (C42)."""
    assert read_pv(seen("pv")) == PvView(
        "pz",
        UID.format(2),
        "77",
        terms=(
            NodeSelectorTerm((Requirement("zone", "In", ("b",)),)),
            NodeSelectorTerm((Requirement("zone", "In", ("c",)),)),
        ),
    )
    assert read_pv(seen("pv", spec__nodeAffinity=None)).terms is None
    assert read_pv(seen("pv", spec__nodeAffinity={"required": {"nodeSelectorTerms": []}})).terms == ()


def test_a_claim_on_a_volume_names_it() -> None:
    """The volume's name, '' while there is none (C42)."""
    assert read_pvc(seen("pvc")) == PvcView("vm1-root", UID.format(3), "78", "tenant-a", volume="pz")
    assert read_pvc(seen("pvc", spec__volumeName=None)).volume == ""


@pytest.mark.parametrize(("value", "entitled"), [("true", True), ("True", False), ("", False)])
def test_a_namespace_is_entitled_by_its_label_alone(value: str, entitled: bool) -> None:
    """Only the value "true" is the entitlement (A5); a namespace on its way out says so."""
    view = read_namespace(seen("namespace", metadata__labels={"cozystack.io/vgpu": value}))

    assert view == NamespaceView("tenant-a", UID.format(4), "21", deleting=True, vgpu=entitled)


def test_a_class_shows_its_spec_and_its_conflict() -> None:
    """All of the spec, its finalizers, and whether a condition says that an older class has the resource name (K1)."""
    assert read_class(seen("class")) == ClassView(
        "l40s-24c",
        UID.format(5),
        "31",
        resource="nvidia.com/NVIDIA_L40S-24C",
        mode="VGPU",
        max_count=2,
        tolerations=(ADA,),
        licence_secret="nvidia-licence",
        conflict=True,
        created=1_777_789_800,
        finalizers=("cozystack.io/gpu-class",),
    )
    assert not read_class(seen("class", status=None)).conflict
    assert read_class(seen("class", spec__maxCount=None)).max_count is None


def test_a_claim_shows_what_was_written_into_it() -> None:
    """Spec, owner, mark, and the status with the decision it shows (T14, T22)."""
    assert read_claim(seen("claim")) == ClaimView(
        "vm1-abcde-0",
        UID.format(6),
        "2050",
        "tenant-a",
        class_name="l40s-24c",
        count=2,
        template=True,
        owner_uid=VMI_UID,
        phase="Bound",
        node="n1",
        resource="nvidia.com/NVIDIA_L40S-24C",
        stamp=Stamp(1, 420, 1),
        finalizers=("cozystack.io/gpu-claim",),
        created=1_777_798_800,
    )
    bare = read_claim(seen("claim", status=None, metadata__labels=None, spec__count=None))
    assert (bare.phase, bare.stamp, bare.template, bare.count) == ("", Stamp(), False, 1)


def test_settings_are_one_config_map_and_known_keys() -> None:
    """Other config maps of the namespace do not matter, nor do other keys."""
    assert read_settings(seen("settings")) == SettingsView(
        "gpubinder-settings", UID.format(9), "9", "gpubinder", data={"enabled": "true", "startPolicy": "Wait"}
    )
    assert isinstance(read_settings(seen("settings", metadata__name="gpubinder-anchor")), Gone)
    assert read_settings(seen("settings", data=None)) == SettingsView(
        "gpubinder-settings", UID.format(9), "9", "gpubinder"
    )


@pytest.mark.parametrize(
    ("kind", "name", "changes", "words"),
    [
        ("nodes", "node", {"status__allocatable": {"cpu": "lots"}}, ["Node n1", "status.allocatable[cpu]", "'lots'"]),
        ("nodes", "node", {"spec__taints": "none"}, ["Node n1", "$.spec.taints"]),
        (
            "pods",
            "launcher",
            {"spec__containers": [{"name": "compute", "resources": {"requests": {"memory": "1Qi"}}}]},
            ["Pod tenant-a/virt-launcher-vm1-x7k2p", "spec.containers[compute].resources.requests[memory]", "'1Qi'"],
        ),
        ("gpuclasses", "class", {"spec__maxCount": "two"}, ["GPUClass l40s-24c", "$.spec.maxCount"]),
        ("virtualmachines", "vm", {"metadata__name": 7}, ["VirtualMachine without a name", "$.metadata.name"]),
    ],
)
def test_an_unreadable_object_names_itself_and_the_field(
    kind: str, name: str, changes: dict[str, object], words: list[str]
) -> None:
    """The error says which object, which field, and the text of an amount that is none."""
    with pytest.raises(Unreadable) as caught:
        SOURCES[kind].view(seen(name, **changes))

    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"\xff", b'{"metadata": 3}', b"[" * 100_000, b'{"x":"' + b"y" * OBJECT_BYTES_MAX + b'"}']
)
def test_no_bytes_at_all_get_past_the_guard(body: bytes) -> None:
    """Whatever a server sends as an object is a view, or `Unreadable`."""
    for source in SOURCES.values():
        with pytest.raises(Unreadable):
            source.view(msgspec.Raw(body))
        with pytest.raises(Unreadable):
            source.gone(msgspec.Raw(body))


def test_a_deleted_object_is_gone_at_the_version_of_its_deletion() -> None:
    """Whatever its other fields say, they need not even be readable."""
    body = seen("node", metadata__resourceVersion="900", status__allocatable={"cpu": "lots"})

    assert SOURCES["nodes"].gone(body) == Gone("n1", UID.format(1), "900")


def test_null_is_absent() -> None:
    """Maps and lists that a client wrote as null read as empty ones."""
    node = {"metadata": {"name": "n", "labels": None, "annotations": None}, "spec": {"taints": None}, "status": {}}

    assert SOURCES["nodes"].view(raw(node)) == NodeView("n", "", "")
