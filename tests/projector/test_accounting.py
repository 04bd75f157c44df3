"""Workload accounting: records of a monitor's pods, volume claims and load balancers, and counts (W1, W2)."""

import asyncio

import pytest

from deploy.world.apiserver import ApiServer
from deploy.world.faults import Call, Fault, FaultyKube
from schemas.kinds import POD, SERVICE, WORKLOAD, WORKLOAD_MONITOR
from schemas.names import MONITOR_LABEL, RESOURCES_ANNOTATION
from tests.projector.monitored import (
    APP,
    accounting,
    be_ready,
    monitor,
    pod,
    resources,
    says,
    service,
    volume,
    workload,
    workloads,
)
from tests.projector.scene import Obj, Scene, time_passes

POOL = "metallb.universe.tf/ip-allocated-from-pool"


def owner_of(shown: Obj) -> tuple[str, str, str]:
    """Return kind, name and uid of the one owner."""
    (owner,) = shown["metadata"]["ownerReferences"]
    return owner["kind"], owner["name"], owner["uid"]


async def test_a_pods_record_sums_its_containers_requests(scene: Scene) -> None:
    """W1, C53: containers' requests are added up; no limits, no init containers. W2: the name is `pod-NAME`."""
    await monitor(scene, labels={"workloads.cozystack.io/preset": "small", "team": "a"})
    made = await pod(scene, "db-0", {"cpu": "100m", "memory": "512Mi"}, {"cpu": "0.5", "memory": "1.5Gi"})
    async with accounting(scene):
        shown = await workload(scene, "pod-db-0", lambda one: one["status"]["operational"])

    assert shown["status"] == {
        "kind": "postgres",
        "type": "db",
        "operational": True,
        "resources": {"cpu": "600m", "memory": "2Gi"},
    }
    assert shown["metadata"]["labels"] == APP | {MONITOR_LABEL: "db", "workloads.cozystack.io/preset": "small"}
    assert owner_of(shown) == ("Pod", "db-0", made["metadata"]["uid"])


async def test_an_annotation_overrides_what_is_summed(scene: Scene) -> None:
    """What the pod's annotation says stands in the place of the sum; what can't be read of it counts for nothing."""
    notes = {RESOURCES_ANNOTATION: '{"cpu": "4", "disk": "much", "example.com/x": "1000"}'}
    await monitor(scene)
    await pod(scene, "db-0", {"cpu": "100m", "memory": "1Gi"}, annotations=notes)
    await pod(scene, "db-1", {"cpu": "1000m"}, annotations={RESOURCES_ANNOTATION: "{"})
    async with accounting(scene):
        first, second = await workload(scene, "pod-db-0"), await workload(scene, "pod-db-1")

    assert resources(first) == {"cpu": "4", "memory": "1Gi", "example.com/x": "1k"}
    assert resources(second) == {"cpu": "1"}


async def test_each_sort_has_its_record(scene: Scene) -> None:
    """W2, C53: pod, volume claim and service of one name have three records; only load balancers have addresses."""
    await monitor(scene)
    await pod(scene, "web")
    await volume(scene, "web")
    await service(scene, "web", annotations={POOL: "public"})
    await service(scene, "inside", kind="ClusterIP")
    async with accounting(scene):
        before = await workload(scene, "svc-web")
        ingress = [{"ip": "192.0.2.7"}, {"hostname": "web.example.com"}]
        await scene.patch(SERVICE, "web", {"status": {"loadBalancer": {"ingress": ingress}}}, "status")
        address = await workload(scene, "svc-web", lambda one: one["status"]["operational"])
        disk = await workload(scene, "pvc-web", lambda one: one["status"]["operational"])
        await workloads(scene, "pod-web", "pvc-web", "svc-web")

    assert resources(before) == {"public.ipaddresspool.metallb.io/requests.ipaddresses": "0"}
    assert resources(address) == {"public.ipaddresspool.metallb.io/requests.ipaddresses": "1"}
    assert resources(disk) == {"fast.storageclass.storage.k8s.io/requests.storage": "10Gi"}
    assert (owner_of(address)[0], owner_of(disk)[0]) == ("Service", "PersistentVolumeClaim")


async def test_a_monitor_counts_who_is_ready(scene: Scene) -> None:
    """Observed are its pods, available the ready ones; operational while at least minReplicas are; else unless none."""
    await monitor(scene, minReplicas=2)
    await monitor(scene, "any", selector={"app": "nobody"})
    await pod(scene, "db-0")
    await pod(scene, "db-1", ready=False)
    await pod(scene, "other", labels={"app": "web"})
    async with accounting(scene):
        await says(scene, "db", 2, 1, operational=False)
        await says(scene, "any", 0, 0, operational=True)
        await be_ready(scene, "db-1")
        await says(scene, "db", 2, 2, operational=True)
        await workload(scene, "pod-db-1", lambda one: one["status"]["operational"])
        await scene.kube.delete(POD, scene.namespace, "db-0", grace_seconds=0)
        await says(scene, "db", 1, 1, operational=False)
        await scene.patch(WORKLOAD_MONITOR, "db", {"spec": {"minReplicas": 1}})
        await says(scene, "db", 1, 1, operational=True)


