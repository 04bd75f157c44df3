"""Launchers that were given up: deleted once, only while they stand as was decided, and their VMI is told (D7, C14)."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from binder.state import GivenUp, GpuSet
from deploy.world.faults import Call, Fault, FaultyKube
from schemas.decisions import VmiId
from schemas.kinds import POD
from schemas.reasons import GiveUp, Release
from tests.projector.scene import NODE, Obj, Scene, stamp, success

MESSAGE = "node n refused the launcher (OutOfcpu)"
NAME = "virt-launcher-a"


def given_up(scene: Scene, vmi: VmiId, pod: Obj, cause: GiveUp = GiveUp.REFUSED) -> GpuSet:
    """A set whose launcher was given up: what failed on its node has no booking any more."""
    told = GivenUp(pod["metadata"]["name"], pod["metadata"]["uid"], cause, MESSAGE, stamp(10))
    if cause is GiveUp.REFUSED:
        claims = scene.claims(vmi, [1])
        return GpuSet(vmi, stamp(10, 1), 0, claims, released=Release.NODE_REFUSED, given_up=told)
    return replace(scene.placed(vmi, pod, units=[1]), pinned=True, given_up=told)


async def a_pod(scene: Scene, node: str = "", phase: str = "", **metadata: object) -> Obj:
    """A launcher without gates: on a node or on none, in a phase."""
    spec: Obj = {"containers": [{"name": "compute", "image": "none"}], "schedulerName": "nobody"}
    if node:
        spec["nodeName"] = node
    pod = await scene.create(POD, {"metadata": {"name": NAME} | metadata, "spec": spec})
    if phase:
        await scene.patch(POD, NAME, {"status": {"phase": phase, "reason": "OutOfcpu"}}, "status")
    return pod


class Door:
    """Counts deletions of pods; `meanwhile` happens between the look at the first one and its deletion."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        self.deleted = 0
        self._meanwhile = meanwhile

    async def plan(self, call: Call) -> Fault | None:
        """Nothing fails here."""
        if call.verb == "delete" and call.resource == POD:
            self.deleted += 1
            if self._meanwhile is not None and self.deleted == 1:
                await self._meanwhile()
        return None


@pytest.mark.parametrize(
    ("cause", "node", "phase"),
    [(GiveUp.REFUSED, NODE, "Failed"), (GiveUp.NOT_SCHEDULED, "", "Pending")],
    ids=["refused", "not scheduled"],
)
async def test_a_launcher_that_was_given_up_goes(scene: Scene, cause: GiveUp, node: str, phase: str) -> None:
    """D7, C14, C17: it is deleted once, one Warning event tells why; said again, there is nothing left to do."""
    vmi, pod = await scene.vmi(), await a_pod(scene, node, phase)
    door = Door()
    decided = given_up(scene, vmi, pod, cause)

    first = await scene.project(decided, kube=FaultyKube(scene.kube, door.plan))
    tries = door.deleted
    again = await scene.project(decided, kube=FaultyKube(scene.kube, door.plan))

    assert success(first)
    assert success(again)
    assert await scene.find(POD, NAME) is None
    # A server that changes the pod meanwhile has it looked at again; what is gone is deleted no more.
    assert door.deleted == tries
    (event,) = await scene.events()
    assert (event["reason"], event["note"], event["type"]) == (cause.value, MESSAGE, "Warning")
    assert event["regarding"]["uid"] == vmi.uid


@pytest.mark.parametrize(
    ("cause", "node", "phase"),
    [
        (GiveUp.REFUSED, NODE, "Running"),
        (GiveUp.REFUSED, "", "Pending"),
        (GiveUp.NOT_SCHEDULED, NODE, "Pending"),
        (GiveUp.NOT_SCHEDULED, NODE, "Failed"),
    ],
)
async def test_a_pod_that_stands_otherwise_is_left_alone(scene: Scene, cause: GiveUp, node: str, phase: str) -> None:
    """D7: who runs after all, or was given a node by kube-scheduler meanwhile, is not deleted."""
    vmi, pod = await scene.vmi(), await a_pod(scene, node, phase)

    outcomes = await scene.project(given_up(scene, vmi, pod, cause))

    assert success(outcomes)
    assert (await scene.get(POD, NAME))["metadata"].get("deletionTimestamp") is None


async def test_another_pod_of_the_name_is_left_alone(scene: Scene) -> None:
    """D7: the uid says which pod was given up."""
    vmi, pod = await scene.vmi(), await a_pod(scene, NODE, "Failed")
    other = pod | {"metadata": pod["metadata"] | {"uid": "another"}}

    assert success(await scene.project(given_up(scene, vmi, other)))
    assert await scene.find(POD, NAME) is not None


async def test_a_pod_that_goes_already_is_not_deleted_again(scene: Scene) -> None:
    """C14: one deletion per try, also where KubeVirt was first and a finalizer holds the pod."""
    vmi, pod = await scene.vmi(), await a_pod(scene, NODE, "Failed", finalizers=["example.com/held"])
    await scene.kube.delete(POD, scene.namespace, NAME)
    door = Door()

    assert success(await scene.project(given_up(scene, vmi, pod), kube=FaultyKube(scene.kube, door.plan)))
    assert door.deleted == 0
    await scene.patch(POD, NAME, {"metadata": {"finalizers": None}})


async def test_a_change_between_look_and_deletion_is_looked_at(scene: Scene) -> None:
    """D7, T21: the deletion names the version it looked at, so that a pod which starts meanwhile is spared."""
    vmi, pod = await scene.vmi(), await a_pod(scene, "", "Pending")

    async def ended() -> None:
        await scene.patch(POD, NAME, {"status": {"phase": "Succeeded"}}, "status")

    door = Door(ended)
    decided = given_up(scene, vmi, pod, GiveUp.NOT_SCHEDULED)

    assert success(await scene.project(decided, kube=FaultyKube(scene.kube, door.plan)))
    assert door.deleted == 1
    assert await scene.find(POD, NAME) is not None
