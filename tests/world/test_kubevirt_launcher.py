"""The launcher pod, field by field: what our pod webhook and binder get to see."""

import pytest

from deploy.world.launcher import instance_id, launcher_pod, migration_target
from deploy.world.launcher_resources import NotRenderable
from deploy.world.manifests import Obj
from deploy.world.virt_api import mutate_vmi_create
from deploy.world.virt_config import Config, read_config
from tests.world.stage import CARD, SLICE, kubevirt_cr, vmi

FRESH = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def stored(whole: Obj, config: Config | None = None) -> Obj:
    """The VMI as virt-api leaves it, with a uid."""
    new = mutate_vmi_create(whole, config or Config(), now=0.0)
    new["metadata"]["uid"] = "u-1"
    return new


def pod_of(whole: Obj, **options: bool) -> Obj:
    """The pod of a VMI, with no table of permitted devices."""
    return launcher_pod(stored(whole), Config(), **options)


def compute(pod: Obj) -> Obj:
    """Requests and limits of the first container."""
    assert pod["spec"]["containers"][0]["name"] == "compute"
    found: Obj = pod["spec"]["containers"][0]["resources"]
    return found


def test_it_has_no_name_no_namespace_and_no_gate() -> None:
    """A generateName alone: admission correlates by the owner reference."""
    pod = pod_of(vmi("a", CARD))
    assert pod["metadata"]["generateName"] == "virt-launcher-a-"
    assert not {"name", "namespace", "uid"} & set(pod["metadata"])
    assert "schedulingGates" not in pod["spec"]
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "a", "uid": "u-1"}
    assert pod["metadata"]["ownerReferences"] == [owner | {"controller": True, "blockOwnerDeletion": True}]


