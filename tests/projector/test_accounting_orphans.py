"""Which records accounting takes away, and when: orphans, what is being deleted, what a claim owns (W3, F3, C32)."""

import asyncio

import pytest
from msgspec.structs import replace

from binder.kube import ApiError
from deploy.world.apiserver import ApiServer
from deploy.world.faults import Call, Fault, FaultyKube
from projector.accounting import LOOK_AGAIN_S
from schemas.kinds import GPU_CLAIM, POD, WORKLOAD, WORKLOAD_MONITOR
from schemas.names import MONITOR_LABEL
from tests.projector.monitored import (
    APP,
    accounting,
    be_ready,
    monitor,
    pod,
    workload,
    workloads,
)
from tests.projector.recording import order, record, recording, saying
from tests.projector.scene import NODE, Scene, stamp, time_passes


async def test_orphans_go(scene: Scene) -> None:
    """C32: a record goes with its object, with its monitor, and when the two part; one under no monitor goes too."""
    await monitor(scene)
    await monitor(scene, "web", selector={"app": "web"})
    for name in ("gone", "parted", "stays"):
        await pod(scene, name)
    await pod(scene, "web", labels={"app": "web"})
    orphan = {"metadata": {"name": "handmade"}, "status": {"kind": "x", "resources": {}}}
    async with accounting(scene):
        await workloads(scene, "pod-gone", "pod-parted", "pod-stays", "pod-web")
        await scene.create(WORKLOAD, orphan)
        lost = orphan | {"metadata": {"name": "pod-never", "labels": {MONITOR_LABEL: "db"}}}
        await scene.create(WORKLOAD, lost)
        await scene.create(WORKLOAD, orphan | {"metadata": {"name": "x", "labels": {MONITOR_LABEL: "nobody"}}})
        await scene.kube.delete(POD, scene.namespace, "gone", grace_seconds=0)
        await scene.patch(POD, "parted", {"metadata": {"labels": {"app": None}}})
        await scene.kube.delete(WORKLOAD_MONITOR, scene.namespace, "web")
        await workloads(scene, "pod-stays")


async def test_a_record_of_another_sort_stays_with_its_monitor(scene: Scene) -> None:
    """What another controller records under a living monitor (a bucket, say) is none of ours, and stays."""
    await monitor(scene)
    bucket = {
        "metadata": {"name": "bucket-b", "labels": {MONITOR_LABEL: "db"}},
        "status": {"kind": "x", "resources": {}},
    }
    await scene.create(WORKLOAD, bucket)
    async with accounting(scene):
        await pod(scene, "db-0")
        await workloads(scene, "bucket-b", "pod-db-0")
        await scene.kube.delete(WORKLOAD_MONITOR, scene.namespace, "db")
        await workloads(scene)


async def test_what_a_claim_owns_is_left_alone(scene: Scene) -> None:
    """F3, C32: under no monitor, under one that is not there, or under one that lives: a claim's record is its own."""
    await order(scene)
    await monitor(scene)
    async with recording(scene), accounting(scene):
        made = await record(scene, "mine")
        for name in ("nobody", "db"):
            edited = await scene.patch(WORKLOAD, "gpuclaim-mine", {"metadata": {"labels": {MONITOR_LABEL: name}}})
            shown = await record(scene, "mine", lambda one: MONITOR_LABEL not in one["metadata"]["labels"])
            assert edited["metadata"]["uid"] == shown["metadata"]["uid"] == made["metadata"]["uid"]
        await pod(scene, "db-0")
        await workloads(scene, "gpuclaim-mine", "pod-db-0")


