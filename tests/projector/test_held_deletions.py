"""Held claims that are deleted: they wait for us, show that they are free, and go; others' finalizers stay (F1)."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from binder.kube import PatchKind
from deploy.world.faults import Call, Fault, FaultyKube
from schemas.kinds import GPU_CLAIM, POD
from schemas.names import CLAIM_FINALIZER
from tests.projector.held import FOREIGN, finalizers, of_set, reported, status
from tests.projector.scene import NODE, Scene, gates


async def test_a_freed_claim_goes(scene: Scene) -> None:
    """F1: deleted, it waits for us; freed, it shows no node any more and our finalizer goes, and it with that."""
    claim = await scene.order()
    await scene.project(scene.hold(claim, node=NODE))
    await scene.kube.delete(GPU_CLAIM, scene.namespace, "mine")
    assert (await status(scene))["phase"] == "Bound"

    outcomes = await scene.project(scene.hold(claim, at=11, freed=True))

    assert reported(outcomes)
    assert await scene.find(GPU_CLAIM, "mine") is None


async def test_others_finalizers_stay(scene: Scene) -> None:
    """F1: a freed claim that somebody else still holds shows that its units are free."""
    claim = await scene.order(finalizers=[FOREIGN])
    await scene.project(scene.hold(claim, node=NODE))
    await scene.kube.delete(GPU_CLAIM, scene.namespace, "mine")

    await scene.project(scene.hold(claim, at=11, freed=True))

    shown = await status(scene)
    assert await finalizers(scene) == [FOREIGN]
    assert (shown["phase"], shown.get("nodeName"), shown["conditions"][0]["reason"]) == (
        "Pending",
        None,
        "BeingDeleted",
    )
    await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})


async def test_a_claim_made_again_is_another_one(scene: Scene) -> None:
    """T21: what was decided on a claim that is gone says nothing of one of the same name."""
    claim = await scene.order()
    old = replace(claim, uid="00000000-0000-4000-8000-00000000dead")

    outcomes = await scene.project(scene.hold(old, node=NODE))
    freed = await scene.project(scene.hold(old, at=11, freed=True))

    assert [reported(outcomes), reported(freed)] == [True, True]
    assert await finalizers(scene) == []
    assert "stamp" not in await status(scene)


async def test_a_launcher_is_pinned_though_its_claim_is_gone(scene: Scene) -> None:
    """D3, T22: a claim that lost its finalizers to somebody else and went does not leave its VM behind the gate."""
    vmi, pod, claim = await scene.vmi(), await scene.launcher(), await scene.order()
    gpu_set, holding = of_set(scene, vmi, pod, claim)
    await scene.kube.delete(GPU_CLAIM, scene.namespace, "mine")

    outcomes = await scene.project(gpu_set, holding)

    assert [(one.action, one.code) for one in outcomes] == [("set", 0)]
    assert gates(await scene.get(POD, pod["metadata"]["name"])) == []


async def test_a_claim_not_being_deleted_keeps_its_finalizer(model: Scene) -> None:
    """T21: what the decision relied on is checked again: a claim that lives on is not let go."""
    claim = await model.order()
    await model.project(model.hold(claim, node=NODE))

    await model.project(model.hold(claim, at=11, freed=True))

    assert await finalizers(model) == [CLAIM_FINALIZER]


async def test_a_stale_writer_frees_nothing(model: Scene) -> None:
    """T22: the claim shows a newer decision: whoever is behind the log takes no finalizer off."""
    claim = await model.order()
    await model.project(model.hold(claim, at=20, node=NODE))
    await model.kube.delete(GPU_CLAIM, "tenant-a", "mine")

    outcomes = await model.project(model.hold(claim, at=19, freed=True))

    assert outcomes == []
    assert await finalizers(model) == [CLAIM_FINALIZER]


async def test_a_claim_on_its_way_out_takes_no_finalizer(scene: Scene) -> None:
    """The API server lets none be added then: the claim is shown all the same, and nothing is reported as refused."""
    claim = await scene.order(finalizers=[FOREIGN])
    await scene.kube.delete(GPU_CLAIM, scene.namespace, "mine")

    outcomes = await scene.project(scene.hold(claim, node=NODE))

    assert reported(outcomes)
    assert (await finalizers(scene), (await status(scene))["phase"]) == ([FOREIGN], "Bound")
    await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})


def once(kube: Scene, act: Callable[[], Awaitable[object]]) -> FaultyKube:
    """An API server on which `act` happens just before the first patch of a claim."""
    done = False

    async def plan(call: Call) -> Fault | None:
        nonlocal done
        if call.verb == "patch" and call.resource == GPU_CLAIM and not done:
            done = True
            await act()
        return None

    return FaultyKube(kube.kube, plan)


@pytest.mark.parametrize("deleted", [False, True], ids=["another finalizer", "deleted"])
async def test_what_happens_between_look_and_patch_is_seen(scene: Scene, *, deleted: bool) -> None:
    """T21: the patch tests what was read; a finalizer that came meanwhile stays, a deletion is no refusal."""
    claim = await scene.order(finalizers=[FOREIGN])

    async def act() -> None:
        if deleted:
            await scene.kube.delete(GPU_CLAIM, scene.namespace, "mine")
        else:
            body = b'[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/late"}]'
            await scene.kube.patch(GPU_CLAIM, scene.namespace, "mine", body, kind=PatchKind.JSON)

    outcomes = await scene.project(scene.hold(claim, node=NODE), kube=once(scene, act))

    assert reported(outcomes)
    kept = [FOREIGN] if deleted else [FOREIGN, "example.org/late", CLAIM_FINALIZER]
    assert await finalizers(scene) == kept
    await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})
