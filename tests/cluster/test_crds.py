"""Our kinds on a real API server: what it refuses, what it fills in, what `kubectl get` shows."""

from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from tests.cluster.api import JSON_PATCH, MERGE, Api, Object, Refused
from tests.cluster.given import Cluster

CLASSES = "/apis/cozystack.io/v1alpha1/gpuclasses"
CLAIMS = "/apis/cozystack.io/v1alpha1/namespaces/{}/gpuclaims"
OLD = {"generation": 2, "sequence": 7, "entry": 1}
LATER = "2026-05-03T10:00:00Z"


def claim(name: str = "c", **spec: object) -> Object:
    """A claim of one class, as its author writes it."""
    return {
        "apiVersion": "cozystack.io/v1alpha1",
        "kind": "GPUClaim",
        "metadata": {"name": name},
        "spec": {"className": "l40s", **spec},
    }


def gpu_class(name: str, **spec: object) -> Object:
    """A class, as an operator writes it."""
    return {
        "apiVersion": "cozystack.io/v1alpha1",
        "kind": "GPUClass",
        "metadata": {"name": name},
        "spec": {"resourceName": "nvidia.com/AD102GL_L40S", "mode": "Passthrough", **spec},
    }


def status(stamp: Object | None, phase: str = "Bound") -> Object:
    """A claim's status with this stamp."""
    return {"phase": phase, "nodeName": "n1"} | ({"stamp": stamp} if stamp else {})


def fields_of(refused: Refused) -> set[str]:
    """The field paths that a refusal names."""
    return {cause["field"] for cause in refused.status["details"]["causes"]}


async def table(cluster: Cluster, path: str, name: str) -> tuple[dict[str, int], dict[str, Any]]:
    """Return what `kubectl get` is given for one object: priority and cell by column."""
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with Api(cluster.kubeconfig()) as api:
        session = api._session  # noqa: SLF001 - only the table is asked for in another media type
        assert isinstance(session, aiohttp.ClientSession)
        async with session.get(path, headers=accept) as answer:
            shown = await answer.json(content_type=None)
    columns = shown["columnDefinitions"]
    (row,) = (row for row in shown["rows"] if row["object"]["metadata"]["name"] == name)
    priorities = {column["name"]: column["priority"] for column in columns}
    return priorities, dict(zip(priorities, row["cells"], strict=True))


async def test_count_is_one_unless_given(api: Api, namespace: str) -> None:
    """A claim without a count asks for one unit, and is pending before anyone has written its status."""
    created = await api.create(CLAIMS.format(namespace), claim())

    assert created["spec"] == {"className": "l40s", "count": 1}
    assert (await api.get(f"{CLAIMS.format(namespace)}/c"))["status"] == {"phase": "Pending"}


async def test_status_is_not_taken_at_creation(api: Api, namespace: str) -> None:
    """N4: who may create claims can't place them: a status sent along is dropped."""
    body = claim() | {"status": status(OLD)}

    assert (await api.create(CLAIMS.format(namespace), body)).get("status", {}).get("nodeName") is None


@pytest.mark.parametrize("spec", [{"className": ""}, {"count": 0}, {"count": 65}, {"count": "1"}])
async def test_a_claim_that_makes_no_sense_is_refused(api: Api, namespace: str, spec: Object) -> None:
    """A class must be named and a count lies from 1 to 64."""
    with pytest.raises(Refused) as refused:
        await api.create(CLAIMS.format(namespace), claim(**spec))

    assert refused.value.code == 422


@pytest.mark.parametrize(
    "patch",
    [
        {"status": None},
        {"status": {"stamp": None}},
        [{"op": "remove", "path": "/status"}],
        [{"op": "replace", "path": "/status", "value": None}],
        [{"op": "remove", "path": "/status/stamp"}],
        [{"op": "replace", "path": "/status/stamp", "value": None}],
    ],
)
@pytest.mark.parametrize("subresource", ["/status", ""])
async def test_a_stamp_can_not_be_taken_off(
    api: Api, namespace: str, patch: Object | list[Object], subresource: str
) -> None:
    """T22: neither `status: null` nor a removed stamp opens the way for a lower one, on either path."""
    path = f"{CLAIMS.format(namespace)}/c"
    await api.create(CLAIMS.format(namespace), claim())
    await api.patch(f"{path}/status", {"status": status(OLD)})

    content = JSON_PATCH if isinstance(patch, list) else MERGE
    # On the main path the API server ignores the status, on /status the rule refuses: taken off it is never.
    with suppress(Refused):
        await api.patch(path + subresource, patch, content=content)

    assert (await api.get(path))["status"]["stamp"] == OLD