async def test_no_label_of_a_claim_gives_its_record_to_a_monitor(scene: Scene) -> None:
    """F2, C32: a tenant labels its claim as a monitor's own, and as what a monitor selects: one record, as it was."""
    holding = await order(scene)
    await monitor(scene)
    async with recording(scene) as keeper, accounting(scene):
        made = await record(scene, "mine")
        await scene.patch(GPU_CLAIM, "mine", {"metadata": {"labels": {MONITOR_LABEL: "db", **APP}}})
        await pod(scene, "db-0")
        await workloads(scene, "gpuclaim-mine", "pod-db-0")
        # Decided on once more, the claim is looked at with the labels that it has by now.
        keeper.hold(replace(holding, node=NODE, stamp=stamp(11)))
        shown = await record(scene, "mine", saying(3))
        await workloads(scene, "gpuclaim-mine", "pod-db-0")

    for part in ("labels", "uid", "ownerReferences"):
        assert shown["metadata"][part] == made["metadata"][part]


async def test_a_claims_record_is_left_alone_without_its_keeper(scene: Scene) -> None:
    """F3: accounting by itself neither changes nor deletes a record that a GPU claim owns, whatever stands in it."""
    claim = await scene.create(GPU_CLAIM, {"metadata": {"name": "mine"}, "spec": {"className": "l40s"}})
    owner = {"apiVersion": GPU_CLAIM.api_version, "kind": "GPUClaim", "name": "mine", "uid": claim["metadata"]["uid"]}
    made = await scene.create(
        WORKLOAD,
        {
            "metadata": {"name": "pod-db-0", "labels": {MONITOR_LABEL: "nobody"}, "ownerReferences": [owner]},
            "status": {"kind": "gpu", "resources": {}},
        },
    )
    await monitor(scene)
    await pod(scene, "db-0")
    await pod(scene, "db-1")
    async with accounting(scene):
        await workload(scene, "pod-db-1")

    assert await scene.get(WORKLOAD, "pod-db-0") == made


async def test_the_record_of_an_object_that_goes_stays_until_it_is_gone(scene: Scene) -> None:
    """W3: what is being deleted still uses what it has: its record stays while it goes, and goes with it."""
    await monitor(scene)
    await pod(scene, "db-0", finalizers=["test/slow"])
    async with accounting(scene):
        before = await workload(scene, "pod-db-0", lambda one: one["status"]["operational"])
        await scene.kube.delete(POD, scene.namespace, "db-0", grace_seconds=0)
        await be_ready(scene, "db-0", "False")
        shown = await workload(scene, "pod-db-0", lambda one: not one["status"]["operational"])
        await scene.patch(POD, "db-0", {"metadata": {"finalizers": None}})
        await workloads(scene)

    assert shown["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.looptime
async def test_an_object_that_goes_is_asked_for_again(model: Scene) -> None:
    """W3: also where no watch ever says that it is gone, its record is looked at until it is."""
    silent = False

    async def muted(call: Call) -> Fault | None:
        if silent and call.verb == "event" and call.resource == POD:
            await asyncio.Event().wait()
        return None

    await monitor(model)
    await pod(model, "db-0", finalizers=["test/slow"])
    async with accounting(model, FaultyKube(model.kube, muted), collected=False):
        await workload(model, "pod-db-0")
        await model.kube.delete(POD, model.namespace, "db-0")
        await time_passes(2)
        silent = True
        await model.patch(POD, "db-0", {"metadata": {"finalizers": None}})
        await time_passes(2 * LOOK_AGAIN_S)

        await workloads(model)


@pytest.mark.looptime
async def test_nothing_is_swept_before_everything_is_known(model: Scene) -> None:
    """A kind that can't be listed yet is no proof that its objects are gone; nor is one that is not served any more."""
    assert isinstance(model.kube, ApiServer)
    broken = True

    async def unlisted(call: Call) -> Fault | None:
        if broken and call.resource == POD:
            return Fault(ApiError(503, "ServiceUnavailable", "not yet"))
        return None

    await monitor(model)
    await pod(model, "db-0")
    async with accounting(model):
        made = await workload(model, "pod-db-0")
    async with accounting(model, FaultyKube(model.kube, unlisted)):
        await time_passes(120)
        assert await model.get(WORKLOAD, "pod-db-0") == made
        broken = False
        await time_passes(60)
        model.kube.withdraw(WORKLOAD_MONITOR)
        await time_passes(60)
        assert (await model.get(WORKLOAD, "pod-db-0"))["metadata"]["uid"] == made["metadata"]["uid"]
