"""KubeVirt's objects to views: what of a machine matters, and that no Secret gets out."""

import msgspec
import pytest

from ingest.machines import read_kubevirt, read_pool, read_replica_set, read_vm, read_vmi
from schemas.entries import TEXT_BYTES_MAX, MalformedEntries, parse_entries
from schemas.names import GPU_ENTRY_PREFIX
from schemas.objects import (
    Gone,
    KubeVirtView,
    PoolView,
    ReplicaSetView,
    VmiView,
    VmView,
)
from tests.ingest.given import POD_UID, UID, VMI_UID, given, raw, seen

GPUS = '[{"className":"l40s-24c","count":2}]'


def test_a_vm_matters_for_its_template() -> None:
    """The marks of the template count, those of the VM itself do not (N2); its cloud-init stays behind (T16)."""
    view = read_vm(seen("vm"))

    assert view == VmView("vm1", UID.format(7), "2000", "tenant-a", gpus=GPUS, created=1_777_798_740)
    outside = {"labels": {"cozystack.io/gpu-reference": "true"}, "annotations": {"cozystack.io/gpus": GPUS}}
    unmarked = seen("vm", spec__template={}, **{f"metadata__{key}": value for key, value in outside.items()})
    assert isinstance(read_vm(unmarked), Gone)


@pytest.mark.parametrize(
    ("metadata", "matters"),
    [
        ({"labels": {"cozystack.io/gpu-reference": "true"}}, True),
        ({"annotations": {"cozystack.io/gpus": GPUS}}, True),
        ({"labels": {"cozystack.io/gpu-reference": "false"}}, False),
        ({"labels": None}, False),
        (None, False),
    ],
)
def test_either_mark_makes_a_vm_matter(metadata: object, matters: bool) -> None:
    """Entries without the label, and the label without entries, are shown: both must be seen to be refused or told."""
    template = {} if metadata is None else {"metadata": metadata}

    assert isinstance(read_vm(seen("vm", spec__template=template)), VmView) == matters


def test_an_annotation_longer_than_any_readable_one_is_cut_and_stays_unreadable() -> None:
    """B2, T5: a template's metadata takes megabytes; of them no view, state or message holds more than is read."""
    long = GPUS + " " * 3_000_000
    marks = {"labels": {"cozystack.io/gpu-reference": "true"}, "annotations": {"cozystack.io/gpus": long}}
    head = {"name": "many", "uid": "u", "resourceVersion": "7", "namespace": "tenant-a"}

    vm = read_vm(seen("vm", spec__template={"metadata": marks}))
    several = read_replica_set(raw({"metadata": head, "spec": {"template": {"metadata": marks}}}))
    vmi = read_vmi(seen("vmi", metadata__annotations=marks["annotations"]))

    for view in (vm, several, vmi):
        assert not isinstance(view, Gone)
        assert len(view.gpus) == TEXT_BYTES_MAX + 1
        with pytest.raises(MalformedEntries):
            parse_entries(view.gpus)


def test_nulls_among_a_template_s_marks_hide_nothing() -> None:
    """B2, N2: no schema guards that metadata, and KubeVirt takes null for '': its machines come, and it must count."""
    marks = {"labels": {"cozystack.io/gpu-reference": "true", "x": None}, "annotations": {"y": None}}
    template = {"metadata": marks | {"annotations": {"cozystack.io/gpus": GPUS, "y": None}}}
    head = {"name": "many", "uid": "u", "resourceVersion": "7", "namespace": "tenant-a"}

    vm, empty = (read_vm(seen("vm", spec__template=one)) for one in (template, {"metadata": marks}))
    several = read_replica_set(raw({"metadata": head, "spec": {"replicas": 3, "template": template}}))
    nothing = read_vm(seen("vm", spec__template={"metadata": {"annotations": {"cozystack.io/gpus": None}}}))

    assert isinstance(vm, VmView)
    assert isinstance(empty, VmView)
    assert isinstance(nothing, VmView)
    assert (vm.gpus, empty.gpus, nothing.gpus) == (GPUS, "", "")
    assert several == ReplicaSetView("many", "u", "7", "tenant-a", gpus=GPUS, replicas=3)


def test_a_vmi_shows_its_pods_and_all_its_volumes() -> None:
    """PVCs of each kind of volume, hot-plugged ones that only the status names included; no Secret gets out (T16)."""
    view = read_vmi(seen("vmi"))

    assert view == VmiView(
        "vm1",
        VMI_UID,
        "2040",
        "tenant-a",
        gpus=GPUS,
        policy="Wait",
        phase="Running",
        node="n1",
        active_pods={POD_UID: "n1"},
        volumes=("vm1-root", "vm1-data", "golden", "vm1-plugged", "vm1-late"),
        owner_uid=UID.format(7),
        created=1_777_798_800,
    )
    assert isinstance(read_vmi(seen("vmi", metadata__labels=None, metadata__annotations=None)), Gone)


