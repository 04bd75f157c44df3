"""Held claims: guarded, shown where they are and who holds them; alone, or with the set of their VM (F1, D5, T22)."""

import pytest
from msgspec.structs import replace

from schemas.kinds import GPU_CLAIM, POD
from schemas.names import CLAIM_FINALIZER, GATE
from schemas.objects import Stamp
from schemas.reasons import Release, Unkept, Wait
from tests.projector.held import FOREIGN, finalizers, of_set, reported, status
from tests.projector.scene import NODE, RESOURCE, Obj, Scene, gates, stamp, success


async def test_an_order_is_guarded_and_shown(scene: Scene) -> None:
    """F1, T24: the claim carries our finalizer beside others', and tells node, resource and stamp; nobody holds it."""
    claim = await scene.order(finalizers=[FOREIGN])

    outcomes = await scene.project(scene.hold(claim, node=NODE))

    assert reported(outcomes)
    assert await finalizers(scene) == [FOREIGN, CLAIM_FINALIZER]
    assert await status(scene) == {
        "phase": "Bound",
        "nodeName": NODE,
        "resourceName": RESOURCE,
        "stamp": {"generation": 1, "sequence": 10, "entry": 0},
        "conditions": [
            {
                "type": "Placed",
                "status": "True",
                "reason": "Placed",
                "message": f"all units are on node {NODE}",
                "lastTransitionTime": "2026-05-03T10:00:00Z",
                "observedGeneration": 1,
            }
        ],
    }
    await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("fields", "phase", "reason", "message"),
    [
        ({"reason": Wait.NO_ROOM, "message": "no room"}, "Pending", "NoRoom", "no room"),
        ({"lost": Unkept.NODE_GONE, "message": "node n1 is gone"}, "Lost", "NodeGone", "node n1 is gone"),
        (
            {"lost": Unkept.NODE_GONE, "reason": Wait.NO_ROOM, "message": "no room"},
            "Lost",
            "NodeGone",
            "the node can't keep these units any more, and no other takes them: no room (NoRoom)",
        ),
    ],
    ids=["waits", "lost", "lost and told why it stays so"],
)
async def test_a_claim_without_a_node_says_why(
    scene: Scene, fields: Obj, phase: str, reason: str, message: str
) -> None:
    """D5, C59: the condition says it, and one Warning event on the claim, as no VM is there to be told."""
    claim = await scene.order()
    holding = scene.hold(claim, told=stamp(10), **fields)

    first = await scene.project(holding)
    again = await scene.project(replace(holding, stamp=stamp(11)))

    shown, (event,) = await status(scene), await scene.events()
    assert reported(first)
    assert reported(again)
    assert (shown["phase"], shown.get("nodeName"), shown["resourceName"]) == (phase, None, RESOURCE)
    (condition,) = shown["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", reason, message)
    assert (event["type"], event["reason"], event["note"]) == ("Warning", reason, message)
    assert (event["regarding"]["kind"], event["regarding"]["uid"]) == ("GPUClaim", claim.uid)
    await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})


async def test_a_reason_that_has_landed_is_not_told_again(model: Scene) -> None:
    """C59: what is decided next tells nothing anew."""
    claim = await model.order()
    told = {"reason": Wait.NO_ROOM, "message": "no room", "told": stamp(10)}

    await model.project(model.hold(claim, at=11, confirmed=stamp(10), **told))

    assert await model.events() == []


async def test_the_claim_of_a_set_is_shown_before_the_pin(scene: Scene) -> None:
    """T22: who holds it and where, guarded first; the launcher is pinned, and the set alone is reported."""
    vmi, pod, claim = await scene.vmi(), await scene.launcher(), await scene.order()
    gpu_set, holding = of_set(scene, vmi, pod, claim)

    outcomes = await scene.project(gpu_set, holding)

    shown = await status(scene)
    assert success(outcomes)
    assert (shown["phase"], shown["nodeName"], shown["attachedTo"]) == (
        "Bound",
        NODE,
        {"name": vmi.name, "uid": vmi.uid},
    )
    assert await finalizers(scene) == [CLAIM_FINALIZER]
    assert gates(await scene.get(POD, "virt-launcher-a")) == []
    await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})


async def test_a_stale_writer_pins_nothing_for_a_held_claim(scene: Scene) -> None:
    """T22, C20: the claim shows a newer decision, so that a writer of the past stops before its pin."""
    vmi, pod, claim = await scene.vmi(), await scene.launcher(), await scene.order()
    await scene.project(scene.hold(claim, at=20, node="elsewhere"))
    before = await scene.get(GPU_CLAIM, "mine")
    gpu_set, holding = of_set(scene, vmi, pod, claim, at=19)

    outcomes = await scene.project(gpu_set, holding)

    assert outcomes == []
    assert await scene.get(GPU_CLAIM, "mine") == before
    assert gates(await scene.get(POD, "virt-launcher-a")) == [GATE]
    await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})


async def test_a_claim_stays_where_it_is_while_its_vm_waits(model: Scene) -> None:
    """D5: its units are on their node, its VM waits for something else, and the claim tells both."""
    vmi, claim = await model.vmi(), await model.order()
    waiting = replace(model.waiting(vmi, units=[2]), held=(claim,))

    await model.project(waiting, model.hold(claim, node=NODE, attached=vmi))

    shown, template = await status(model), (await model.claim(vmi))["status"]
    (condition,) = shown["conditions"]
    assert (shown["phase"], shown["nodeName"], condition["status"]) == ("Bound", NODE, "True")
    assert condition["reason"] == "NoRoom"
    assert condition["message"] == f"all units are on node {NODE}; VM vm-a waits: no node has room"
    assert (template["phase"], template["conditions"][0]["reason"]) == ("Pending", "NoRoom")
    (event,) = await model.events()
    assert event["regarding"]["kind"] == "VirtualMachineInstance"


