"""Leaving a cluster, on the model API server: what is let go, what goes, what stays, and when it is refused."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from binder.anchor import Anchor
from binder.kube import ApiError
from binder.memory_journal import MemoryJournal
from binder.shown import in_annotations
from deploy import leaving, takeover
from deploy.adopt import adopt_fresh, begun_here
from deploy.cluster_in_memory import Cluster
from deploy.leaving import Leaving, NotStopped, await_stopped, in_use, stop_deployments
from deploy.world.faults import Call, Fault, FaultyKube
from schemas import kinds as k
from schemas import names
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME, VALIDATING_CONFIGURATION
from schemas.objects import Stamp

HOME = "gpubinder"
STAMP = {names.STAMP_ANNOTATION: "3.7.0"}
CHART_S = {leaving.PART_OF: "gpubinder"}
LAUNCHER = {names.REFERENCE_LABEL: names.REFERENCE_VALUE}


async def put(here: Cluster, kind: k.Resource, namespace: str, name: str, **body: Any) -> None:  # noqa: ANN401 - JSON
    """Create an object; `metadata` beside its name may be given."""
    metadata = {"name": name, **body.pop("metadata", {})}
    full = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}
    await here.api.create(kind, namespace, msgspec.json.encode(full))


async def shown(here: Cluster, kind: k.Resource, namespace: str, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return an object, None where it is not."""
    try:
        return msgspec.json.decode(await here.api.get(kind, namespace, name))
    except ApiError as error:
        if error.code != 404:
            raise
        return None


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster in which we decided: claims, a class, a gated launcher, a copy, a record; others' beside them."""
    here = Cluster(())
    for namespace in (HOME, "t", "kube-system"):
        here.api.writes.seed_namespace(namespace)
    await put(
        here, k.GPU_CLASS, "", "a", metadata={"finalizers": [names.CLASS_FINALIZER]},
        spec={"resourceName": "gpu/a", "mode": "Passthrough"},
    )  # fmt: skip
    for name, finalizers in (("mine", [names.CLAIM_FINALIZER, "example.org/other"]), ("plain", [])):
        spec = {"className": "a", "count": 1}
        await put(here, k.GPU_CLAIM, "t", name, metadata={"finalizers": finalizers}, spec=spec)
    gates = [{"name": names.GATE}, {"name": "example.org/gate"}]
    spec = {"schedulingGates": gates, "containers": [{"name": "compute", "image": "x"}]}
    await put(here, k.POD, "t", "waits", metadata={"labels": LAUNCHER}, spec=spec)
    await put(here, k.SECRET, "t", "copy", metadata={"labels": {names.CLASS_LABEL: "a"}, "annotations": STAMP})
    await put(here, k.SECRET, "t", "theirs", metadata={"labels": {names.CLASS_LABEL: "a"}})
    await put(here, k.GPU_BUDGET, "t", names.MIRRORED_BUDGET, metadata={"annotations": STAMP}, spec={"hard": {}})
    await put(here, k.GPU_BUDGET, "t", "theirs", spec={"hard": {}})
    claim = await shown(here, k.GPU_CLAIM, "t", "mine")
    owner = {"apiVersion": k.GPU_CLAIM.api_version, "kind": k.GPU_CLAIM.kind, "name": "mine"}
    owner["uid"] = claim["metadata"]["uid"]
    await put(here, k.WORKLOAD, "t", "gpuclaim-mine", metadata={"ownerReferences": [owner]})
    await put(here, k.WORKLOAD, "t", "pod-x")
    for lease in ("binder", "ingest"):
        await put(here, k.LEASE, HOME, f"{names.LEASE_PREFIX}{lease}", spec={})
    await put(here, k.CONFIGMAP, HOME, names.SETTINGS_CONFIGMAP, data={})
    await put(here, k.CONFIGMAP, HOME, names.ANCHOR_CONFIGMAP, data={})
    for secret in (names.DIGEST_KEY_SECRET, names.WEBHOOK_TLS_SECRET):
        await put(here, k.SECRET, HOME, secret)
    yield here
    await here.api.close()


