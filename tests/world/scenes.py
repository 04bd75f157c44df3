"""The scenes that were recorded on a real KubeVirt, played on the model: who does what, step by step."""

from collections.abc import Awaitable, Callable

from deploy.world.kubelet import UNEXPECTED, Refusal
from deploy.world.manifests import Obj, meta
from deploy.world.virt_names import VMIM
from schemas.kinds import DATA_VOLUME, POD, PVC, VM, VMI
from tests.world.stage import CARD, SLICE, Stage, staged, vm, vmi

NOWHERE = "node-9"
"""A node without a kubelet: what is bound there stays as it is, as on the recorded cluster."""

Scene = Callable[[Stage], Awaitable[None]]


async def vm1(stage: Stage) -> None:
    """Started, ran, its pod killed, held by a foreign finalizer, started again."""
    await stage.create(VM, vm("vm1", CARD))
    pod = await stage.run("vm1", "node-2")
    whole = stage.find(VMI, "vm1") or {}
    await stage.change(
        VMI, "vm1", {"metadata": {"finalizers": [*whole["metadata"]["finalizers"], "gpu.binder/release"]}}
    )
    await stage.delete(POD, meta(pod)["name"], grace_seconds=0)
    await stage.settle(15.0)
    await stage.change(VMI, "vm1", {"metadata": {"finalizers": None}})
    fresh = await stage.pod("vm1", without=[meta(pod)["name"]])
    await stage.settle()
    await stage.bind(fresh, "node-1")
    await stage.phase("vm1", "Running")


async def vm2(stage: Stage) -> None:
    """Gated, let go onto nothing, its VMI deleted, started again after the back-off."""
    stage.gate_pods()
    await stage.create(VM, vm("vm2", SLICE))
    pod = await stage.pod("vm2")
    await stage.settle()
    await stage.ungate(pod)
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    kept = [
        one for one in (stage.find(POD, meta(pod)["name"]) or {})["status"]["conditions"] if one["type"] != told["type"]
    ]
    await stage.change(POD, meta(pod)["name"], {"status": {"conditions": [told, *kept]}}, subresource="status")
    await stage.settle()
    stage.mutate("a-pin", "virtualmachineinstances.kubevirt.io", pinned())
    await stage.delete(VMI, "vm2")
    await stage.word("vm2", "CrashLoopBackOff")
    await stage.until(lambda: stage.find(VMI, "vm2") is None)
    await stage.pod("vm2")
    await stage.settle()


async def vm3(stage: Stage) -> None:
    """Placement set at admission, put back by LiveUpdate, the VM deleted."""
    stage.gate_pods()
    stage.mutate("a-pin", "virtualmachineinstances.kubevirt.io", pinned())
    await stage.create(VM, vm("vm3", SLICE))
    await stage.phase("vm3", "Scheduling")
    await stage.settle()
    await stage.delete(VM, "vm3")
    await stage.until(lambda: stage.find(VM, "vm3") is None)


