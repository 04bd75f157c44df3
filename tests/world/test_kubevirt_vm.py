"""What KubeVirt does with a VM: its VMI, its restarts and back-offs, its end, LiveUpdate."""

import pytest

from deploy.world.clock import unstamp
from deploy.world.kubelet import UNEXPECTED
from deploy.world.manifests import Obj, condition
from deploy.world.virt_names import FAILED, VM_FINALIZER, VMI_FINALIZER
from schemas.kinds import POD, VM, VMI
from tests.world.stage import CARD, SLICE, staged, vm

pytestmark = pytest.mark.looptime


async def test_a_vmi_takes_its_marks_from_the_template_alone() -> None:
    """The VMI has the VM's name, the template's labels and annotations, none of the VM's own, and its owner."""
    async with staged() as stage:
        whole = vm("a", CARD, labels={"app": "x"})
        whole["metadata"] |= {"labels": {"of": "the-vm"}, "annotations": {"of": "the-vm"}}
        whole["spec"]["template"]["metadata"]["annotations"] = {"note": "y"}
        made = await stage.create(VM, whole)
        vmi = await stage.until(lambda: stage.find(VMI, "a"))
        assert vmi is not None
        assert vmi["metadata"]["labels"] == {"app": "x"}
        annotations = vmi["metadata"]["annotations"]
        assert annotations["note"] == "y"
        assert annotations["kubevirt.io/vm-generation"] == "1"
        assert "of" not in annotations
        owner = vmi["metadata"]["ownerReferences"][0]
        assert (owner["uid"], owner["kind"], owner["controller"]) == (made["metadata"]["uid"], "VirtualMachine", True)
        assert vmi["metadata"]["finalizers"] == [VM_FINALIZER, VMI_FINALIZER]
        assert vmi["status"]["virtualMachineRevisionName"] == f"revision-start-vm-{made['metadata']['uid']}-1"


async def test_a_vmi_is_created_by_the_controller_s_service_account() -> None:
    """Admission sees KubeVirt's controller as the one who creates VMI and launcher."""
    seen: list[Obj] = []
    async with staged() as stage:
        for resource in ("pods", "virtualmachineinstances.kubevirt.io"):
            stage.watch_creates(resource, resource, seen)
        await stage.create(VM, vm("a"))
        await stage.pod("a")
    assert [request["userInfo"]["username"] for request in seen] == [
        "system:serviceaccount:kubevirt:kubevirt-controller"
    ] * 2


async def test_a_refused_vmi_is_a_failure_of_the_vm_and_retried_ever_more_slowly() -> None:
    """VM Stopped with Failure=True FailedCreate, no start failure counted; it starts once nobody refuses."""
    async with staged() as stage:
        stage.refuse("no-vmi", "virtualmachineinstances.kubevirt.io", "no GPU left")
        await stage.create(VM, vm("a"))
        await stage.settle(10.0)
        found = await stage.word("a", "Stopped")
        failure = next(one for one in found["status"]["conditions"] if one["type"] == "Failure")
        assert failure["reason"] == "FailedCreate"
        assert "no GPU left" in failure["message"]
        assert "startFailure" not in found["status"]
        # 5 ms, doubled each time: eleven tries fit into ten seconds, and one for every write of our own.
        tries = len(stage.events("FailedCreate"))
        assert 10 <= tries <= 16
        stage.api.unadmit("no-vmi")
        await stage.word("a", "Starting")
        await stage.until(lambda: condition(stage.find(VM, "a") or {}, "Failure") is None)


