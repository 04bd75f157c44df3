"""Our kinds on the model and on a real server: what both fill in and refuse."""

import pytest
import pytest_asyncio

from binder.kube import ApiError, PatchKind
from deploy.world.apiserver import ApiServer
from deploy.world.own_kinds import install
from schemas.kinds import GPU_CLAIM, GPU_CLASS, WORKLOAD, WORKLOAD_MONITOR
from tests.contracts.world import Object, World, json_of

NAME = "c"
OLD = {"generation": 2, "sequence": 7, "entry": 1}
STALE: dict[str, Object | None] = {
    "lower entry": {"generation": 2, "sequence": 7, "entry": 0},
    "lower sequence, higher entry": {"generation": 2, "sequence": 6, "entry": 9},
    "lower generation, higher rest": {"generation": 1, "sequence": 99, "entry": 9},
    "no stamp": None,
}
FRESH: dict[str, Object] = {
    "the same": OLD,
    "higher entry": {"generation": 2, "sequence": 7, "entry": 2},
    "higher sequence, lower entry": {"generation": 2, "sequence": 8, "entry": 0},
    "higher generation, lower rest": {"generation": 3, "sequence": 0, "entry": 0},
}


@pytest_asyncio.fixture
async def kinds(world: World) -> World:
    """A world that serves our kinds as their CRDs have them."""
    if isinstance(world.kube, ApiServer):
        install(world.kube)
    return world


def claim(**spec: object) -> Object:
    """A claim of one class."""
    metadata = {"name": NAME}
    return {
        "apiVersion": GPU_CLAIM.api_version,
        "kind": "GPUClaim",
        "metadata": metadata,
        "spec": {"className": "l40s"} | spec,
    }


def fields(error: ApiError) -> set[str]:
    """The field paths a refusal names."""
    return {cause.field for cause in error.causes}


async def test_count_is_one_unless_given(kinds: World) -> None:
    """A claim without a count asks for one unit."""
    await kinds.create(claim(), GPU_CLAIM)

    assert (await kinds.get(NAME, GPU_CLAIM))["spec"] == {"className": "l40s", "count": 1}


@pytest.mark.parametrize(("field", "value"), [("className", "other"), ("count", 2)])
async def test_a_claim_stays_what_it_was_made_as(kinds: World, field: str, value: object) -> None:
    """N3: className and count don't change; the refusal names the field."""
    await kinds.create(claim(), GPU_CLAIM)

    with pytest.raises(ApiError) as refused:
        await kinds.merge(NAME, {"spec": {field: value}}, GPU_CLAIM)

    assert (refused.value.code, fields(refused.value)) == (422, {f"spec.{field}"})


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"count": 0}, "spec.count"), ({"count": 65}, "spec.count"), ({"className": ""}, "spec.className")],
)
async def test_a_claim_that_makes_no_sense_is_refused(kinds: World, spec: Object, field: str) -> None:
    """A class must be named, a count lies from 1 to 64."""
    with pytest.raises(ApiError) as refused:
        await kinds.create(claim(**spec), GPU_CLAIM)

    assert (refused.value.code, fields(refused.value)) == (422, {field})


async def test_a_mode_that_is_unknown_is_refused(kinds: World) -> None:
    """A class is passed through whole or sliced, nothing else."""
    body = {"apiVersion": GPU_CLASS.api_version, "kind": "GPUClass", "metadata": {"name": kinds.namespace}}
    spec = {"resourceName": "nvidia.com/AD102GL_L40S", "mode": "Sliced"}

    with pytest.raises(ApiError) as refused:
        await kinds.create(body | {"spec": spec}, GPU_CLASS)

    assert refused.value.code == 422
    assert "spec.mode" in fields(refused.value)