def test_it_carries_all_labels_and_annotations_of_the_vmi_but_kubectl_s() -> None:
    """What a webhook puts on the VMI at create reaches every launcher."""
    whole = vmi("a", CARD)
    whole["metadata"] |= {
        "labels": {"mine": "1"},
        "annotations": {"note": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    pod = pod_of(whole)
    assert pod["metadata"]["labels"]["mine"] == "1"
    assert pod["metadata"]["labels"]["kubevirt.io"] == "virt-launcher"
    assert pod["metadata"]["labels"]["kubevirt.io/created-by"] == "u-1"
    assert pod["metadata"]["annotations"]["note"] == "y"
    assert pod["metadata"]["annotations"]["kubevirt.io/domain"] == "a"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in pod["metadata"]["annotations"]


def test_devices_are_counted_over_gpus_and_host_devices_together() -> None:
    """One unit per entry in requests and limits; duplicate names of entries are fine."""
    whole = vmi("a", SLICE, SLICE, CARD)
    whole["spec"]["domain"]["devices"]["hostDevices"] = [{"name": "h", "deviceName": CARD}]
    found = compute(pod_of(whole))
    for side in ("requests", "limits"):
        assert (found[side][SLICE], found[side][CARD]) == ("2", "2")
    assert found["limits"]["devices.kubevirt.io/kvm"] == "1"


def test_an_explicit_resource_overrides_the_count() -> None:
    """Two gpus and resources of 1 give a pod with 1: no sum."""
    whole = vmi("a", SLICE, SLICE)
    whole["spec"]["domain"]["resources"] = {"limits": {SLICE: "1"}, "requests": {SLICE: "1"}}
    found = compute(pod_of(whole))
    assert (found["requests"][SLICE], found["limits"][SLICE]) == ("1", "1")


def test_a_device_claimed_by_dra_asks_for_nothing_and_is_not_checked() -> None:
    """Entries by claimName become no extended resource and skip permittedHostDevices."""
    whole = vmi("a")
    whole["spec"]["domain"]["devices"]["gpus"] = [{"name": "g", "claimName": "c", "requestName": "r"}]
    found = compute(launcher_pod(stored(whole), read_config(kubevirt_cr())))
    assert not [name for name in found["limits"] if name.startswith("nvidia.com/")]


@pytest.mark.parametrize(
    ("gpus", "memory", "cpu"), [((), "1312Mi", "100m"), ((CARD,), "2336Mi", "100m"), ((CARD, SLICE), "2336Mi", "100m")]
)
def test_memory_has_an_overhead_and_a_gibibyte_with_any_gpu(gpus: tuple[str, ...], memory: str, cpu: str) -> None:
    """1 GiB guest, one vcpu: 288 MiB on top, 1 GiB more once; cpu is a tenth of the vcpus."""
    found = compute(pod_of(vmi("a", *gpus)))
    assert (found["requests"]["memory"], found["requests"]["cpu"]) == (memory, cpu)


def test_more_vcpus_cost_more_memory() -> None:
    """8 GiB guest, four cores, a GPU: 9528 MiB and 400m."""
    whole = vmi("a", CARD)
    whole["spec"]["domain"] |= {"cpu": {"cores": 4}, "memory": {"guest": "8Gi"}}
    found = compute(pod_of(whole))
    assert (found["requests"]["memory"], found["requests"]["cpu"]) == ("9528Mi", "400m")


def test_every_required_term_gets_the_host_model_requirement() -> None:
    """Terms are ORed: the requirement is added to each; without any term there is one."""
    terms: list[Obj] = [
        {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]},
    ]
    pod = pod_of(vmi("a", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}))
    found = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [one["matchExpressions"][-1] for one in found] == [FRESH, FRESH]
    assert found[1]["matchFields"] == terms[1]["matchFields"]
    alone = pod_of(vmi("a"))["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert alone == [{"matchExpressions": [FRESH]}]


def test_a_cpu_model_of_its_own_adds_no_requirement() -> None:
    """host-passthrough and named models leave the affinity as the VMI has it."""
    whole = vmi("a")
    whole["spec"]["domain"]["cpu"] = {"model": "host-passthrough"}
    assert "affinity" not in pod_of(whole)["spec"]


def test_the_vmi_s_node_selector_wins_and_placement_fields_are_copied() -> None:
    """schedulable, arch and machine type are asked for; the VMI's own come on top."""
    tolerations = [{"key": "t", "operator": "Exists"}]
    pod = pod_of(vmi("a", nodeSelector={"zone": "a"}, tolerations=tolerations, priorityClassName="high"))
    assert pod["spec"]["nodeSelector"] == {
        "kubevirt.io/schedulable": "true",
        "kubernetes.io/arch": "amd64",
        "machine-type.node.kubevirt.io/q35": "true",
        "zone": "a",
    }
    assert pod["spec"]["tolerations"] == tolerations
    assert pod["spec"]["priorityClassName"] == "high"


def test_a_temporary_pod_is_the_launcher_with_another_command() -> None:
    """Same labels, owner, affinity and GPUs; an annotation and `/bin/bash` tell them apart."""
    real, temporary = pod_of(vmi("a", CARD)), pod_of(vmi("a", CARD), temporary=True)
    assert temporary["metadata"]["annotations"].pop("kubevirt.io/ephemeral-provisioning") == "true"
    assert temporary["spec"]["containers"][0].pop("command") == ["/bin/bash"]
    assert real["spec"]["containers"][0].pop("command") == ["/usr/bin/virt-launcher-monitor"]
    for pod in (real, temporary):
        del pod["spec"]["containers"][0]["args"]
    assert temporary == real


def test_a_migration_target_is_marked_and_shuns_its_source() -> None:
    """The migration's uid and name, anti-affinity to the VMI's pods, and the source's node as a label."""
    whole = stored(vmi("a", CARD))
    whole["metadata"]["labels"] = {"kubevirt.io/nodeName": "source"}
    migration = {"metadata": {"name": "m", "uid": "u-m"}, "spec": {"vmiName": "a", "addedNodeSelector": {"z": "1"}}}
    pod = migration_target(whole, migration, Config())
    assert pod["metadata"]["labels"]["kubevirt.io/migrationJobUID"] == "u-m"
    assert pod["metadata"]["labels"]["kubevirt.io/nodeName"] == "source"
    assert pod["metadata"]["annotations"]["kubevirt.io/migrationJobName"] == "m"
    away = pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0]
    assert away["labelSelector"] == {"matchLabels": {"kubevirt.io/created-by": "u-1"}}
    assert pod["spec"]["nodeSelector"]["z"] == "1"


def test_a_device_outside_the_table_makes_no_pod() -> None:
    """Rendering is where permittedHostDevices is looked at."""
    config = read_config(kubevirt_cr())
    with pytest.raises(NotRenderable, match=r"GPU nvidia.com/NOPE is not permitted"):
        launcher_pod(stored(vmi("a", "nvidia.com/NOPE"), config), config)


def test_a_long_name_is_cut_in_labels_and_told_apart_by_a_digest() -> None:
    """63 characters at most; two long names with one beginning differ in `vmi.kubevirt.io/id`."""
    one, other = "v" * 80 + "-1", "v" * 80 + "-2"
    assert len(instance_id(one)) == 63
    assert instance_id(one) != instance_id(other)
    assert instance_id("short") == "short"
    assert len(pod_of(vmi(one))["metadata"]["labels"]["vm.kubevirt.io/name"]) == 63


def test_a_secret_volume_is_mounted_by_the_pod() -> None:
    """The kubelet needs the Secret; its volume label is the guest's affair."""
    volumes = [{"name": "lic", "secret": {"secretName": "licence", "volumeLabel": "GPULICENCE"}}]
    pod = pod_of(vmi("a", volumes=volumes))
    assert {"name": "lic", "secret": {"secretName": "licence"}} in pod["spec"]["volumes"]
