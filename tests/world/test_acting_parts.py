"""What acts by itself in the model world: the collector, the scheduler, and faults at the door."""

import msgspec
import pytest

from binder.kube import ApiError, Kube, PatchKind
from deploy.world.admission import Hook
from deploy.world.apiserver import ApiServer
from deploy.world.collector import Collector
from deploy.world.faults import Call, Fault, FaultyKube
from deploy.world.scheduler import Scheduler
from schemas.kinds import CONFIGMAP, NODE, POD, PV, PVC
from tests.world.small import PLACE, Object, Webhook, config_map, everything, read


async def test_what_a_webhook_keeps_is_collected_later() -> None:
    """The collector leaves what a hook refuses to let go, and takes it once the hook is gone."""
    server = ApiServer()
    collector = Collector(server)
    refusing = Webhook(allowed=False)
    server.admit(Hook("no.example", refusing.review, ("configmaps",), operations=("DELETE",)))
    never = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "never"}
    await server.create(*PLACE, config_map("orphan", ownerReferences=[never]))
    await collector.settle()
    assert len((await server.list_page(CONFIGMAP)).items) == 1
    server.unadmit("no.example")
    await server.create(*PLACE, config_map("other"))
    await collector.settle()
    assert [read(item)["metadata"]["name"] for item in (await server.list_page(CONFIGMAP)).items] == ["other"]
    assert refusing.requests[0]["userInfo"]["username"].endswith(":generic-garbage-collector")


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"tolerations": []}, False),
        ({"containers": [{"name": "c", "resources": {"requests": {"cpu": "2500m"}}}]}, False),
        ({"containers": [{"name": "c", "resources": {"limits": {"x.example/gpu": "2"}}}]}, True),
        ({"containers": [{"name": "c", "resources": {"limits": {"x.example/gpu": "3"}}}]}, False),
        ({"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]}, False),
        ({"overhead": {"cpu": "3"}}, False),
        ({"schedulerName": "another"}, False),
        ({"schedulingGates": [{"name": "x.example/gate"}]}, False),
    ],
    ids=lambda value: None if isinstance(value, bool) else (next(iter(value), "plain")),
)
async def test_the_scheduler_filters(spec: Object, *, fits: bool) -> None:
    """A pod is bound where selector, taints and room accept it (effective requests, C33), and not elsewhere."""
    server = ApiServer()
    scheduler = Scheduler(server)
    await server.create(NODE, "", msgspec.json.encode(_node("n1")))
    await server.create(POD, "default", msgspec.json.encode(_pod("a", spec)))
    await scheduler.settle()
    assert (read(await server.get(POD, "default", "a"))["spec"].get("nodeName") == "n1") is fits


async def test_the_scheduler_counts_what_runs() -> None:
    """Room taken by bound pods is taken until they end; who waits is looked at again, by priority first."""
    server = ApiServer()
    scheduler = Scheduler(server)
    await server.create(NODE, "", msgspec.json.encode(_node("n1")))
    whole = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    for name, priority in (("first", ""), ("low", ""), ("high", "system-cluster-critical")):
        spec = whole | ({"priorityClassName": priority} if priority else {})
        await server.create(POD, "default", msgspec.json.encode(_pod(name, spec)))
        await scheduler.settle()

    async def bound() -> list[str]:
        pods = [read(item) for item in (await server.list_page(POD)).items]
        return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]

    assert await bound() == ["first"]
    ended = b'{"status":{"phase":"Succeeded"}}'
    await server.patch(POD, "default", "first", ended, kind=PatchKind.MERGE, subresource="status")
    await scheduler.settle()
    assert await bound() == ["first", "high"]
    await server.delete(POD, "default", "high", grace_seconds=0)
    await scheduler.settle()
    assert await bound() == ["first", "low"]


async def test_the_scheduler_keeps_apart_who_wants_it() -> None:
    """A pod that will not stand beside another's label goes to another node, as a migration target does."""
    server = ApiServer()
    scheduler = Scheduler(server)
    for name in ("n1", "n2"):
        node = _node(name)
        node["metadata"]["labels"]["kubernetes.io/hostname"] = name
        await server.create(NODE, "", msgspec.json.encode(node))
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"vmi": "u1"}}}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    for name, spec in (("source", {}), ("target", apart), ("third", apart)):
        pod = _pod(name, spec)
        pod["metadata"]["labels"] = {"vmi": "u1"}
        await server.create(POD, "default", msgspec.json.encode(pod))
        await scheduler.settle()
    nodes = [read(item)["spec"].get("nodeName") for item in (await server.list_page(POD)).items]
    assert nodes == ["n1", "n2", None]


async def test_the_scheduler_follows_volumes() -> None:
    """A pod goes where its bound volume is, and waits for a claim that isn't there yet."""
    server = ApiServer()
    scheduler = Scheduler(server)
    for name in ("n1", "n2"):
        await server.create(NODE, "", msgspec.json.encode(_node(name)))
    spec = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]}
    await server.create(POD, "default", msgspec.json.encode(_pod("a", spec)))
    await scheduler.settle()
    assert "nodeName" not in read(await server.get(POD, "default", "a"))["spec"]
    only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}}
    volume |= {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [only]}}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}}
    await server.create(PV, "", msgspec.json.encode(volume))
    await server.create(PVC, "default", msgspec.json.encode(claim | {"spec": {"volumeName": "pv"}}))
    await scheduler.settle()
    assert read(await server.get(POD, "default", "a"))["spec"]["nodeName"] == "n2"


def _node(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "2", "pods": "10", "x.example/gpu": "2"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(name: str, spec: Object) -> Object:
    whole = {"containers": [{"name": "c"}], "tolerations": [{"key": "gpu", "operator": "Exists"}]} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


async def test_faults_at_the_door() -> None:
    """A planned fault refuses before the server acts, or loses the answer of a write that landed; watches too (T3)."""
    server = ApiServer()
    lost = ApiError(0, "Unreachable", "cut")
    plan: dict[str, Fault] = {}

    async def planned(call: Call) -> Fault | None:
        return plan.get(call.verb)

    kube: Kube = FaultyKube(server, planned)
    plan["create"] = Fault(lost)
    with pytest.raises(ApiError):
        await kube.create(*PLACE, config_map("a"))
    assert not (await kube.list_page(CONFIGMAP)).items
    plan["create"] = Fault(lost, lands=True)
    with pytest.raises(ApiError):
        await kube.create(*PLACE, config_map("a"))
    assert read(await kube.get(*PLACE, "a"))["metadata"]["name"] == "a"
    plan["event"] = Fault(lost)
    with pytest.raises(ApiError):
        await everything(kube.watch(CONFIGMAP, resource_version="0", timeout_seconds=600))
