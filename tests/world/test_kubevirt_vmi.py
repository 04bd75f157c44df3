"""What KubeVirt does with a VMI: its one launcher, its phases, activePods, volumes."""

import pytest

from deploy.world.kubelet import UNEXPECTED
from deploy.world.manifests import Obj, condition, has_condition, is_temporary
from deploy.world.virt_names import UNPAUSED, VMI_FINALIZER
from schemas.kinds import DATA_VOLUME, POD, PVC, VMI
from tests.world.stage import CARD, GATE, Stage, staged, vmi

pytestmark = pytest.mark.looptime


def told(obj: Obj, kind: str) -> tuple[str, str] | None:
    """Status and reason of a condition."""
    found = condition(obj, kind)
    return None if found is None else (found["status"], found.get("reason") or "")


async def test_a_gated_launcher_waits_without_limit_and_is_touched_at_once() -> None:
    """The VMI goes to Scheduling at once and stays; virt-controller writes its condition onto the gated pod."""
    async with staged() as stage:
        stage.gate_pods()
        await stage.create(VMI, vmi("a", CARD))
        found = await stage.phase("a", "Scheduling")
        pod = await stage.pod("a")
        await stage.settle(3600.0)
        found = stage.find(VMI, "a") or {}
        assert found["status"]["phase"] == "Scheduling"
        assert found["status"]["activePods"] == {pod["metadata"]["uid"]: ""}
        assert told(found, "PodScheduled") == ("False", "SchedulingGated")
        assert told(found, "Ready") == ("False", "GuestNotRunning")
        touched = stage.find(POD, pod["metadata"]["name"]) or {}
        assert has_condition(touched, UNPAUSED, "True", "NotPaused")
        assert touched["spec"]["schedulingGates"] == [{"name": GATE}]
        writes = [obj["metadata"]["resourceVersion"] for kind, obj in stage.written if obj["kind"] == "Pod"]
        assert len(writes) == 2, "one create, one touch: a pin that tests the version seen would fail"


async def test_an_ungated_pod_that_is_unschedulable_keeps_the_old_reason() -> None:
    """The VMI's PodScheduled says SchedulingGated still: KubeVirt adds the condition only where it is absent."""
    async with staged() as stage:
        stage.gate_pods()
        await stage.create(VMI, vmi("a", CARD))
        await stage.phase("a", "Scheduling")
        await stage.settle()
        pod = await stage.pod("a")
        await stage.ungate(pod)
        no_room = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
        await stage.change(POD, pod["metadata"]["name"], {"status": {"conditions": [no_room]}}, subresource="status")
        await stage.settle()
        assert told(stage.find(VMI, "a") or {}, "PodScheduled") == ("False", "SchedulingGated")
        await stage.bind(pod, "node-1")
        found = await stage.phase("a", "Running")
        assert told(found, "PodScheduled") is None


async def test_a_device_that_is_not_permitted_leaves_a_vmi_pending_without_pod_or_event() -> None:
    """Synchronized=False FailedCreate with the device's name; the CR's repair is seen at the next retry."""
    async with staged() as stage:
        await stage.create(VMI, vmi("a", "nvidia.com/NOPE"))
        await stage.settle(5.0)
        found = await stage.phase("a", "Pending")
        assert told(found, "Synchronized") == ("False", "FailedCreate")
        message = (condition(found, "Synchronized") or {})["message"]
        permitted = "is not permitted in permittedHostDevices configuration"
        assert message == f"failed to render launch manifest: GPU nvidia.com/NOPE {permitted}"
        assert told(found, "Ready") == ("False", "PodNotExists")
        assert stage.pods("a") == []
        assert stage.events("FailedCreate") == []


async def test_without_a_table_of_permitted_devices_nothing_is_checked() -> None:
    """Without permittedHostDevices any device name gets its pod."""
    async with staged({"permittedHostDevices": None}) as stage:
        await stage.create(VMI, vmi("a", "nvidia.com/NOPE"))
        pod = await stage.pod("a")
        assert pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/NOPE"] == "1"