async def stamped(world: World, stamp: Object | None, phase: str = "Bound") -> None:
    """Put this status in the place of the claim's, whatever stands there."""
    status = {"phase": phase} | ({"stamp": stamp} if stamp is not None else {})
    operations = [{"op": "add", "path": "/status", "value": status}]
    await world.kube.patch(
        GPU_CLAIM, world.namespace, NAME, json_of(operations), kind=PatchKind.JSON, subresource="status"
    )


@pytest.mark.parametrize("stamp", STALE.values(), ids=STALE)
async def test_a_stale_status_is_refused(kinds: World, stamp: Object | None) -> None:
    """T22: a stamp never goes back and, once there, must be there."""
    await kinds.create(claim(), GPU_CLAIM)
    await stamped(kinds, OLD)

    with pytest.raises(ApiError) as refused:
        await stamped(kinds, stamp, "Pending")

    assert (refused.value.code, fields(refused.value)) == (422, {"status"})
    assert (await kinds.get(NAME, GPU_CLAIM))["status"] == {"phase": "Bound", "stamp": OLD}


@pytest.mark.parametrize("stamp", FRESH.values(), ids=FRESH)
async def test_a_newer_status_is_taken(kinds: World, stamp: Object) -> None:
    """T22: the same stamp again, and each higher one, may write."""
    await kinds.create(claim(), GPU_CLAIM)
    await stamped(kinds, OLD)

    await stamped(kinds, stamp, "Lost")

    assert (await kinds.get(NAME, GPU_CLAIM))["status"] == {"phase": "Lost", "stamp": stamp}


def workload(status: Object) -> Object:
    """A usage record."""
    head = {"apiVersion": WORKLOAD.api_version, "kind": WORKLOAD.kind, "metadata": {"name": NAME}}
    return head | {"status": status}


async def test_a_workload_is_written_whole(kinds: World) -> None:
    """It has no status subresource, as cozystack's has none: created and patched with its status, integers and text."""
    status = {"kind": "gpu", "resources": {"gpus.cozystack.io/l40s": 2, "cpu": "500m"}, "operational": True}
    await kinds.create(workload(status), WORKLOAD)
    assert (await kinds.get(NAME, WORKLOAD))["status"] == status

    await kinds.merge(NAME, {"status": {"resources": {"cpu": None}}}, WORKLOAD)
    assert (await kinds.get(NAME, WORKLOAD))["status"]["resources"] == {"gpus.cozystack.io/l40s": 2}

    with pytest.raises(ApiError) as refused:
        await kinds.merge(NAME, {"status": {"type": "x"}}, WORKLOAD, subresource="status")
    assert refused.value.code == 404


@pytest.mark.parametrize("status", [{"kind": "gpu"}, {"resources": {}}, {"kind": "gpu", "resources": {"cpu": []}}])
async def test_a_workload_that_makes_no_sense_is_refused(kinds: World, status: Object) -> None:
    """What kind it is and what it uses must be said, the latter in quantities."""
    with pytest.raises(ApiError) as refused:
        await kinds.create(workload(status), WORKLOAD)

    assert refused.value.code == 422


async def test_a_monitor_needs_a_selector(kinds: World) -> None:
    """Which objects are meant must be said; how many are needed is no negative number."""
    head = {"apiVersion": WORKLOAD_MONITOR.api_version, "kind": WORKLOAD_MONITOR.kind, "metadata": {"name": NAME}}
    for spec in ({"kind": "db"}, {"selector": {"app": "db"}, "minReplicas": -1}):
        with pytest.raises(ApiError) as refused:
            await kinds.create(head | {"spec": spec}, WORKLOAD_MONITOR)
        assert refused.value.code == 422

    await kinds.create(head | {"spec": {"selector": {"app": "db"}, "minReplicas": 0}}, WORKLOAD_MONITOR)
    await kinds.merge(NAME, {"status": {"observedReplicas": 3}}, WORKLOAD_MONITOR, subresource="status")
    assert (await kinds.get(NAME, WORKLOAD_MONITOR))["status"] == {"observedReplicas": 3}