@pytest.mark.parametrize(
    "resource",
    ["nvidia.com", "nvidia.com/", "/L40S", "a/b/c", "cpu", "kubernetes.io/batch", "requests.x.io/a", "A.io/b"],
)
async def test_a_class_names_an_extended_resource(api: Api, namespace: str, resource: str) -> None:
    """A class whose resource no device plugin can offer is refused."""
    with pytest.raises(Refused) as refused:
        await api.create(CLASSES, gpu_class(namespace, resourceName=resource))

    assert fields_of(refused.value) == {"spec.resourceName"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"mode": "vGPU"}, "spec.mode"),
        ({"maxCount": 0}, "spec.maxCount"),
        ({"maxCount": 65}, "spec.maxCount"),
        ({"tolerations": [{"value": "x"}]}, "spec.tolerations[0]"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}, "spec.tolerations[0]"),
        ({"tolerations": [{"key": "a", "operator": "In"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "spec.tolerations[0]"),
    ],
)
async def test_a_class_that_can_not_work_is_refused(api: Api, namespace: str, spec: Object, field: str) -> None:
    """What would make every pod of the class invalid is refused where it is written, by field."""
    with pytest.raises(Refused) as refused:
        await api.create(CLASSES, gpu_class(namespace, **spec))

    assert field in fields_of(refused.value)


async def test_a_whole_class_is_taken_and_shown(api: Api, cluster: Cluster, namespace: str) -> None:
    """The table of classes says what they are and how much there is."""
    tolerations = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, {"key": "a", "value": "b"}]
    spec = {"mode": "VGPU", "maxCount": 2, "tolerations": tolerations, "license": {"secretName": "dls"}}
    made = await api.create(CLASSES, gpu_class(namespace, resourceName="nvidia.com/NVIDIA_L40S-24C", **spec))
    counts = {"allocatable": 8, "held": 3, "free": 5, "mostFree": 4, "stamp": OLD}
    await api.patch(f"{CLASSES}/{namespace}/status", {"status": counts})
    priorities, cells = await table(cluster, CLASSES, namespace)
    await api.delete(f"{CLASSES}/{namespace}")

    assert made["spec"]["tolerations"] == tolerations
    assert list(priorities) == ["Name", "Resource", "Mode", "Max", "Allocatable", "Held", "Free", "MostFree", "Age"]
    assert list(cells.values())[:-1] == [namespace, "nvidia.com/NVIDIA_L40S-24C", "VGPU", 2, 8, 3, 5, 4]


async def test_claims_are_shown_with_what_where_and_why(api: Api, cluster: Cluster, namespace: str) -> None:
    """`kubectl get gpuclaims` says class, count, phase, node, VM and reason; `-o wide` resource and message too."""
    path = CLAIMS.format(namespace)
    condition = {
        "type": "Placed",
        "status": "False",
        "reason": "NoRoom",
        "message": "no node",
        "lastTransitionTime": LATER,
    }
    await api.create(path, claim(count=2))
    body = {"phase": "Pending", "attachedTo": {"name": "vm-a", "uid": "u"}, "conditions": [condition], "stamp": OLD}
    await api.patch(f"{path}/c/status", {"status": body})
    priorities, cells = await table(cluster, path, "c")

    assert [name for name, priority in priorities.items() if not priority] == [
        *("Name", "Class", "Count", "Phase", "Node", "VM", "Reason", "Age")
    ]
    assert [cells[name] for name in ("Class", "Count", "Phase", "Node", "VM", "Reason", "Message")] == [
        *("l40s", 2, "Pending", None, "vm-a", "NoRoom", "no node")
    ]


async def test_short_names_are_served(api: Api) -> None:
    """`kubectl get gclass`, `gclaim` and `gpu` mean our kinds."""
    found = await api.get("/apis/cozystack.io/v1alpha1")
    kinds = {item["name"]: (item.get("shortNames"), item.get("categories")) for item in found["resources"]}

    assert kinds["gpuclasses"] == (["gclass"], ["gpu"])
    assert kinds["gpuclaims"] == (["gclaim"], ["gpu"])
    assert kinds["gpubudgets"] == (["gbudget"], ["gpu"])


BUDGETS = "/apis/cozystack.io/v1alpha1/namespaces/{}/gpubudgets"


