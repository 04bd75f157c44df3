"""The contract of `Kube`: gated pods, pins, scheduling, and the end of pods."""

import pytest

from binder.kube import ApiError
from schemas.kinds import POD
from tests.contracts.world import GATE, TERMS, Object, World, said, term

NAME = "metadata.name"


def pin(node: str, index: int = 0) -> Object:
    """The operation that adds a node's name to one term."""
    requirement = {"key": NAME, "operator": "In", "values": [node]}
    return {"op": "add", "path": f"{TERMS}/{index}/matchFields", "value": [requirement]}


UNGATE: list[Object] = [
    {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE},
    {"op": "remove", "path": "/spec/schedulingGates/0"},
]


async def test_a_new_gated_pod(world: World) -> None:
    """A gated pod is pending, says why, has generation 1 and requests what it limits."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", "x.example/y": "2"}}}
    pod = await world.create_pod("a", containers=[container])
    assert pod["status"]["phase"] == "Pending"
    condition = pod["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )
    assert pod["metadata"]["generation"] == 1
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "x.example/y": "2"}
    assert (pod["spec"]["schedulerName"], pod["spec"]["priority"]) == ("default-scheduler", 0)


async def test_pin_and_ungate_in_one_patch(world: World) -> None:
    """All terms narrowed and the gate removed in one patch is accepted; the same again is a generic 422 (T21)."""
    created = await world.create_pod("a", terms=[term("x", "1"), term("y", "2")])
    uid = {"op": "test", "path": "/metadata/uid", "value": created["metadata"]["uid"]}
    seen = {"op": "test", "path": TERMS, "value": [term("x", "1"), term("y", "2")]}
    patch = [uid, seen, pin("n1", 0), pin("n1", 1), *UNGATE]
    pod = await world.edit("a", *patch, resource=POD)
    assert "schedulingGates" not in pod["spec"]
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [one["matchFields"][0]["values"] for one in terms["nodeSelectorTerms"]] == [["n1"], ["n1"]]
    with pytest.raises(ApiError) as caught:
        await world.edit("a", *patch, resource=POD)
    assert said(caught.value) == (422, "Invalid")
    assert caught.value.causes == ()


@pytest.mark.parametrize(
    "operation",
    [
        pin("n1"),
        {"op": "add", "path": f"{TERMS}/0/matchExpressions/-", "value": term("z", "1")["matchExpressions"][0]},
        {"op": "add", "path": "/spec/nodeSelector", "value": {"disk": "fast"}},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "other"},
        {"op": "add", "path": "/spec/tolerations", "value": [{"key": "k", "operator": "Exists"}]},
    ],
)
async def test_a_gated_pod_may_be_narrowed(world: World, operation: Object) -> None:
    """Additions to the terms and the selector of a gated pod are accepted, and raise its generation."""
    spec: Object = {"tolerations": []}
    await world.create_pod("a", terms=[term("x", "1")], **spec)
    if operation["path"] == "/spec/tolerations":
        standing = (await world.get("a", POD))["spec"].get("tolerations", [])
        operation = operation | {"value": [*standing, *operation["value"]]}
    pod = await world.edit("a", operation, resource=POD)
    assert pod["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ({"op": "replace", "path": TERMS, "value": [term("x", "2")]}, f"{TERMS[1:].replace('/', '.')}[0]"),
        ({"op": "add", "path": f"{TERMS}/-", "value": term("x", "1")}, TERMS[1:].replace("/", ".")),
        ({"op": "remove", "path": "/spec/affinity"}, TERMS[1:].replace("/", ".")),
        ({"op": "replace", "path": "/spec/nodeSelector", "value": {"disk": "slow"}}, "spec.nodeSelector"),
        (
            {"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": "x.example/new"}},
            "spec.schedulingGates[1].name",
        ),
        ({"op": "add", "path": "/spec/nodeName", "value": "n1"}, "spec"),
        ({"op": "replace", "path": "/spec/priority", "value": 5}, "spec"),
    ],
)
async def test_a_gated_pod_may_not_be_widened(world: World, operation: Object, field: str) -> None:
    """Terms that are replaced, added or dropped, new gates and all else are refused by field."""
    await world.create_pod("a", terms=[term("x", "1")], nodeSelector={"disk": "fast"})
    with pytest.raises(ApiError) as caught:
        await world.edit("a", operation, resource=POD)
    assert said(caught.value) == (422, "Invalid")
    assert [cause.field for cause in caught.value.causes] == [field]


async def test_an_ungated_pod_is_fixed(world: World) -> None:
    """Once the gate is gone the affinity can't change any more, and no gate can come back."""
    await world.create_pod("a", terms=[term("x", "1")])
    await world.edit("a", *UNGATE, resource=POD)
    gate: Object = {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}
    for operation in (pin("n1"), gate):
        with pytest.raises(ApiError) as caught:
            await world.edit("a", operation, resource=POD)
        assert said(caught.value) == (422, "Invalid")