GOES = (
    (k.SECRET, "t", "copy"),
    (k.GPU_BUDGET, "t", names.MIRRORED_BUDGET),
    (k.WORKLOAD, "t", "gpuclaim-mine"),
    (k.LEASE, HOME, f"{names.LEASE_PREFIX}binder"),
    (k.LEASE, HOME, f"{names.LEASE_PREFIX}ingest"),
    (k.CONFIGMAP, HOME, names.ANCHOR_CONFIGMAP),
    (k.SECRET, HOME, names.DIGEST_KEY_SECRET),
    (k.SECRET, HOME, names.WEBHOOK_TLS_SECRET),
)
STAYS = (
    (k.GPU_CLASS, "", "a"),
    (k.GPU_CLAIM, "t", "mine"),
    (k.GPU_CLAIM, "t", "plain"),
    (k.POD, "t", "waits"),
    (k.SECRET, "t", "theirs"),
    (k.GPU_BUDGET, "t", "theirs"),
    (k.WORKLOAD, "t", "pod-x"),
    # Whoever installed them takes them away.
    (k.CONFIGMAP, HOME, names.SETTINGS_CONFIGMAP),
)


async def test_what_is_ours_goes_and_the_rest_stays(cluster: Cluster) -> None:
    """F1, K2: finalizers and gates of ours are let go, those of others kept; done again, there is nothing to do."""
    await Leaving(cluster.api, HOME).everything()

    for place in GOES:
        assert await shown(cluster, *place) is None, place
    for place in STAYS:
        assert await shown(cluster, *place) is not None, place
    assert (await shown(cluster, k.GPU_CLAIM, "t", "mine"))["metadata"]["finalizers"] == ["example.org/other"]
    assert not (await shown(cluster, k.GPU_CLASS, "", "a"))["metadata"].get("finalizers")
    assert (await shown(cluster, k.POD, "t", "waits"))["spec"]["schedulingGates"] == [{"name": "example.org/gate"}]
    again = Leaving(cluster.api, HOME)
    await again.everything()
    assert again.told == []


async def test_a_look_changes_nothing_and_tells_all(cluster: Cluster) -> None:
    """A dry run names what a real one would change, and changes none of it."""
    looking = Leaving(cluster.api, HOME, dry=True)
    await looking.everything()
    for place in (*GOES, *STAYS):
        assert await shown(cluster, *place) is not None, place
    done = Leaving(cluster.api, HOME)
    await done.everything()

    assert looking.told == done.told
    assert len(done.told) == len(GOES) + 3


async def test_machines_that_run_or_wait_are_in_the_way(cluster: Cluster) -> None:
    """Only VMIs that ask for GPUs and have not ended count."""
    for name, phase, labels in (
        ("runs", "Running", LAUNCHER),
        ("over", "Succeeded", LAUNCHER),
        ("plain", "Running", {}),
    ):
        metadata = {"name": name, "namespace": "t", "labels": labels}
        body = {"apiVersion": k.VMI.api_version, "kind": k.VMI.kind, "metadata": metadata}
        cluster.load([{**body, "spec": {"domain": {"devices": {}}}, "status": {"phase": phase}}])

    assert await in_use(cluster.api) == ["t/runs"]


async def test_the_chart_s_deployments_are_stopped_and_no_others(cluster: Cluster) -> None:
    """Scaled to nothing are the Deployments of the chart, in our namespace."""
    for namespace, name, labels in (
        (HOME, "gpubinder-binder", CHART_S),
        (HOME, "somebody-s", {}),
        ("t", "elsewhere", CHART_S),
    ):
        await put(cluster, k.DEPLOYMENT, namespace, name, metadata={"labels": labels}, spec={"replicas": 2})

    assert await stop_deployments(cluster.api, HOME) == ["gpubinder-binder"]
    scales = [
        (await shown(cluster, k.DEPLOYMENT, *place))["spec"]["replicas"]
        for place in ((HOME, "gpubinder-binder"), (HOME, "somebody-s"), ("t", "elsewhere"))
    ]
    assert scales == [0, 2, 2]