@pytest.mark.parametrize(
    ("gpus", "devices"),
    [
        ([], ()),
        (None, ()),
        ([("0-0", "a/x"), ("0-1", "a/x"), ("1-0", "b/y")], ("a/x", "b/y")),
        ([("1-0", "b/y")], ("", "b/y")),
        ([("0-0", "a/x"), ("0-1", "b/y"), ("0-2", "a/x"), ("1-0", "b/y")], ("", "b/y")),
        (
            [("0-0", "a" * 318), ("1-01", "b/y"), ("2-64", "b/y"), ("3-", "b/y"), ("4-0", "b/y")],
            ("", "", "", "", "b/y"),
        ),
        ([("16-0", "a/x"), ("x-0", "a/x"), ("-1-0", "a/x"), ("00-0", "a/x"), ("\u0661-0", "a/x")], ()),
    ],
    ids=["none", "null", "each entry", "a later one", "not one resource", "not as we write them", "no entry of ours"],
)
def test_a_vmi_shows_what_each_entry_was_admitted_with(
    gpus: list[tuple[str, str]] | None, devices: tuple[str, ...]
) -> None:
    """T24: the resource of the devices that we wrote for an entry; others' devices show nothing."""
    ours = [{"name": f"{GPU_ENTRY_PREFIX}{name}", "deviceName": device} for name, device in gpus or ()]
    written = ours and [*ours, {"name": "gpu1", "deviceName": "c/z"}, {"name": "by-claim", "claimName": "x"}]
    whole = msgspec.json.decode(seen("vmi"))
    whole["spec"].setdefault("domain", {})["devices"] = {"gpus": None if gpus is None else written}

    view = read_vmi(msgspec.json.encode(whole))

    assert isinstance(view, VmiView)
    assert view.devices == devices


def test_the_permitted_devices_are_a_table_or_none() -> None:
    """The union of all three lists; an empty table permits nothing, no table at all is no check (A6)."""
    permitted = ("example.com/usb", "nvidia.com/AD102GL_L40S", "nvidia.com/NVIDIA_L40S-24C")

    assert read_kubevirt(seen("kubevirt")) == KubeVirtView(
        "kubevirt", UID.format(8), "12", "kubevirt", permitted=permitted
    )
    assert read_kubevirt(seen("kubevirt", spec__configuration={"permittedHostDevices": {}})).permitted == ()
    assert read_kubevirt(seen("kubevirt", spec__configuration={})).permitted is None
    assert read_kubevirt(seen("kubevirt", spec={})).permitted is None


@pytest.mark.parametrize(("replicas", "count"), [(3, 3), (0, 0), (None, 1)])
def test_pools_and_replica_sets_show_their_templates_entries(replicas: int | None, count: int) -> None:
    """B2: entries of the VMIs to come, and how many; one where nothing is said. Without entries they don't matter."""
    template = given("vm")["spec"]["template"]
    head = {"name": "many", "uid": "u", "resourceVersion": "7", "namespace": "tenant-a"}
    made = {"spec": {"template": template}}
    pool = {"metadata": head, "spec": {"replicas": replicas, "virtualMachineTemplate": made}}
    replica_set = {"metadata": head, "spec": {"replicas": replicas, "template": template}}

    assert read_pool(raw(pool)) == PoolView("many", "u", "7", "tenant-a", gpus=GPUS, replicas=count)
    assert read_replica_set(raw(replica_set)) == ReplicaSetView("many", "u", "7", "tenant-a", gpus=GPUS, replicas=count)
    for read, spec in ((read_pool, {"virtualMachineTemplate": None}), (read_replica_set, {"template": {}})):
        assert isinstance(read(raw({"metadata": head, "spec": spec})), Gone)


def test_a_vm_shows_the_pool_it_is_of() -> None:
    """B2: its controller's uid; what merely owns it is none."""
    owner = {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "name": "p", "uid": "pool"}
    mine = read_vm(seen("vm", metadata__ownerReferences=[owner | {"controller": True}]))
    other = read_vm(seen("vm", metadata__ownerReferences=[owner]))

    assert isinstance(mine, VmView)
    assert isinstance(other, VmView)
    assert (mine.owner_uid, other.owner_uid) == ("pool", "")