def pinned() -> list[Obj]:
    """What the recorded webhook put onto every VMI."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-node-1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return [
        {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": required}},
        {"op": "add", "path": "/spec/nodeSelector", "value": {"pinned": "yes"}},
        {"op": "add", "path": "/spec/tolerations", "value": [{"key": "t", "operator": "Exists"}]},
    ]


async def vm4(stage: Stage) -> None:
    """Refused by its node three times, a longer wait after each."""
    stage.kubevirt.kubelet.plugin = lambda _: UNEXPECTED
    await stage.create(VM, vm("vm4", CARD))
    for node in ("node-1", "node-1", "node-2"):
        pod = await stage.until(lambda: [one for one in stage.pods("vm4") if not one["spec"].get("nodeName")])
        await stage.settle()
        await stage.bind(pod[0], node)
        await stage.word("vm4", "CrashLoopBackOff")
        await stage.until(lambda: stage.find(VMI, "vm4") is None)
    last = await stage.pod("vm4")
    await stage.settle()
    await stage.bind(last, NOWHERE)
    await stage.settle()


async def denied(stage: Stage) -> None:
    """A device that the table of permitted devices leaves out."""
    await stage.create(VMI, vmi("denied", "nvidia.com/NOPE"))
    await stage.settle(5.0)


async def bare(stage: Stage) -> None:
    """A bare VMI whose pod finds its card taken, left alone, then deleted."""
    stage.kubevirt.kubelet.plugin = lambda _: Refusal(f"OutOf{CARD}", "taken")
    await stage.create(VMI, vmi("bare", CARD))
    pod = await stage.pod("bare")
    await stage.settle()
    await stage.bind(pod, "node-2")
    await stage.phase("bare", "Failed")
    await stage.settle()
    await stage.delete(VMI, "bare")
    await stage.until(lambda: stage.find(VMI, "bare") is None)


async def vm6(stage: Stage) -> None:
    """A pod refused by quota until the quota grows."""
    stage.refuse("quota", "pods", "exceeded quota: q")
    await stage.create(VM, vm("vm6", CARD))
    await stage.settle(20.0)
    stage.api.unadmit("quota")
    pod = await stage.pod("vm6")
    await stage.settle()
    await stage.bind(pod, NOWHERE)
    await stage.settle()


async def vm7(stage: Stage) -> None:
    """A volume that waits for its first consumer: a temporary pod, then the launcher."""
    stage.gate_pods()
    made = await stage.create(DATA_VOLUME, {"metadata": {"name": "dv1"}, "spec": {}})
    await stage.change(DATA_VOLUME, "dv1", {"status": {"phase": "WaitForFirstConsumer"}}, subresource="status")
    owner = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": "dv1", "controller": True}
    await stage.create(
        PVC, {"metadata": {"name": "dv1", "ownerReferences": [owner | {"uid": meta(made)["uid"]}]}, "spec": {}}
    )
    await stage.create(VM, vm("vm7", CARD, volumes=[{"name": "root", "dataVolume": {"name": "dv1"}}]))
    temporary = await stage.pod("vm7")
    await stage.settle()
    await stage.ungate(temporary)
    await stage.bind(temporary, "node-2")
    await stage.until(lambda: stage.pods("vm7")[0]["status"]["phase"] == "Succeeded")
    await stage.change(PVC, "dv1", {"status": {"phase": "Bound"}}, subresource="status")
    await stage.settle()
    await stage.change(DATA_VOLUME, "dv1", {"status": {"phase": "ImportInProgress"}}, subresource="status")
    await stage.until(lambda: not stage.pods("vm7"))
    await stage.settle()
    await stage.change(DATA_VOLUME, "dv1", {"status": {"phase": "Succeeded"}}, subresource="status")
    await stage.pod("vm7")
    await stage.settle()


async def deny8(stage: Stage) -> None:
    """A VMI refused for ever, and the VM deleted."""
    stage.refuse("deny", "virtualmachineinstances.kubevirt.io", "no GPU capacity")
    await stage.create(VM, vm("deny8", CARD))
    await stage.settle(8.0)
    await stage.delete(VM, "deny8")
    await stage.until(lambda: stage.find(VM, "deny8") is None)


async def mig5(stage: Stage) -> None:
    """A running VMI and its migration's target, bound and not yet running."""
    await stage.create(VMI, vmi("mig5"))
    await stage.run("mig5", "node-1")
    await stage.create(VMIM, {"metadata": {"name": "m5"}, "spec": {"vmiName": "mig5"}})
    source = stage.pods("mig5")[0]
    target = await stage.pod("mig5", without=[meta(source)["name"]])
    await stage.settle()
    await stage.bind(target, NOWHERE)
    await stage.settle()


SCENES: dict[str, Scene] = {
    "vm1-": vm1,
    "vm2-": vm2,
    "vm3-": vm3,
    "vm4-": vm4,
    "denied-": denied,
    "bare-": bare,
    "vm6-": vm6,
    "vm7-": vm7,
    "deny8-": deny8,
    "mig5-": mig5,
}
"""By the first letters of the trace's file name."""


async def play(scene: Scene) -> list[tuple[str, Obj]]:
    """Play a scene on the model; return everything written."""
    async with staged() as stage:
        await scene(stage)
        return stage.written