async def test_a_refused_launcher_is_tried_again_and_the_first_message_stays() -> None:
    """The VMI stays Pending with FailedCreate and one Event a try; it starts once the refusal ends."""
    async with staged() as stage:
        stage.refuse("quota", "pods", "exceeded quota: first")
        await stage.create(VMI, vmi("a", CARD))
        await stage.until(lambda: stage.events("FailedCreate"))
        stage.refuse("quota-2", "pods", "exceeded quota: second")
        stage.api.unadmit("quota")
        await stage.settle(10.0)
        found = await stage.phase("a", "Pending")
        assert told(found, "Synchronized") == ("False", "FailedCreate")
        assert (condition(found, "Synchronized") or {})["message"].endswith("exceeded quota: first")
        assert 10 <= len(stage.events("FailedCreate")) <= 16
        stage.api.unadmit("quota-2")
        found = await stage.phase("a", "Scheduling")
        assert told(found, "Synchronized") is None


@pytest.mark.parametrize("force", [True, False])
async def test_a_vmi_never_gets_a_second_launcher(force: bool) -> None:
    """A pod lost or failed before Running fails the VMI; a bare one stays Failed until somebody deletes it."""
    async with staged(plugin=lambda _: UNEXPECTED) as stage:
        await stage.create(VMI, vmi("a", CARD))
        pod = await stage.pod("a")
        if force:
            await stage.delete(POD, pod["metadata"]["name"])
        else:
            await stage.bind(pod, "node-1")
        found = await stage.phase("a", "Failed")
        assert told(found, "Ready") in {("False", "PodNotExists"), ("False", "PodTerminating")}
        await stage.settle(3600.0)
        assert [one["status"].get("phase") for one in stage.pods("a")] == ([] if force else ["Failed"])
        await stage.delete(VMI, "a")
        await stage.until(lambda: stage.find(VMI, "a") is None)
        assert stage.pods("a") == []


async def test_a_vmi_is_handed_over_step_by_step() -> None:
    """Pending, Scheduling, Scheduled, Running; node and label come with Scheduled, Ready after Running."""
    async with staged() as stage:
        await stage.create(VMI, vmi("a", CARD))
        pod = await stage.run("a", "node-1")
        lives = [obj for _, obj in stage.written if obj["kind"] == VMI.kind]
        phases = list(dict.fromkeys(obj["status"]["phase"] for obj in lives))
        assert phases == ["Pending", "Scheduling", "Scheduled", "Running"]
        scheduled = next(obj for obj in lives if obj["status"]["phase"] == "Scheduled")
        assert scheduled["status"]["nodeName"] == "node-1"
        assert scheduled["metadata"]["labels"]["kubevirt.io/nodeName"] == "node-1"
        assert scheduled["status"]["activePods"] == {pod["metadata"]["uid"]: "node-1"}
        first = next(obj for obj in lives if obj["status"]["phase"] == "Running")
        assert told(first, "Ready") == ("False", "GuestNotRunning")
        assert told(first, "LiveMigratable") == ("False", "HostDeviceNotLiveMigratable")
        assert told(lives[-1], "Ready") == ("True", "")
        assert pod["metadata"]["labels"]["kubevirt.io/nodeName"] == "node-1"
        generations = [obj["metadata"]["generation"] for obj in lives]
        assert generations == sorted(generations)
        assert generations[-1] > 3, "without a status subresource every change of status counts"


async def test_active_pods_may_come_late() -> None:
    """With a slow cache the first write of Scheduling shows no activePods; they follow."""
    async with staged(active_pods_lag_s=5.0) as stage:
        stage.gate_pods()
        await stage.create(VMI, vmi("a", CARD))
        found = await stage.phase("a", "Scheduling")
        assert "activePods" not in found["status"]
        pod = await stage.pod("a")
        await stage.settle(6.0)
        assert (stage.find(VMI, "a") or {})["status"]["activePods"] == {pod["metadata"]["uid"]: ""}


