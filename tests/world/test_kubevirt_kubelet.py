"""The kubelets: pods run where their devices are, fail where they are not, and end."""

import pytest

from deploy.world.kubelet import UNEXPECTED, effective_requests
from deploy.world.manifests import Obj
from deploy.world.virt_names import SECRET
from schemas.kinds import POD, VMI
from tests.world.stage import CARD, ROOMY, SLICE, Stage, staged, vmi

pytestmark = pytest.mark.looptime


def container(name: str, cpu: str, **extra: str) -> Obj:
    """A container that requests this much cpu."""
    return {"name": name, "resources": {"requests": {"cpu": cpu}}} | extra


def test_a_pod_takes_the_larger_of_running_and_starting() -> None:
    """C33: containers and sidecars together, or the dearest init step with the sidecars before it, and overhead."""
    spec = {
        "containers": [container("a", "1"), container("b", "500m")],
        "initContainers": [
            container("early", "1700m"),
            container("sidecar", "300m", restartPolicy="Always"),
            container("late", "1600m"),
        ],
        "overhead": {"cpu": "100m"},
    }
    assert effective_requests({"spec": spec})["cpu"] == 1900 + 100


async def refused(stage: Stage, *resources: str) -> list[str]:
    """Bind one VMI's launcher per resource to a node at once; return why those failed that did."""
    names = [f"vm-{number}" for number in range(len(resources))]
    for name, resource in zip(names, resources, strict=True):
        await stage.create(VMI, vmi(name, resource))
    for pod in [await stage.pod(name) for name in names]:
        await stage.bind(pod, "node-1")
    await stage.until(
        lambda: all((stage.find(VMI, name) or {})["status"]["phase"] in {"Running", "Failed"} for name in names)
    )
    return [pod["status"]["reason"] for pod in stage.all(POD) if pod["status"]["phase"] == "Failed"]


async def test_the_second_pod_for_one_card_finds_it_allocated() -> None:
    """Two pods bound to one card at once: one runs, the other fails in the plugin's allocation."""
    async with staged() as stage:
        assert await refused(stage, CARD, CARD) == ["UnexpectedAdmissionError"]


async def test_a_node_without_the_device_is_out_of_it() -> None:
    """Where no plugin has registered a device, the kubelet's own check of the node's resources says so."""
    async with staged() as stage:
        stage.report("node-1", allocatable=ROOMY | {CARD: "0"})
        assert await refused(stage, CARD) == [f"OutOf{CARD}"]


async def test_a_silent_kubelet_neither_starts_nor_stops_a_pod() -> None:
    """A node that is Unknown keeps what stands there as it is, and goes on with it once it is back."""
    async with staged() as stage:
        await stage.create(VMI, vmi("a", CARD))
        await stage.run("a", "node-1")
        await stage.create(VMI, vmi("b", SLICE))
        pod = await stage.pod("b")
        stage.report("node-1", conditions=[{"type": "Ready", "status": "Unknown"}])
        await stage.bind(pod, "node-1")
        await stage.delete(POD, stage.pods("a")[0]["metadata"]["name"])
        await stage.settle(60.0)
        assert [one["status"]["phase"] for one in stage.pods("a") + stage.pods("b")] == ["Running", "Pending"]
        stage.report("node-1", conditions=[{"type": "Ready", "status": "True"}])
        await stage.phase("b", "Running")
        await stage.until(lambda: not stage.pods("a"))


async def test_devices_are_free_once_their_pod_has_ended() -> None:
    """A deleted launcher gives its card back to the next one."""
    async with staged() as stage:
        await stage.create(VMI, vmi("a", CARD))
        await stage.run("a", "node-1")
        await stage.delete(VMI, "a")
        await stage.until(lambda: stage.find(VMI, "a") is None)
        await stage.create(VMI, vmi("b", CARD))
        await stage.run("b", "node-1")


async def test_a_device_plugin_can_refuse_what_seemed_to_fit() -> None:
    """UnexpectedAdmissionError: the pod fails on its node though the node has room."""
    async with staged(plugin=lambda pod: UNEXPECTED if "launcher-a" in pod["metadata"]["name"] else None) as stage:
        for name in ("a", "b"):
            await stage.create(VMI, vmi(name, SLICE))
            await stage.bind(await stage.pod(name), "node-1")
        await stage.phase("a", "Failed")
        await stage.phase("b", "Running")
        assert [pod["status"]["reason"] for pod in stage.pods("a")] == ["UnexpectedAdmissionError"]


async def test_a_pod_waits_for_its_secret() -> None:
    """A missing Secret that is not optional keeps the pod Pending and the VMI Scheduling."""
    volumes: list[Obj] = [
        {"name": "lic", "secret": {"secretName": "licence"}},
        {"name": "o", "secret": {"secretName": "no"}},
    ]
    volumes[1]["secret"]["optional"] = True
    async with staged() as stage:
        await stage.create(VMI, vmi("a", SLICE, volumes=volumes))
        await stage.bind(await stage.pod("a"), "node-1")
        await stage.settle(60.0)
        assert (await stage.phase("a", "Scheduling"))["status"]["phase"] == "Scheduling"
        await stage.create(SECRET, {"metadata": {"name": "licence"}})
        await stage.phase("a", "Running")


async def test_a_deleted_pod_stays_for_as_long_as_it_takes_to_stop() -> None:
    """A bound pod keeps its units until its kubelet lets it go; an unbound one goes at once."""
    async with staged(stop_s=25.0) as stage:
        await stage.create(VMI, vmi("a", CARD))
        pod = await stage.run("a", "node-1")
        await stage.delete(POD, pod["metadata"]["name"])
        await stage.settle(20.0)
        assert (stage.find(POD, pod["metadata"]["name"]) or {})["metadata"]["deletionTimestamp"]
        await stage.settle(6.0)
        assert stage.find(POD, pod["metadata"]["name"]) is None
