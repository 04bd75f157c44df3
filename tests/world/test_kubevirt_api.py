"""virt-api: what it fills in, what it refuses, and who may change a VMI afterwards."""

import pytest

from binder.kube import ApiError
from deploy.world.manifests import Obj, encode
from deploy.world.virt_api import mutate_vmi_create, validate_vmi_create
from deploy.world.virt_api_update import RESTRICTED, mutate_vmi_update, validate_vmi_update
from deploy.world.virt_config import Config, read_config
from deploy.world.virt_names import VMI_FINALIZER, account
from schemas.kinds import VM, VMI
from tests.world.stage import CARD, NAMESPACE_NAME, SLICE, kubevirt_cr, staged, vm, vmi

CONTROLLER = account("kubevirt", "kubevirt-controller")


def fields(whole: Obj, config: Config | None = None) -> list[str]:
    """The fields that virt-api objects to, after its own defaults."""
    config = config or Config()
    return [cause.field for cause in validate_vmi_create(mutate_vmi_create(whole, config, now=0.0), config)]


def test_defaults_complete_a_bare_vmi() -> None:
    """Architecture, machine, cpu, model, memory bounds, network, a disk per volume, finalizer and phase."""
    volumes: list[Obj] = [
        {"name": "root", "containerDisk": {"image": "i"}},
        {"name": "s", "secret": {"secretName": "x"}},
    ]
    new = mutate_vmi_create(vmi("a", CARD, volumes=volumes), Config(eviction="LiveMigrate"), now=0.0)
    domain = new["spec"]["domain"]
    assert new["spec"]["architecture"] == "amd64"
    assert domain["machine"] == {"type": "q35"}
    assert domain["cpu"] == {"cores": 1, "sockets": 1, "threads": 1, "maxSockets": 4, "model": "host-model"}
    assert domain["memory"] == {"guest": "1Gi", "maxGuest": "4Gi"}
    assert domain["devices"]["disks"] == [
        {"name": "root", "disk": {"bus": "sata"}},
        {"name": "s", "disk": {"bus": "sata"}},
    ]
    assert new["spec"]["networks"] == [{"name": "default", "pod": {}}]
    assert new["spec"]["evictionStrategy"] == "LiveMigrate"
    assert new["metadata"]["finalizers"] == [VMI_FINALIZER]
    assert new["status"]["phase"] == "Pending"
    assert domain["devices"]["gpus"] == [{"name": "gpu1", "deviceName": CARD}]


def test_what_the_vmi_says_itself_is_kept() -> None:
    """A topology in part is not completed; disks and buses given stay."""
    whole = vmi("a", volumes=[{"name": "root", "containerDisk": {"image": "i"}}])
    whole["spec"]["domain"] |= {"cpu": {"cores": 4}}
    whole["spec"]["domain"]["devices"]["disks"] = [{"name": "root", "disk": {"bus": "virtio"}}]
    new = mutate_vmi_create(whole, Config(), now=0.0)
    assert new["spec"]["domain"]["cpu"] == {"cores": 4, "model": "host-model"}
    assert new["spec"]["domain"]["devices"]["disks"] == [{"name": "root", "disk": {"bus": "virtio"}}]


def test_neither_double_names_nor_devices_that_are_not_permitted_are_refused() -> None:
    """Two gpus entries of one name pass, and permittedHostDevices is not looked at here."""
    whole = vmi("a", SLICE, "nvidia.com/NOPE")
    for device in whole["spec"]["domain"]["devices"]["gpus"]:
        device["name"] = "same"
    assert fields(whole, read_config(kubevirt_cr())) == []


@pytest.mark.parametrize(
    ("devices", "field"),
    [
        ({"gpus": [{"name": "g"}]}, "spec.domain.devices.gpus[0].deviceName"),
        ({"gpus": [{"name": "g", "deviceName": CARD}, {"name": "h", "claimName": "c"}]}, "spec.domain.devices.gpus"),
        ({"hostDevices": [{"name": "h", "deviceName": CARD}]}, "spec.domain.devices.hostDevices"),
        ({"disks": [{"name": "gone", "disk": {}}]}, "spec.domain.devices.disks[0].name"),
        ({"disks": [{"name": "root", "cdrom": {"bus": "virtio"}}]}, "spec.domain.devices.disks[0].cdrom.bus"),
        ({"disks": [{"name": "root", "disk": {"readonly": True}}]}, "spec.domain.devices.disks[0].disk.readonly"),
        ({"disks": [{"name": "root", "disk": {}, "bootOrder": 0}]}, "spec.domain.devices.disks[0].bootOrder"),
    ],
)
def test_devices_are_refused_by_field(devices: Obj, field: str) -> None:
    """Each rule of virt-api names the field it is about."""
    whole = vmi("a", volumes=[{"name": "root", "containerDisk": {"image": "i"}}])
    whole["spec"]["domain"]["devices"] |= devices
    assert field in fields(whole)