async def test_failed_starts_back_off_ten_times_the_square_of_their_number() -> None:
    """A pod that fails before Running costs 10-15 s, then 40-60, then 90-135; the same name gets a new uid."""
    async with staged(plugin=lambda _: UNEXPECTED) as stage:
        await stage.create(VM, vm("a", CARD))
        uids: list[str] = []
        for count, (least, most) in enumerate(((10, 15), (40, 60), (90, 135)), 1):
            pod = await stage.until(lambda: [one for one in stage.pods("a") if not one["spec"].get("nodeName")])
            uids.append(pod[0]["metadata"]["ownerReferences"][0]["uid"])
            await stage.bind(pod[0], "node-1")
            found = await stage.word("a", "CrashLoopBackOff")
            failure = found["status"]["startFailure"]
            assert failure["consecutiveFailCount"] == count
            assert failure["lastFailedVMIUID"] == uids[-1]
            wait = unstamp(failure["retryAfterTimestamp"]) - stage.kubevirt.clock.now()
            assert least - 2 <= wait <= most + 1
            await stage.until(lambda: stage.find(VMI, "a") is None)
            assert stage.pods("a") == []
        assert len(set(uids)) == 3
        stage.kubevirt.kubelet.plugin = lambda _: None
        await stage.until(lambda: stage.find(VMI, "a"))
        await stage.run("a", "node-1")
        assert "startFailure" not in (await stage.word("a", "Running"))["status"]


async def test_deleting_a_vmi_that_never_ran_counts_as_a_failed_start() -> None:
    """`kubectl delete vmi` of a waiting VMI puts its VM into CrashLoopBackOff."""
    async with staged() as stage:
        stage.gate_pods()
        await stage.create(VM, vm("a", SLICE))
        await stage.phase("a", "Scheduling")
        await stage.delete(VMI, "a")
        found = await stage.word("a", "CrashLoopBackOff")
        assert found["status"]["startFailure"]["consecutiveFailCount"] == 1


async def test_a_running_vm_whose_pod_is_gone_starts_again_at_once() -> None:
    """A launcher deleted by force fails the VMI; the VM makes a new one without a back-off."""
    async with staged() as stage:
        await stage.create(VM, vm("a", CARD))
        pod = await stage.run("a", "node-1")
        before = stage.kubevirt.clock.now()
        await stage.delete(POD, pod["metadata"]["name"], grace_seconds=0)
        fresh = await stage.pod("a", without=[pod["metadata"]["name"]])
        assert stage.kubevirt.clock.now() - before < 1.0
        assert fresh["metadata"]["ownerReferences"][0]["uid"] != pod["metadata"]["ownerReferences"][0]["uid"]
        assert "startFailure" not in (await stage.word("a", "Starting"))["status"]


async def test_a_foreign_finalizer_on_a_vmi_holds_up_the_restart_and_no_more() -> None:
    """KubeVirt takes its own finalizers off and waits; with the stranger's gone the VM starts at once."""
    async with staged() as stage:
        await stage.create(VM, vm("a", CARD))
        pod = await stage.run("a", "node-1")
        vmi = await stage.phase("a", "Running")
        held = [*vmi["metadata"]["finalizers"], "example.org/hold"]
        await stage.change(VMI, "a", {"metadata": {"finalizers": held}})
        await stage.delete(POD, pod["metadata"]["name"], grace_seconds=0)
        await stage.until(lambda: (stage.find(VMI, "a") or {})["metadata"].get("finalizers") == ["example.org/hold"])
        await stage.settle(60.0)
        assert stage.pods("a") == []
        await stage.change(VMI, "a", {"metadata": {"finalizers": None}})
        await stage.pod("a")


async def test_a_deleted_vm_takes_vmi_and_pod_along_in_order() -> None:
    """Pod, then VMI, then VM are gone; a VMI that never ran ends Failed."""
    async with staged() as stage:
        stage.gate_pods()
        await stage.create(VM, vm("a", CARD))
        await stage.phase("a", "Scheduling")
        await stage.delete(VM, "a")
        await stage.until(lambda: stage.find(VM, "a") is None)
        gone = [obj["kind"] for kind, obj in stage.written if kind == "DELETED"]
        assert gone == ["Pod", "VirtualMachineInstance", "VirtualMachine"]
        last = [obj for kind, obj in stage.written if kind == "DELETED" and obj["kind"] == VMI.kind]
        assert last[0]["status"]["phase"] == FAILED


