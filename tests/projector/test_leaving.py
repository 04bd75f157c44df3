"""VMIs that were given up: deleted once, only while no guest runs in them, and their owner is told why (D8, T21)."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from binder.state import GpuSet, Leaving
from deploy.world.faults import Call, Fault, FaultyKube
from schemas.decisions import VmiId
from schemas.kinds import VMI
from schemas.reasons import Unkept
from tests.projector.scene import NODE, Scene, stamp, success

MESSAGE = f"node {NODE} is gone; the VM is started again on another"


async def leaving(scene: Scene, vmi: VmiId, at: int = 10) -> GpuSet:
    """A set that is pinned to a node which can't keep it."""
    pod = await scene.launcher(gates=(), name=f"virt-launcher-{at}")
    told = Leaving(NODE, Unkept.NODE_GONE, MESSAGE, stamp(at), 0)
    return replace(scene.placed(vmi, pod, at=at, units=[1]), pinned=True, leaving=told)


async def show(scene: Scene, phase: str) -> None:
    """Let the VMI be in a phase."""
    await scene.patch(VMI, "vm-a", {"status": {"phase": phase}})


class Door:
    """Counts deletions of VMIs; `meanwhile` happens between the look at the first one and its deletion."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        self.deleted = 0
        self._meanwhile = meanwhile

    async def plan(self, call: Call) -> Fault | None:
        """Nothing fails here."""
        if call.verb == "delete" and call.resource == VMI:
            self.deleted += 1
            if self._meanwhile is not None and self.deleted == 1:
                await self._meanwhile()
        return None


@pytest.mark.parametrize("phase", ["", "Pending", "Scheduling", "Scheduled"])
async def test_a_vmi_that_does_not_run_goes(scene: Scene, phase: str) -> None:
    """D8: it is deleted, and one Warning event tells why; said again, there is nothing left to do."""
    vmi = await scene.vmi()
    if phase:
        await show(scene, phase)
    gpu_set, door = await leaving(scene, vmi), Door()

    first = await scene.project(gpu_set, kube=FaultyKube(scene.kube, door.plan))
    tries = door.deleted
    again = await scene.project(gpu_set, kube=FaultyKube(scene.kube, door.plan))

    assert (success(first), success(again)) == (True, True)
    assert await scene.find(VMI, "vm-a") is None
    assert door.deleted == tries
    (event,) = await scene.events()
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "NodeGone", MESSAGE)
    assert event["regarding"]["uid"] == vmi.uid


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed", "WaitingForSync"])
async def test_a_vmi_that_runs_or_ended_is_left_alone(scene: Scene, phase: str) -> None:
    """D8: the guest runs by now, or ran: nobody's VM is killed for units that its node may still give."""
    vmi = await scene.vmi()
    await show(scene, phase)

    outcomes = await scene.project(await leaving(scene, vmi))

    assert success(outcomes)
    assert (await scene.get(VMI, "vm-a"))["status"]["phase"] == phase


async def test_a_guest_that_starts_at_the_last_moment_is_left_alone(scene: Scene) -> None:
    """T21: the deletion holds to the version that was looked at; what came between is looked at anew."""
    vmi = await scene.vmi()
    door = Door(lambda: show(scene, "Running"))

    outcomes = await scene.project(await leaving(scene, vmi), kube=FaultyKube(scene.kube, door.plan))

    assert success(outcomes)
    assert door.deleted == 1
    assert (await scene.get(VMI, "vm-a"))["status"]["phase"] == "Running"


async def test_the_next_vmi_of_the_name_is_left_alone(scene: Scene) -> None:
    """N3: by uid: the VM was started again meanwhile."""
    first = await scene.vmi()
    gpu_set = await leaving(scene, first)
    await scene.delete_vmi(first)
    second = await scene.vmi()

    await scene.project(gpu_set)

    assert (await scene.get(VMI, "vm-a"))["metadata"]["uid"] == second.uid


async def test_a_vmi_is_told_to_go_once_for_each_time_it_was_said(model: Scene) -> None:
    """What is known to have landed is not repeated with the next decision; said anew, it is."""
    vmi = await model.vmi()
    gpu_set = await leaving(model, vmi)
    later = replace(gpu_set, confirmed=stamp(10), stamp=stamp(11))

    await model.project(later)
    assert (await model.get(VMI, "vm-a"))["metadata"]["uid"] == vmi.uid

    assert later.leaving is not None
    await model.project(replace(later, stamp=stamp(12), leaving=replace(later.leaving, told=stamp(12))))
    assert await model.find(VMI, "vm-a") is None
