"""Usage records stand against others: edits, deletions, stale writers, forged stamps (F2, C32, T22)."""

import asyncio
from itertools import pairwise

import pytest
from msgspec.structs import replace

from projector.usage_records import BEYOND_S, REMADE_S
from schemas.kinds import WORKLOAD
from schemas.names import MONITOR_LABEL, STAMP_ANNOTATION
from tests.projector.recording import UNITS, order, record, recording, saying, stamped, units
from tests.projector.scene import NODE, Obj, Scene, stamp, time_passes

NODE_NOTE = "cozystack.io/gpu-node"
EDITS: list[Obj] = [
    {"metadata": {"labels": {MONITOR_LABEL: "mine", "workloads.cozystack.io/x": "y"}}},
    {"metadata": {"labels": {"cozystack.io/gpu-class": "cheap"}}},
    {"metadata": {"annotations": {STAMP_ANNOTATION: "0.9.0", NODE_NOTE: "n9"}}},
    {"metadata": {"annotations": {STAMP_ANNOTATION: "soon"}}},
    {"status": {"resources": {UNITS: 9, "cpu": "4"}}},
    {"status": None},
    {"status": {"kind": "redis"}},
]


async def test_what_anybody_edits_is_undone(scene: Scene) -> None:
    """F2, C32: no label gives a record to a monitor; amounts, class and stamp are set right, in the same object."""

    def told(shown: Obj) -> Obj:
        metadata = shown["metadata"]
        return {key: metadata.get(key) for key in ("uid", "labels", "annotations", "ownerReferences")} | {
            "status": shown.get("status")
        }

    await order(scene)
    async with recording(scene):
        made = await record(scene, "mine")
        for patch in EDITS:
            edited = await scene.patch(WORKLOAD, made["metadata"]["name"], patch)
            assert told(edited) != told(made)
            shown = await record(scene, "mine", lambda one: told(one) == told(made))
            assert shown["metadata"]["resourceVersion"] != edited["metadata"]["resourceVersion"]


async def test_a_long_named_claims_record_is_kept_without_its_owner(model: Scene) -> None:
    """N3, C32: a record whose name is cut is known as the claim's own also when its owner was edited away."""
    name = "a" * 250
    await order(model, name)
    async with recording(model):
        made = await record(model, name)
        await model.patch(WORKLOAD, made["metadata"]["name"], {"metadata": {"ownerReferences": None}})
        shown = await record(model, name, lambda one: bool(one["metadata"].get("ownerReferences")))

    assert len(made["metadata"]["name"]) == 253
    assert shown["metadata"]["ownerReferences"] == made["metadata"]["ownerReferences"]


async def test_a_mark_of_others_stays(scene: Scene) -> None:
    """A label that means nothing here does no harm: it starts no quarrel with who put it there."""
    holding = await order(scene)
    async with recording(scene) as keeper:
        made = await record(scene, "mine")
        await scene.patch(WORKLOAD, made["metadata"]["name"], {"metadata": {"labels": {"team": "a"}}})
        keeper.hold(replace(holding, node=NODE, stamp=stamp(11)))
        shown = await record(scene, "mine", saying(3))

    assert shown["metadata"]["labels"]["team"] == "a"


async def test_a_record_that_was_taken_away_comes_back(scene: Scene) -> None:
    """C32: a usage record exists as long as its claim."""
    await order(scene)
    async with recording(scene):
        before = await record(scene, "mine")
        await scene.kube.delete(WORKLOAD, scene.namespace, before["metadata"]["name"])
        shown = await record(scene, "mine", lambda one: one["metadata"]["uid"] != before["metadata"]["uid"])

    assert shown["status"] == before["status"]


@pytest.mark.looptime
async def test_a_controller_that_deletes_records_is_not_raced(model: Scene) -> None:
    """C32: where each Workload without a monitor label is deleted at once, it is made again ever more seldom."""
    await order(model)
    deleted = []

    async def clean() -> None:
        page = await model.kube.list_page(WORKLOAD)
        version = page.resource_version
        async for event in model.kube.watch(WORKLOAD, resource_version=version, timeout_seconds=20_000):
            shown = model._read(event.object)  # noqa: SLF001 - as the scene reads
            if event.type == "ADDED" and MONITOR_LABEL not in shown["metadata"]["labels"]:
                deleted.append(asyncio.get_running_loop().time())
                await model.kube.delete(WORKLOAD, model.namespace, shown["metadata"]["name"])

    cleaning = asyncio.create_task(clean())
    async with recording(model):
        await time_passes(3 * 3600)
    cleaning.cancel()

    first, most = REMADE_S
    gaps = [after - before for before, after in pairwise(deleted)]
    assert gaps[0] == pytest.approx(first, abs=1)
    assert max(gaps) == pytest.approx(most, rel=0.1)
    assert len(deleted) <= 2 * 3600 * 3 / most


async def test_a_stale_writer_leaves_a_newer_record_alone(model: Scene) -> None:
    """T22: who has not folded what a record shows is behind, and does not write; it does when it has."""
    holding = await order(model)
    newer = {"metadata": {"annotations": {STAMP_ANNOTATION: "1.30.0", NODE_NOTE: "n9"}}}
    async with recording(model) as keeper:
        made = await record(model, "mine")
        await model.patch(WORKLOAD, made["metadata"]["name"], newer)
        keeper.hold(replace(holding, node=NODE, stamp=stamp(29)))
        await order(model, "other")
        await record(model, "other")
        behind = await record(model, "mine")
        keeper.hold(replace(holding, node=NODE, stamp=stamp(31)))
        shown = await record(model, "mine", stamped(31))

    assert behind["metadata"]["annotations"][NODE_NOTE] == "n9"
    assert shown["metadata"]["annotations"][NODE_NOTE] == NODE


@pytest.mark.looptime
async def test_a_forged_stamp_does_not_freeze_a_record(model: Scene) -> None:
    """C32: a stamp that no log ever reaches is believed for a while, then the record says the truth again."""
    await order(model)
    async with recording(model):
        made = await record(model, "mine")
        name = made["metadata"]["name"]
        forged = {"metadata": {"annotations": {STAMP_ANNOTATION: "99.1.0"}}, "status": {"resources": {UNITS: "0.5"}}}
        await model.patch(WORKLOAD, name, forged)
        await time_passes(BEYOND_S / 2)
        assert units(await model.get(WORKLOAD, name)) == "0.5"
        await time_passes(BEYOND_S)

        assert (await model.get(WORKLOAD, name))["status"] == made["status"]