async def test_a_pod_that_ends_is_waited_for_too(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Deployment counts no pod that drains, and one that drains writes its certificates again when they are gone."""
    monkeypatch.setattr(leaving, "STOP_SECONDS", 0.0)
    ours = {"app": "gpubinder", "role": "webhooks"}
    spec = {"replicas": 1, "selector": {"matchLabels": ours}}
    await put(cluster, k.DEPLOYMENT, HOME, "gpubinder-webhooks", metadata={"labels": CHART_S}, spec=spec)
    spec = {"containers": [{"name": "main", "image": "x"}]}
    for name, labels in (("webhooks-1", {**ours, "hash": "5"}), ("somebody-s", {"app": "gpubinder"})):
        await put(cluster, k.POD, HOME, name, metadata={"labels": labels}, spec=spec)

    with pytest.raises(NotStopped, match=r"^pod webhooks-1 in gpubinder did not stop"):
        await stop_deployments(cluster.api, HOME)
    await cluster.api.delete(k.POD, HOME, "webhooks-1")
    assert await stop_deployments(cluster.api, HOME) == ["gpubinder-webhooks"]


async def test_a_role_that_works_on_is_waited_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a lease is renewed nothing is taken away: what a role holds it would write again."""
    monkeypatch.setattr(leaving, "STOP_SECONDS", 0.0)

    async def renewed(_kube: object, _namespace: str) -> None:
        raise takeover.NotAdoptable("the binder runs")

    monkeypatch.setattr(leaving, "check_stopped", renewed)
    with pytest.raises(NotStopped, match="the binder runs"):
        await await_stopped(cluster.api, HOME)


async def test_without_licences_nobody_has_to_read_secrets(cluster: Cluster) -> None:
    """T4: who may not list Secrets tells the newest stamp of all else, and leaves all else; other refusals raise."""

    async def denied(call: Call) -> Fault | None:
        listing = call.verb == "list_page" and call.resource.plural in refused
        return Fault(ApiError(403, "Forbidden", "no")) if listing else None

    kube = FaultyKube(cluster.api, denied)
    await put(cluster, k.WORKLOAD, "t", "gpuclaim-y", metadata={"annotations": {names.STAMP_ANNOTATION: "4.1.0"}})
    refused = {k.SECRET.plural}
    assert (await in_annotations(kube)).stamp == Stamp(4, 1, 0)
    await Leaving(kube, HOME, dry=True).everything()
    refused = {k.WORKLOAD.plural}
    with pytest.raises(ApiError):
        await in_annotations(kube)
    with pytest.raises(ApiError):
        await Leaving(kube, HOME, dry=True).everything()


async def test_beginning_the_log_may_be_repeated() -> None:
    """T4: a log that stands as anchored is found begun; one that is empty, or another's, is not."""
    here = Cluster(())
    for namespace in (HOME, "kube-system"):
        here.api.writes.seed_namespace(namespace)
    journal = MemoryJournal()
    assert await begun_here(here.api, journal, HOME) is None
    tip = await adopt_fresh(here.api, journal, HOME, "test")

    assert await begun_here(here.api, journal, HOME) == tip
    assert await begun_here(here.api, MemoryJournal(), HOME) is None
    other = MemoryJournal()
    elsewhere = Cluster(())
    for namespace in (HOME, "kube-system"):
        elsewhere.api.writes.seed_namespace(namespace)
    await adopt_fresh(elsewhere.api, other, HOME, "test")
    assert await begun_here(here.api, other, HOME) is None
    assert await Anchor(here.api, HOME).read() == tip
    await here.api.close()
    await elsewhere.api.close()


async def test_webhooks_of_both_kinds_go(cluster: Cluster) -> None:
    """Nobody is asked about VMs any more: neither who changes objects nor who only answers stays registered (I2)."""
    both = (CONFIGURATION, VALIDATING_CONFIGURATION)
    for resource in both:
        cluster.api.serve(resource)
        await put(cluster, resource, "", CONFIGURATION_NAME, webhooks=[])

    await Leaving(cluster.api, HOME).everything()

    assert [await shown(cluster, resource, "", CONFIGURATION_NAME) for resource in both] == [None, None]