async def test_a_pending_claim_in_a_waiting_set_tells_the_set_s_reason(model: Scene) -> None:
    """D5: an order whose VM came first waits with that VM, under one reason and one event."""
    vmi, claim = await model.vmi(), await model.order()
    waiting = replace(model.waiting(vmi, units=[]), held=(claim,))

    await model.project(waiting, model.hold(claim, attached=vmi))

    shown = await status(model)
    assert (shown["phase"], shown["attachedTo"]["uid"]) == ("Pending", vmi.uid)
    assert [(one["status"], one["reason"]) for one in shown["conditions"]] == [("False", "NoRoom")]
    assert len(await model.events()) == 1


async def test_a_claim_is_let_go_with_its_vm_and_keeps_its_node(scene: Scene) -> None:
    """C30: the set is closed, the claim stands on its node and nobody holds it; the lane that had it is left."""
    vmi, pod, claim = await scene.vmi(), await scene.launcher(), await scene.order()
    gpu_set, holding = of_set(scene, vmi, pod, claim)
    async with scene.projector() as projector:
        scene.decide(projector, gpu_set, holding)
        await projector.idle()
        del scene.state.sets[vmi.uid]
        scene.state.holdings[f"{scene.namespace}/mine"] = scene.hold(claim, at=12, node=NODE)
        projector.take(scene.state, [vmi.uid], [])
        await projector.idle()

    shown = await status(scene)
    assert (shown["phase"], shown["nodeName"], shown.get("attachedTo")) == ("Bound", NODE, None)
    assert shown["stamp"]["sequence"] == 12
    assert [(one.action, one.stamp.sequence) for one in await scene.outcomes()] == [("set", 10), ("held", 12)]
    await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})


async def test_a_claim_that_a_set_no_longer_has_is_written_alone(model: Scene) -> None:
    """A set that is opened anew with other claims leaves one behind: its status tells that nobody holds it."""
    vmi, pod, claim = await model.vmi(), await model.launcher(), await model.order()
    gpu_set, holding = of_set(model, vmi, pod, claim)
    async with model.projector() as projector:
        model.decide(projector, gpu_set, holding)
        await projector.idle()
        model.state.sets[vmi.uid] = replace(model.placed(vmi, pod, at=11, units=[1]), held=())
        model.state.holdings["tenant-a/mine"] = model.hold(claim, at=11, node=NODE)
        projector.take(model.state, [vmi.uid], [])
        await projector.idle()

    assert (await status(model)).get("attachedTo") is None


async def test_a_decision_on_an_attached_claim_alone_is_written_with_its_set(model: Scene) -> None:
    """D9: a waiting VM's claim that moved is shown by its set's lane, and reported for itself beside the set."""
    vmi, claim = await model.vmi(), await model.order()
    waiting = replace(model.waiting(vmi, units=[]), held=(claim,), confirmed=stamp(10))
    model.state.sets[vmi.uid] = waiting

    outcomes = await model.project(model.hold(claim, at=15, node="n2", attached=vmi))

    assert (await status(model))["nodeName"] == "n2"
    assert [(one.action, one.stamp.sequence) for one in outcomes] == [("set", 10), ("held", 15)]


async def test_what_was_decided_before_a_start_is_written(model: Scene) -> None:
    """T22: held claims whose newest decision is not known to have landed, alone and in sets, and no others."""
    vmi, pod = await model.vmi(), await model.launcher()
    alone, done, mine = await model.order("alone"), await model.order("done"), await model.order()
    gpu_set, holding = of_set(model, vmi, pod, mine)
    landed = replace(gpu_set, confirmed=stamp(10), pinned=True)
    holdings = [
        model.hold(alone, node=NODE),
        model.hold(done, node=NODE, confirmed=stamp(10)),
        replace(holding, stamp=stamp(12), node="n2"),
    ]
    model.state.sets[vmi.uid] = landed
    model.state.holdings = {f"tenant-a/{one.claim.name}": one for one in holdings}
    async with model.projector() as projector:
        projector.begin(model.state)
        await projector.idle()

    shown = {name: (await status(model, name)).get("nodeName") for name in ("alone", "done", "mine")}
    assert shown == {"alone": NODE, "done": None, "mine": "n2"}
    model.state.holdings["tenant-a/mine"] = replace(holding, confirmed=stamp(9))
    model.state.holdings["tenant-a/alone"] = model.hold(alone, node=NODE, confirmed=stamp(10))
    before = await model.outcomes()
    async with model.projector() as projector:
        projector.begin(model.state)
        await projector.idle()
    assert await model.outcomes() == before


async def test_a_released_set_s_claim_stays_bound(model: Scene) -> None:
    """C30: the booking ended with the launcher; the claim keeps its node until the VMI is gone and after."""
    vmi, claim = await model.vmi(), await model.order()
    released = replace(model.waiting(vmi, units=[1]), reason=None, message="", told=Stamp(), held=(claim,))

    await model.project(replace(released, released=Release.LAUNCHER_ENDED), model.hold(claim, node=NODE, attached=vmi))

    shown, template = await status(model), (await model.claim(vmi))["status"]
    assert (shown["phase"], shown["conditions"][0]["reason"], shown["attachedTo"]["uid"]) == (
        "Bound",
        "Placed",
        vmi.uid,
    )
    assert template["phase"] == "Pending"