async def test_a_pod_made_again_has_a_record_of_its_own(scene: Scene) -> None:
    """The next pod of the same name is not booked on the record of the one before."""
    await monitor(scene)
    await pod(scene, "db-0", {"cpu": "1"})
    async with accounting(scene):
        before = await workload(scene, "pod-db-0", lambda one: resources(one) == {"cpu": "1"})
        await scene.kube.delete(POD, scene.namespace, "db-0", grace_seconds=0)
        again = await pod(scene, "db-0", {"cpu": "2"})
        shown = await workload(scene, "pod-db-0", lambda one: resources(one) == {"cpu": "2"})

    assert shown["metadata"]["uid"] != before["metadata"]["uid"]
    assert owner_of(shown)[2] == again["metadata"]["uid"]


async def test_what_is_counted_no_more_leaves_the_record(scene: Scene) -> None:
    """Edits of a monitor and of a pod reach the record, amounts that are gone leave it, and so do edits of others."""
    await monitor(scene)
    await pod(scene, "db-0", {"cpu": "1"}, annotations={RESOURCES_ANNOTATION: '{"gpu": "1"}'})
    async with accounting(scene):
        await workload(scene, "pod-db-0", lambda one: resources(one) == {"cpu": "1", "gpu": "1"})
        await scene.patch(POD, "db-0", {"metadata": {"annotations": None}})
        await workload(scene, "pod-db-0", lambda one: resources(one) == {"cpu": "1"})
        await scene.patch(WORKLOAD_MONITOR, "db", {"spec": {"kind": "redis", "type": None}})
        shown = await workload(scene, "pod-db-0", lambda one: one["status"]["kind"] == "redis")
        assert "type" not in shown["status"]
        await scene.patch(WORKLOAD, "pod-db-0", {"status": {"resources": {"cpu": 0}}})
        await workload(scene, "pod-db-0", lambda one: resources(one) == {"cpu": "1"})


async def test_of_two_monitors_the_first_by_name_has_the_record(scene: Scene) -> None:
    """A choice of ours: one record, no quarrel; when that monitor goes, the other has it."""
    await monitor(scene, "b", type="second")
    await monitor(scene, "a", type="first")
    await pod(scene, "db-0")
    async with accounting(scene):
        await workload(scene, "pod-db-0", lambda one: one["metadata"]["labels"][MONITOR_LABEL] == "a")
        await says(scene, "a", 1, 1, operational=True)
        await says(scene, "b", 1, 1, operational=True)
        await scene.kube.delete(WORKLOAD_MONITOR, scene.namespace, "a")
        shown = await workload(scene, "pod-db-0", lambda one: one["metadata"]["labels"][MONITOR_LABEL] == "b")

    assert shown["status"]["type"] == "second"


async def test_a_monitor_with_a_long_name_has_records(scene: Scene) -> None:
    """A name longer than a label value is cut with a hash on the records; they are known as its own all the same."""
    name = "m" * 80
    await monitor(scene, name)
    await pod(scene, "db-0")
    async with accounting(scene):
        shown = await workload(scene, "pod-db-0")
        await says(scene, name, 1, 1, operational=True)
        await pod(scene, "db-1")
        await workloads(scene, "pod-db-0", "pod-db-1")
        await scene.kube.delete(WORKLOAD_MONITOR, scene.namespace, name)
        await workloads(scene)

    assert len(shown["metadata"]["labels"][MONITOR_LABEL]) == 63


@pytest.mark.looptime
async def test_without_the_kinds_nothing_is_asked_of_pods(model: Scene) -> None:
    """C61: on a cluster without monitors the pods are not even listed; once the kinds are there, all is recorded."""
    assert isinstance(model.kube, ApiServer)
    asked = []

    async def noted(call: Call) -> Fault | None:
        if call.resource == POD:
            asked.append(call.verb)
        return None

    for resource in (WORKLOAD, WORKLOAD_MONITOR):
        model.kube.withdraw(resource)
    await pod(model, "db-0")
    async with accounting(model, FaultyKube(model.kube, noted)):
        await time_passes(300)
        assert asked == []
        for resource in (WORKLOAD, WORKLOAD_MONITOR):
            model.kube.serve(resource)
        await monitor(model)
        await workload(model, "pod-db-0")


@pytest.mark.looptime
async def test_a_quarrel_over_a_record_is_slow(model: Scene) -> None:
    """Another controller that undoes each write is met once a second, not as fast as two programs can write."""
    await monitor(model)
    await pod(model, "db-0")
    undone = 0

    async def quarrel() -> None:
        nonlocal undone
        version = (await model.kube.list_page(WORKLOAD)).resource_version
        async for event in model.kube.watch(WORKLOAD, resource_version=version, timeout_seconds=1000):
            if resources(model._read(event.object)) == {"cpu": "100m"}:  # noqa: SLF001 - as the scene reads
                undone += 1
                await model.patch(WORKLOAD, "pod-db-0", {"status": {"resources": {"cpu": "9"}}})

    task = asyncio.create_task(quarrel())
    async with accounting(model):
        await time_passes(60)
    task.cancel()

    assert 30 <= undone <= 61