async def test_only_ungated_pods_are_scheduled(world: World) -> None:
    """The scheduler passes a gated pod over and puts it on the node it is pinned to once it is ungated."""
    first, second = f"{world.namespace}-n1", f"{world.namespace}-n2"
    for name in (first, second):
        await world.create_node(name)
    await world.create_pod("gated", terms=[term("nowhere", "1")])
    await world.create_pod("pinned", terms=[{"matchFields": [{"key": NAME, "operator": "In", "values": [second]}]}])
    await world.edit("pinned", *UNGATE, resource=POD)

    async def is_bound() -> bool:
        return bool((await world.get("pinned", POD))["spec"].get("nodeName") == second)

    await world.eventually(is_bound)
    conditions = (await world.get("pinned", POD))["status"]["conditions"]
    assert [one["status"] for one in conditions if one["type"] == "PodScheduled"] == ["True"]
    assert "nodeName" not in (await world.get("gated", POD))["spec"]
    await _end(world, "pinned")


async def test_a_pod_without_a_place_says_so_and_gets_the_next(world: World) -> None:
    """An ungated pod that fits nowhere is Unschedulable, and is placed when a node comes that fits."""
    node = f"{world.namespace}-n1"
    await world.create_pod(
        "a", gated=False, terms=[{"matchFields": [{"key": NAME, "operator": "In", "values": [node]}]}]
    )

    async def says_so() -> bool:
        conditions = (await world.get("a", POD))["status"].get("conditions", [])
        return any(one.get("reason") == "Unschedulable" for one in conditions)

    await world.eventually(says_so)
    await world.create_node(node)

    async def is_bound() -> bool:
        return bool((await world.get("a", POD))["spec"].get("nodeName") == node)

    await world.eventually(is_bound)
    await _end(world, "a")


async def test_a_bound_pod_waits_for_its_kubelet(world: World) -> None:
    """A deleted pod on a node stays, with its grace, until it is deleted without; elsewhere it goes at once."""
    node = f"{world.namespace}-n1"
    await world.create_node(node)
    await world.create_pod("free")
    await world.kube.delete(POD, world.namespace, "free")
    assert await world.find("free", POD) is None
    await world.create_pod("bound", gated=False, nodeName=node)
    await world.kube.delete(POD, world.namespace, "bound")
    held = await world.get("bound", POD)
    assert held["metadata"]["deletionGracePeriodSeconds"] == 30
    assert held["metadata"]["generation"] == 2
    await _end(world, "bound")
    await world.create_pod("failed", gated=False, nodeName=node)
    await world.merge("failed", {"status": {"phase": "Failed"}}, POD, subresource="status")
    await world.kube.delete(POD, world.namespace, "failed")
    assert await world.find("failed", POD) is None


async def test_status_of_a_pod_takes_annotations_along(world: World) -> None:
    """A status write to a pod leaves its spec alone, but its annotations are taken."""
    await world.create_pod("a")
    patch: Object = {"metadata": {"annotations": {"x": "y"}}, "spec": {"priority": 9}, "status": {"phase": "Running"}}
    pod = await world.merge("a", patch, POD, subresource="status")
    assert (pod["spec"]["priority"], pod["status"]["phase"]) == (0, "Running")
    assert pod["metadata"]["annotations"] == {"x": "y"}
    assert pod["metadata"]["generation"] == 1


async def _end(world: World, name: str) -> None:
    """Delete a bound pod as its kubelet does."""
    await world.kube.delete(POD, world.namespace, name, grace_seconds=0)
    await world.gone(name, POD)