def budget(hard: Object) -> Object:
    """A budget, as an operator writes it."""
    return {
        "apiVersion": "cozystack.io/v1alpha1",
        "kind": "GPUBudget",
        "metadata": {"name": "b"},
        "spec": {"hard": hard},
    }


@pytest.mark.parametrize(
    "hard",
    [
        {"cpu": 1},
        {"gpus.cozystack.io/": 1},
        {"requests.nvidia.com/L40S": 1},
        {"limits.nvidia.com/L40S": 1},
        {"x.kubernetes.io/a": 1},
        {"replicated.storageclass.storage.k8s.io/requests.storage": 1},
        {"gpus.cozystack.io": -1},
        {"gpus.cozystack.io": "1"},
        {"gpus.cozystack.io": 1_000_000_001},
        {f"nvidia.com/a{number}": 1 for number in range(65)},
        {"n" * 400 + ".com/a": 1},
    ],
)
async def test_a_budget_that_makes_no_sense_is_refused(api: Api, namespace: str, hard: Object) -> None:
    """B1: keys are classes, their sum and extended resources, no names of a ResourceQuota; units are whole."""
    with pytest.raises(Refused) as refused:
        await api.create(BUDGETS.format(namespace), budget(hard))

    assert refused.value.code == 422
    assert any(field.startswith("spec.hard") for field in fields_of(refused.value))


async def test_a_budget_is_shown_with_its_use_and_who_binds(api: Api, cluster: Cluster, namespace: str) -> None:
    """`kubectl get gpubudgets` says used of allowed units, and whose budget leaves least."""
    path = BUDGETS.format(namespace)
    hard = {"gpus.cozystack.io": 0, "gpus.cozystack.io/l40s-24c": 4, "nvidia.com/AD102GL_L40S": 2}
    made = await api.create(path, budget(hard))
    binds = [{"key": "gpus.cozystack.io", "namespace": "tenant-a", "budget": "b", "hard": 3, "used": 3}]
    body = {"used": {"gpus.cozystack.io": 3}, "binding": binds, "usage": "all 3/0", "boundBy": "tenant-a", "stamp": OLD}
    body |= {"declared": {"gpus.cozystack.io": 4}, "asks": "all 4/0"}
    await api.patch(f"{path}/b/status", {"status": body})
    priorities, cells = await table(cluster, path, "b")

    assert made["spec"]["hard"] == hard
    assert list(priorities) == ["Name", "Used", "Declared", "Binds", "Age"]
    assert list(cells.values())[:-1] == ["b", "all 3/0", "all 4/0", "tenant-a"]
    with pytest.raises(Refused):
        await api.patch(f"{path}/b/status", {"status": {"stamp": OLD | {"sequence": 6}}})


async def test_workloads_and_monitors_are_shown_as_cozystack_shows_them(
    api: Api, cluster: Cluster, namespace: str
) -> None:
    """Whoever reads cozystack's tables reads ours: the same columns, in the same order, and no short names."""
    root = f"/apis/cozystack.io/v1alpha1/namespaces/{namespace}"
    status = {"kind": "postgres", "type": "db", "resources": {"cpu": "600m", "memory": "2Gi"}, "operational": True}
    head = {"apiVersion": "cozystack.io/v1alpha1", "metadata": {"name": "w"}}
    await api.create(f"{root}/workloads", head | {"kind": "Workload", "status": status})
    spec = {
        "selector": {"app": "db"},
        "kind": "postgres",
        "type": "db",
        "version": "17",
        "replicas": 3,
        "minReplicas": 2,
    }
    await api.create(f"{root}/workloadmonitors", head | {"kind": "WorkloadMonitor", "spec": spec})
    counts = {"availableReplicas": 1, "observedReplicas": 3, "operational": False}
    await api.patch(f"{root}/workloadmonitors/w/status", {"status": counts})
    _, workload = await table(cluster, f"{root}/workloads", "w")
    _, monitor = await table(cluster, f"{root}/workloadmonitors", "w")
    served = (await api.get("/apis/cozystack.io/v1alpha1"))["resources"]

    assert workload == {
        "Name": "w",
        "Kind": "postgres",
        "Type": "db",
        "CPU": "600m",
        "Memory": "2Gi",
        "Operational": True,
    }
    assert list(monitor) == [
        *("Name", "Kind", "Type", "Version", "Replicas", "MinReplicas", "Available", "Observed", "Operational")
    ]
    assert list(monitor.values()) == ["w", "postgres", "db", "17", 3, 2, 1, 3, False]
    assert all("shortNames" not in one for one in served if one["kind"].startswith("Workload"))
