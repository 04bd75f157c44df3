"""The kubelets: pods run where their devices are, fail where they are not, and end."""

import pytest

from deploy.world.kubelet import UNEXPECTED, effective_requests
from deploy.world.manifests import Obj
from deploy.world.virt_names import SECRET
from schemas.kinds import POD, VMI
from tests.world.stage import CARD, SLICE, staged, vmi

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


async def test_the_second_pod_for_one_card_fails_out_of_it() -> None:
    """Two pods bound to one card at once: one runs, the other fails OutOf<resource> and its VMI with it."""
    async with staged() as stage:
        for name in ("a", "b"):
            await stage.create(VMI, vmi(name, CARD))
        pods = [await stage.pod(name) for name in ("a", "b")]
        for pod in pods:
            await stage.bind(pod, "node-1")
        await stage.until(
            lambda: {(stage.find(VMI, n) or {})["status"]["phase"] for n in "ab"} == {"Running", "Failed"}
        )
        failed = [pod for pod in stage.all(POD) if pod["status"]["phase"] == "Failed"]
        assert [pod["status"]["reason"] for pod in failed] == [f"OutOf{CARD}"]


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
