"""Reasons: conditions that tell since when, and one event for each change (D5, C59)."""

from datetime import timedelta

from msgspec.structs import replace

from schemas.kinds import EVENT
from schemas.reasons import Release, Wait
from tests.projector.scene import Scene, stamp, success


async def test_a_waiting_set_says_why(scene: Scene) -> None:
    """D5: the claims carry the reason as a condition, and one Warning event on the VMI says it too."""
    vmi = await scene.vmi()

    outcomes = await scene.project(scene.waiting(vmi))

    status, (event,) = (await scene.claim(vmi))["status"], await scene.events()
    assert (status["phase"], status.get("nodeName"), status["attachedTo"]["uid"]) == ("Pending", None, vmi.uid)
    assert [(one["status"], one["reason"], one["message"]) for one in status["conditions"]] == [
        ("False", "NoRoom", "no node has room")
    ]
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "NoRoom", "no node has room")
    assert (event["regarding"]["kind"], event["regarding"]["uid"]) == ("VirtualMachineInstance", vmi.uid)
    assert success(outcomes)


async def test_each_change_of_reason_is_one_event(scene: Scene) -> None:
    """C59: A, B and A again are three events; the same decision again, by a new projector, is none."""
    vmi = await scene.vmi()
    told = [
        scene.waiting(vmi, Wait.NO_ROOM, at=10),
        scene.waiting(vmi, Wait.VOLUME_ELSEWHERE, at=11),
        scene.waiting(vmi, Wait.NO_ROOM, at=12),
    ]
    for one in (told[0], told[0], told[1], told[2], told[2]):
        await scene.project(one)
    claim = await scene.claim(vmi)

    await scene.project(told[2])

    assert sorted(event["reason"] for event in await scene.events()) == ["NoRoom", "NoRoom", "VolumeOnOtherNode"]
    assert await scene.claim(vmi) == claim


async def test_a_reason_already_told_is_not_told_with_the_next_decision(scene: Scene) -> None:
    """C59: claims said again while a set waits make no second event, also when the first has expired."""
    vmi = await scene.vmi()
    gpu_set = scene.waiting(vmi)
    await scene.project(gpu_set)
    (event,) = await scene.events()
    await scene.kube.delete(EVENT, scene.namespace, event["metadata"]["name"])

    await scene.project(replace(gpu_set, confirmed=stamp(10), stamp=stamp(11)))

    assert await scene.events() == []
    assert (await scene.claim(vmi))["status"]["stamp"]["sequence"] == 11


async def test_a_condition_tells_since_when(scene: Scene) -> None:
    """The condition's time is that of the last change from waiting to placed or back, not of the reason."""
    vmi, pod = await scene.vmi(), await scene.launcher()
    times = []
    for gpu_set in (
        scene.waiting(vmi, Wait.NO_ROOM, at=10),
        scene.waiting(vmi, Wait.NODE_NOT_READY, at=11),
        scene.placed(vmi, pod, at=12),
        replace(scene.placed(vmi, pod, at=12), stamp=stamp(13), node="", released=Release.LAUNCHER_ENDED),
    ):
        scene.clock += timedelta(minutes=1)
        await scene.project(gpu_set)
        (condition,) = (await scene.claim(vmi))["status"]["conditions"]
        times.append((condition["reason"], condition["lastTransitionTime"][14:16]))

    assert times == [("NoRoom", "01"), ("NodeNotReady", "01"), ("Placed", "03"), ("LauncherEnded", "04")]
