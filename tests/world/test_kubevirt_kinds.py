"""Replica sets and migrations: VMIs without a name, VMIs with two pods."""

import pytest

from deploy.world.manifests import Obj
from deploy.world.virt_names import VMIM, VMIRS
from schemas.kinds import POD, VMI
from tests.world.stage import CARD, SLICE, Stage, staged, vmi, vmi_spec

pytestmark = pytest.mark.looptime


def replica_set(replicas: int) -> Obj:
    """A replica set of VMIs with a card each."""
    template = {"metadata": {"labels": {"set": "s"}}, "spec": vmi_spec(CARD)}
    selector = {"matchLabels": {"set": "s"}}
    return {"metadata": {"name": "s"}, "spec": {"replicas": replicas, "selector": selector, "template": template}}


async def test_a_replica_set_posts_vmis_without_a_name() -> None:
    """A generateName only: a mutating webhook sees no name at all (T17)."""
    seen: list[Obj] = []
    async with staged() as stage:
        stage.watch_creates("gpubinder", "virtualmachineinstances.kubevirt.io", seen)
        await stage.create(VMIRS, replica_set(3))
        await stage.until(lambda: len(stage.all(VMI)) == 3)
        await stage.until(lambda: len(stage.all(POD)) == 3)
    assert [request["object"]["metadata"].get("name") for request in seen] == [None] * 3
    assert {request["object"]["metadata"]["generateName"] for request in seen} == {"s"}


async def test_a_replica_set_replaces_what_failed_and_scales_down() -> None:
    """Failed VMIs are deleted and made anew; fewer replicas delete VMIs."""
    async with staged() as stage:
        await stage.create(VMIRS, replica_set(2))
        await stage.until(lambda: len(stage.all(POD)) == 2)
        first = stage.all(POD)[0]
        await stage.delete(POD, first["metadata"]["name"])
        await stage.until(lambda: len(stage.all(POD)) == 2 and first["metadata"]["name"] not in str(stage.all(POD)))
        await stage.change(VMIRS, "s", {"spec": {"replicas": 1}})
        await stage.until(lambda: len(stage.all(VMI)) == 1)


async def migrating(stage: Stage) -> tuple[Obj, Obj]:
    """A running VMI on node-1 under migration; return source and target pod."""
    await stage.create(VMI, vmi("a", SLICE))
    source = await stage.run("a", "node-1")
    await stage.create(VMIM, {"metadata": {"name": "m"}, "spec": {"vmiName": "a"}})
    return source, await stage.pod("a", without=[source["metadata"]["name"]])


def phase(stage: Stage) -> str:
    """The migration's phase."""
    return str((stage.find(VMIM, "m") or {}).get("status", {}).get("phase"))


async def test_a_migration_s_target_is_a_second_launcher_of_the_same_vmi() -> None:
    """T25: two entries in activePods, the target marked, and labelled with the source's node."""
    async with staged() as stage:
        source, target = await migrating(stage)
        migration = stage.find(VMIM, "m") or {}
        labels = target["metadata"]["labels"]
        assert labels["kubevirt.io/migrationJobUID"] == migration["metadata"]["uid"]
        assert labels["kubevirt.io/nodeName"] == "node-1"
        assert target["spec"]["containers"][0]["resources"]["requests"][SLICE] == "1"
        await stage.until(lambda: len((stage.find(VMI, "a") or {})["status"]["activePods"]) == 2)
        active = (stage.find(VMI, "a") or {})["status"]["activePods"]
        assert active == {source["metadata"]["uid"]: "node-1", target["metadata"]["uid"]: ""}


async def test_a_migration_moves_the_vmi_to_its_target() -> None:
    """Once the target runs the VMI is on its node; the source may go without ending the VMI."""
    async with staged() as stage:
        source, target = await migrating(stage)
        await stage.bind(target, "node-2")
        await stage.until(lambda: phase(stage) == "Succeeded")
        assert (stage.find(VMI, "a") or {})["status"]["nodeName"] == "node-2"
        await stage.delete(POD, source["metadata"]["name"], grace_seconds=0)
        await stage.settle(5.0)
        assert (await stage.phase("a", "Running"))["metadata"]["labels"]["kubevirt.io/nodeName"] == "node-2"


async def test_a_target_that_stays_pending_is_given_up() -> None:
    """Fifteen minutes for a gated or unbound target, then it is deleted and the migration Failed."""
    async with staged() as stage:
        _, target = await migrating(stage)
        await stage.settle(890.0)
        assert phase(stage) == "Scheduling"
        await stage.until(lambda: phase(stage) == "Failed")
        assert stage.find(POD, target["metadata"]["name"]) is None
        await stage.phase("a", "Running")


async def test_an_unschedulable_target_is_given_up_sooner() -> None:
    """Five minutes where the scheduler said Unschedulable."""
    async with staged() as stage:
        _, target = await migrating(stage)
        told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
        await stage.change(POD, target["metadata"]["name"], {"status": {"conditions": [told]}}, subresource="status")
        await stage.settle(290.0)
        assert phase(stage) == "Scheduling"
        await stage.settle(15.0)
        assert phase(stage) == "Failed"