async def data_volume(stage: Stage, phase: str) -> None:
    """A DataVolume of that phase and its PVC."""
    made = await stage.create(DATA_VOLUME, {"metadata": {"name": "disk"}, "spec": {}})
    await stage.change(DATA_VOLUME, "disk", {"status": {"phase": phase}}, subresource="status")
    owner = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": "disk", "controller": True}
    owners = [owner | {"uid": made["metadata"]["uid"]}]
    await stage.create(PVC, {"metadata": {"name": "disk", "ownerReferences": owners}, "spec": {}})


async def test_a_volume_that_waits_for_its_first_consumer_gets_a_temporary_pod_first() -> None:
    """Same VMI, two pods one after the other; both ask for the GPU; the VMI is Pending until the second."""
    volumes = [{"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}]
    async with staged() as stage:
        await data_volume(stage, "WaitForFirstConsumer")
        await stage.create(VMI, vmi("a", CARD, volumes=volumes))
        temporary = await stage.pod("a")
        assert is_temporary(temporary)
        assert temporary["spec"]["containers"][0]["command"] == ["/bin/bash"]
        assert temporary["spec"]["containers"][0]["resources"]["limits"][CARD] == "1"
        await stage.settle()
        found = await stage.phase("a", "Pending")
        assert told(found, "Provisioning") == ("True", "")
        assert found["status"]["activePods"] == {temporary["metadata"]["uid"]: ""}
        await stage.bind(temporary, "node-1")
        await stage.until(lambda: stage.pods("a")[0]["status"]["phase"] == "Succeeded")
        await stage.change(DATA_VOLUME, "disk", {"status": {"phase": "Succeeded"}}, subresource="status")
        real = await stage.pod("a", without=[temporary["metadata"]["name"]])
        assert not is_temporary(real)
        assert real["metadata"]["ownerReferences"] == temporary["metadata"]["ownerReferences"]
        await stage.bind(real, "node-1")
        await stage.phase("a", "Running")
        assert [one["metadata"]["name"] for one in stage.pods("a")] == [real["metadata"]["name"]]


async def test_a_failed_temporary_pod_fails_its_vmi() -> None:
    """A temporary pod that its node refuses ends the VMI while the volume still waits."""
    volumes = [{"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}]
    async with staged(plugin=lambda _: UNEXPECTED) as stage:
        await data_volume(stage, "WaitForFirstConsumer")
        await stage.create(VMI, vmi("a", CARD, volumes=volumes))
        await stage.bind(await stage.pod("a"), "node-1")
        await stage.phase("a", "Failed")


async def test_a_missing_volume_keeps_a_vmi_pending_until_it_comes() -> None:
    """No PVC: Synchronized=False FailedPvcNotFound and no pod; the PVC's creation wakes the VMI."""
    volumes = [{"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}]
    async with staged() as stage:
        await stage.create(VMI, vmi("a", CARD, volumes=volumes))
        await stage.settle()
        assert told(await stage.phase("a", "Pending"), "Synchronized") == ("False", "FailedPvcNotFound")
        await stage.create(PVC, {"metadata": {"name": "disk"}, "spec": {}})
        await stage.pod("a")


async def test_a_deleted_bare_vmi_goes_with_its_pod() -> None:
    """Its finalizer stays until no pod of it is left."""
    async with staged(stop_s=30.0) as stage:
        await stage.create(VMI, vmi("a", CARD))
        await stage.run("a", "node-1")
        await stage.delete(VMI, "a")
        await stage.settle(20.0)
        assert (stage.find(VMI, "a") or {})["metadata"]["finalizers"] == [VMI_FINALIZER]
        await stage.until(lambda: stage.find(VMI, "a") is None)
        assert stage.pods("a") == []