@pytest.mark.parametrize(
    ("volumes", "field"),
    [
        ([{"name": "a", "secret": {}}], "spec.volumes[0].secret.secretName"),
        ([{"name": "a"}], "spec.volumes[0]"),
        ([{"name": "a", "emptyDisk": {}}, {"name": "a", "emptyDisk": {}}], "spec.volumes[1].name"),
        ([{"name": "a", "cloudInitNoCloud": {"userData": "x" * 2049}}], "spec.volumes[0].cloudInitNoCloud.userData"),
    ],
)
def test_volumes_are_refused_by_field(volumes: list[Obj], field: str) -> None:
    """Unique names, one source, a secret's name, 2048 bytes of inline cloud-init."""
    assert field in fields(vmi("a", volumes=volumes))


def test_a_guest_without_memory_is_refused() -> None:
    """Memory must be given somewhere."""
    whole = vmi("a")
    del whole["spec"]["domain"]["memory"]
    assert fields(whole) == ["spec.domain.memory.guest"]


@pytest.mark.parametrize(("user", "namespace"), [("someone", "kubevirt"), (CONTROLLER, "elsewhere")])
def test_a_stranger_s_change_of_spec_is_refused_and_of_status_put_back(user: str, namespace: str) -> None:
    """Only the accounts of KubeVirt's own namespace count as KubeVirt."""
    old = vmi("a", CARD) | {"status": {"phase": "Pending"}}
    respecified = old | {"spec": old["spec"] | {"nodeSelector": {"x": "y"}}}
    causes = validate_vmi_update(old, respecified, user=user, namespace=namespace)
    assert [(cause.field, cause.reason) for cause in causes] == [("spec", RESTRICTED)]
    renamed = old | {"status": {"phase": "Running"}}
    assert mutate_vmi_update(old, renamed, user=user, namespace=namespace)["status"] == {"phase": "Pending"}


def test_kubevirt_itself_may_change_both() -> None:
    """The controller's account writes spec and status."""
    old = vmi("a", CARD) | {"status": {"phase": "Pending"}}
    new = old | {"spec": {}, "status": {"phase": "Running"}}
    assert validate_vmi_update(old, new, user=CONTROLLER, namespace="kubevirt") == ()
    assert mutate_vmi_update(old, new, user=CONTROLLER, namespace="kubevirt") == new


@pytest.mark.looptime
async def test_strangers_may_label_a_vmi_but_not_shape_it() -> None:
    """Labels and annotations stick, status is silently put back, spec and KubeVirt's own labels are refused."""
    async with staged() as stage:
        stage.gate_pods()
        await stage.create(VM, vm("a", CARD))
        await stage.phase("a", "Scheduling")
        await stage.settle()
        new = await stage.change(VMI, "a", {"metadata": {"labels": {"mine": "1"}, "annotations": {"note": "x"}}})
        assert new["metadata"]["labels"]["mine"] == "1"
        new = await stage.change(VMI, "a", {"status": {"phase": "Running"}})
        assert new["status"]["phase"] == "Scheduling"
        for refused in (
            {"spec": {"nodeSelector": {"x": "y"}}},
            {"metadata": {"labels": {"kubevirt.io/nodeName": "n"}}},
        ):
            with pytest.raises(ApiError) as caught:
                await stage.change(VMI, "a", refused)
            assert caught.value.code == 422
        with pytest.raises(ApiError) as caught:
            await stage.change(VMI, "a", {"status": {}}, subresource="status")
        assert caught.value.code == 404, "VMIs have no status subresource"


@pytest.mark.looptime
async def test_a_webhook_that_sorts_before_virt_api_sees_the_vmi_undefaulted() -> None:
    """Mutating webhooks are asked by name: `gpubinder` before `virt-api-mutator`, no disks and no phase yet."""
    seen: list[Obj] = []
    async with staged() as stage:
        volumes = [{"name": "root", "containerDisk": {"image": "i"}}]
        stage.watch_creates("gpubinder", "virtualmachineinstances.kubevirt.io", seen)
        stage.watch_creates("zz-late", "virtualmachineinstances.kubevirt.io", seen)
        await stage.create(VM, vm("a", CARD, volumes=volumes))
        await stage.pod("a")
    early, late = (request["object"] for request in seen)
    assert "disks" not in early["spec"]["domain"]["devices"]
    assert "phase" not in early.get("status", {})
    assert late["spec"]["domain"]["devices"]["disks"] == [{"name": "root", "disk": {"bus": "sata"}}]
    assert late["status"]["phase"] == "Pending"


@pytest.mark.looptime
async def test_a_vm_is_refused_without_a_run_strategy_and_defaulted_with_one() -> None:
    """The VM webhook wants exactly one of running and runStrategy and fills in the template."""
    async with staged() as stage:
        whole = vm("a", CARD)
        del whole["spec"]["runStrategy"]
        assert (await stage.refused(VM, whole)).code == 422
        made = await stage.create(VM, vm("b", CARD, strategy="Halted"))
        template = made["spec"]["template"]
        assert template["spec"]["domain"]["machine"] == {"type": "q35"}
        assert template["metadata"]["annotations"]["kubevirt.io/pci-topology-version"] == "v3"
        body = encode(made | {"spec": made["spec"] | {"running": True}})
        with pytest.raises(ApiError):
            await stage.stranger.replace(VM, NAMESPACE_NAME, "b", body)