async def test_halting_a_running_vm_ends_its_guest_and_keeps_it_off() -> None:
    """Run strategy Halted deletes the VMI, which ends Succeeded; Always starts it again."""
    async with staged() as stage:
        await stage.create(VM, vm("a", CARD))
        await stage.run("a", "node-1")
        await stage.change(VM, "a", {"spec": {"runStrategy": "Halted"}})
        await stage.until(lambda: stage.find(VMI, "a") is None)
        await stage.word("a", "Stopped")
        ended = [obj["status"]["phase"] for kind, obj in stage.written if kind == "DELETED" and obj["kind"] == VMI.kind]
        assert ended == ["Succeeded"]
        await stage.settle(400.0)
        assert stage.find(VMI, "a") is None
        await stage.change(VM, "a", {"spec": {"runStrategy": "Always"}})
        await stage.pod("a")


@pytest.mark.parametrize(
    ("strategy", "phase", "restarts"),
    [("RerunOnFailure", "Failed", True), ("RerunOnFailure", "Succeeded", False), ("Once", "Failed", False)],
)
async def test_run_strategies_differ_in_what_follows_an_end(strategy: str, phase: str, restarts: bool) -> None:
    """RerunOnFailure follows a failure only; Once never starts twice and leaves the ended VMI."""
    async with staged() as stage:
        await stage.create(VM, vm("a", CARD, strategy=strategy))
        pod = await stage.run("a", "node-1")
        controller = stage.kubevirt
        whole = await stage.phase("a", "Running")
        whole["status"]["phase"] = phase
        first = whole["metadata"]["uid"]
        stage.api.store.put(VMI, "tenant-a/a", whole)
        await controller.kubelet.end("tenant-a", pod["metadata"]["name"], phase=phase)
        await stage.settle(400.0)
        found = stage.find(VMI, "a")
        if restarts:
            assert found is not None
            assert found["metadata"]["uid"] != first
        elif strategy == "Once":
            assert found is not None
            assert found["metadata"]["uid"] == first
        else:
            assert found is None


async def test_live_update_puts_placement_of_a_vmi_back_to_the_template() -> None:
    """Affinity, nodeSelector and tolerations set at admission are gone at once; the pod keeps what it was made of."""
    async with staged() as stage:
        spec: list[Obj] = [
            {"op": "add", "path": "/spec/nodeSelector", "value": {"pinned": "yes"}},
            {"op": "add", "path": "/spec/tolerations", "value": [{"key": "t", "operator": "Exists"}]},
            {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {}}},
            {"op": "add", "path": "/spec/domain/devices/gpus", "value": [{"name": "g", "deviceName": SLICE}]},
        ]
        stage.mutate("a-pinner", "virtualmachineinstances.kubevirt.io", spec)
        stage.gate_pods()
        await stage.create(VM, vm("a"))
        await stage.phase("a", "Scheduling")
        await stage.settle()
        found = stage.find(VMI, "a")
        assert found is not None
        assert not {"nodeSelector", "tolerations", "affinity"} & set(found["spec"])
        assert [one["deviceName"] for one in found["spec"]["domain"]["devices"]["gpus"]] == [SLICE]


async def test_the_rollout_strategy_stage_leaves_a_vmi_alone() -> None:
    """Without LiveUpdate nothing is put back."""
    async with staged({"vmRolloutStrategy": "Stage"}) as stage:
        operation = {"op": "add", "path": "/spec/nodeSelector", "value": {"pinned": "yes"}}
        stage.mutate("a-pinner", "virtualmachineinstances.kubevirt.io", [operation])
        await stage.create(VM, vm("a"))
        pod = await stage.pod("a")
        await stage.settle()
        found = stage.find(VMI, "a")
        assert found is not None
        assert found["spec"]["nodeSelector"] == {"pinned": "yes"}
        assert pod["spec"]["nodeSelector"]["pinned"] == "yes"
