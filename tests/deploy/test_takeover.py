"""Taking over on the model API server: which generation begins, whose log it is, and when none may begin (T4, T22)."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import msgspec
import pytest
import pytest_asyncio

from binder.anchor import Anchor
from binder.follower import Follower
from binder.kube import PatchKind
from binder.logbook import append_genesis
from binder.memory_journal import MemoryJournal
from binder.snapshots import StateSnapshots
from binder.state import empty_state
from binder.tip import Tip
from deploy import takeover
from deploy.adopt import NotFresh, adopt_fresh, cluster_id, tip_of
from deploy.cluster_in_memory import Cluster
from deploy.takeover import NotAdoptable, beginning, look, take_over
from schemas.decisions import HeldAdopted
from schemas.frames import Genesis, decode_record
from schemas.kinds import CONFIGMAP, GPU_BUDGET, GPU_CLAIM, GPU_CLASS, LEASE, NODE, POD, SECRET, WORKLOAD, Resource
from schemas.names import (
    ADMISSION_ANNOTATION,
    ANCHOR_CONFIGMAP,
    CLASS_LABEL,
    GATE,
    REFERENCE_LABEL,
    STAMP_ANNOTATION,
)
from schemas.streams import DECISIONS, EVENTS, EVENTS_TICK

HOME = "gpubinder"
STAMP = {"generation": 3, "sequence": 7, "entry": 0}


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster with a node, a class and a claim that a third generation decided."""
    here = Cluster(())
    for namespace in (HOME, "t"):
        here.api.writes.seed_namespace(namespace)
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"gpu/a": "2"}}}
    await _create(here, NODE, "", {**node, "apiVersion": "v1", "kind": "Node"})
    spec = {"resourceName": "gpu/a", "mode": "Passthrough"}
    await _create(here, GPU_CLASS, "", _object(GPU_CLASS, "a", spec))
    await _create(here, GPU_CLAIM, "t", _object(GPU_CLAIM, "mine", {"className": "a", "count": 1}))
    status = {"phase": "Bound", "nodeName": "n1", "resourceName": "gpu/a", "stamp": STAMP}
    body = msgspec.json.encode({"status": status})
    await here.api.patch(GPU_CLAIM, "t", "mine", body, kind=PatchKind.MERGE, subresource="status")
    yield here
    await here.api.close()


def _object(kind: Resource, name: str, spec: object) -> dict[str, object]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


async def _create(here: Cluster, kind: Resource, namespace: str, body: object) -> None:
    await here.api.create(kind, namespace, msgspec.json.encode(body))


async def _genesis(journal: MemoryJournal, sequence: int) -> Genesis:
    message = await journal.get(DECISIONS, sequence)
    assert message is not None
    record = decode_record(message.body)
    assert isinstance(record, Genesis)
    return record


async def test_without_an_anchor_the_next_generation_beats_every_stamp(cluster: Cluster) -> None:
    """T22: NATS and anchor are lost; what objects show tells which generation must begin, and under a new name."""
    journal = MemoryJournal()

    [found] = [one for one in (await look(cluster.api, HOME)).booked if isinstance(one, HeldAdopted)]
    tip = await take_over(cluster.api, journal, HOME, "test")

    assert (found.node, found.claims[0].resource) == ("n1", "gpu/a")
    assert (tip.generation, (await _genesis(journal, 1)).adopts) == (4, True)
    assert await Anchor(cluster.api, HOME).read() == tip
    with pytest.raises(NotAdoptable, match="there is nothing to take over"):
        await take_over(cluster.api, journal, HOME, "test")


async def test_the_log_keeps_its_name_where_an_anchor_tells_it(cluster: Cluster) -> None:
    """T4: over an empty NATS the anchored log goes on as its next generation; the anchor stands on it then."""
    anchor = Anchor(cluster.api, HOME)
    await anchor.create(Tip("mylog", 5, 2, 90, bytes(32), bytes(32), 70))
    journal = MemoryJournal()

    begun = await beginning(cluster.api, journal, HOME)
    tip = await take_over(cluster.api, journal, HOME, "test")

    assert (begun.log_id, begun.generation, begun.anchored) == ("mylog", 6, True)
    assert (tip.log_id, tip.generation, tip.sequence) == ("mylog", 6, 1)
    assert await anchor.read() == tip


async def test_snapshots_of_a_log_that_is_lost_are_forgotten(cluster: Cluster) -> None:
    """T4: the log is lost and its snapshots are not: nobody goes on from one that stands nowhere in the new log."""
    journal = MemoryJournal()
    snapshots = StateSnapshots(journal, "test")
    await snapshots.keep(empty_state(), Tip("mylog", 5, 2, 90, bytes(32), bytes(32), 70))

    await take_over(cluster.api, journal, HOME, "test")

    assert await snapshots.newest() is None


async def test_an_anchor_that_cant_be_read_is_replaced(cluster: Cluster) -> None:
    """T4: whoever wrote nonsense into the ConfigMap has not ended the cluster."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ANCHOR_CONFIGMAP}, "data": {"logId": "x"}}
    await _create(cluster, CONFIGMAP, HOME, body)

    tip = await take_over(cluster.api, MemoryJournal(), HOME, "test")

    assert await Anchor(cluster.api, HOME).read() == tip


async def test_a_log_shorter_than_its_anchor_goes_on_in_its_streams(cluster: Cluster) -> None:
    """T3, T4: the tail is lost; the generation begins behind what is left, and after the last input that stands."""
    journal = MemoryJournal()
    await append_genesis(journal, Genesis("mylog", 1, await cluster_id(cluster.api), "test"))
    await journal.append(EVENTS, EVENTS_TICK, b"{}", message_id="one")
    await Anchor(cluster.api, HOME).create(Tip("mylog", 1, 2, 40, bytes(32), bytes(32), 9))

    tip = await take_over(cluster.api, journal, HOME, "test")

    assert (tip.log_id, tip.generation, tip.sequence, tip.covers_to) == ("mylog", 4, 2, 1)
    assert (await _genesis(journal, 2)).events_last == 1


async def test_decisions_whose_inputs_are_lost_are_taken_over(cluster: Cluster) -> None:
    """T3, T4: DECISIONS stands as its anchor says, and EVENTS ends before what it covers: nobody can follow it."""
    journal = MemoryJournal()
    genesis = Genesis("mylog", 1, await cluster_id(cluster.api), "test", adopts=True, events_last=7)
    await Anchor(cluster.api, HOME).create(await tip_of(journal, await append_genesis(journal, genesis)))

    tip = await take_over(cluster.api, journal, HOME, "test")

    assert (tip.log_id, tip.generation, tip.sequence, tip.covers_to) == ("mylog", 4, 2, 0)


async def test_an_adopt_cut_off_before_its_anchor_is_done_again(cluster: Cluster) -> None:
    """T4: a genesis that no anchor names leads nobody; the next adopt begins the generation after it."""
    journal = MemoryJournal()
    await take_over(cluster.api, journal, HOME, "test")
    await cluster.api.delete(CONFIGMAP, HOME, ANCHOR_CONFIGMAP)

    tip = await take_over(cluster.api, journal, HOME, "test")

    assert (tip.generation, tip.sequence) == (5, 2)


@pytest.mark.parametrize(("log_id", "kube_system"), [("mylog", "another"), ("another", "")])
async def test_another_log_or_another_cluster_s_is_left_alone(cluster: Cluster, log_id: str, kube_system: str) -> None:
    """T4: a mistyped NATS URL finds a log that is not ours: nothing is appended to it."""
    journal = MemoryJournal()
    await append_genesis(journal, Genesis(log_id, 1, kube_system or await cluster_id(cluster.api), "test"))
    await Anchor(cluster.api, HOME).create(Tip("mylog", 1, 2, 40, bytes(32), bytes(32), 9))

    with pytest.raises(NotAdoptable, match="check the NATS URL"):
        await take_over(cluster.api, journal, HOME, "test")

    assert (await journal.info(DECISIONS)).last == 1


async def test_nothing_is_taken_over_beside_a_role_that_runs(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """T11: an old ingest or projector would go on beside the new generation; a lease that stands still is no role."""
    monkeypatch.setattr(takeover, "LEASE_SECONDS", 0.2)
    spec = {"holderIdentity": "host-1", "renewTime": "2026-01-01T00:00:00.000000Z"}
    await _create(cluster, LEASE, HOME, _object(LEASE, "gpubinder-ingest", spec))

    async def renew() -> None:
        for second in count():
            body = msgspec.json.encode({"spec": {"renewTime": f"2026-01-01T00:00:00.{second:06}Z"}})
            await cluster.api.patch(LEASE, HOME, "gpubinder-ingest", body, kind=PatchKind.MERGE)
            await asyncio.sleep(0)

    journal, role = MemoryJournal(), asyncio.create_task(renew())
    with pytest.raises(NotAdoptable, match="the ingest runs, as host-1"):
        await take_over(cluster.api, journal, HOME, "test")
    role.cancel()
    assert (await journal.info(DECISIONS)).last == 0
    assert (await take_over(cluster.api, journal, HOME, "test")).generation == 4


@pytest.mark.parametrize("shown", ["a licence copy", "a usage record", "a class", "a budget"])
async def test_whatever_shows_a_generation_is_beaten_and_nothing_begins_below_it(shown: str) -> None:
    """T4, T22: what a lost log wrote stands alone: it is no fresh cluster, and the next generation is above it."""
    here = Cluster(())
    for namespace in (HOME, "t"):
        here.api.writes.seed_namespace(namespace)
    note = {STAMP_ANNOTATION: "6.40.0"}
    match shown:
        case "a licence copy":
            metadata = {"name": "gpu-licence-a", "labels": {CLASS_LABEL: "a"}, "annotations": note}
            await _create(here, SECRET, "t", {"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        case "a usage record":
            body = {"apiVersion": WORKLOAD.api_version, "kind": WORKLOAD.kind}
            await _create(here, WORKLOAD, "t", body | {"metadata": {"name": "gpuclaim-x", "annotations": note}})
        case "a class":
            await _create(here, GPU_CLASS, "", _object(GPU_CLASS, "a", {"resourceName": "g/a", "mode": "Passthrough"}))
            await _stamped(here, GPU_CLASS, "", "a")
        case _:
            await _create(here, GPU_BUDGET, "t", _object(GPU_BUDGET, "b", {"hard": {"gpus.cozystack.io": 1}}))
            await _stamped(here, GPU_BUDGET, "t", "b")

    if shown in {"a class", "a budget"}:
        # The operator's own, left when a cluster was left: a log begins anew, above what they show.
        assert (await adopt_fresh(here.api, MemoryJournal(), HOME, "test")).generation == 7
        await here.api.delete(CONFIGMAP, HOME, ANCHOR_CONFIGMAP)
    else:
        with pytest.raises(NotFresh, match=r"shows the decision 6\.40\.0, is left of an earlier life"):
            await adopt_fresh(here.api, MemoryJournal(), HOME, "test")
    tip = await take_over(here.api, MemoryJournal(), HOME, "test")

    assert tip.generation == 7


async def _stamped(here: Cluster, kind: Resource, namespace: str, name: str) -> None:
    body = msgspec.json.encode({"status": {"stamp": {"generation": 6, "sequence": 40, "entry": 0}}})
    await here.api.patch(kind, namespace, name, body, kind=PatchKind.MERGE, subresource="status")


async def test_a_generation_that_nobody_can_have_begun_is_not_believed(cluster: Cluster) -> None:
    """T22: an annotation is anybody's to write: one that would leave no number above it counts for nothing."""
    body = {"apiVersion": WORKLOAD.api_version, "kind": WORKLOAD.kind}
    note = {STAMP_ANNOTATION: "9223372036854775807.1.0"}
    await _create(cluster, WORKLOAD, "t", body | {"metadata": {"name": "mine", "annotations": note}})

    assert (await take_over(cluster.api, MemoryJournal(), HOME, "test")).generation == 4


async def test_a_log_that_its_anchor_vouches_for_is_taken_over_where_objects_show_more(cluster: Cluster) -> None:
    """T4: two logs served one cluster: what the other wrote refuses this one's writes until a generation above it."""
    journal = MemoryJournal()
    await append_genesis(journal, Genesis("mylog", 1, await cluster_id(cluster.api), "test"))
    await Anchor(cluster.api, HOME).create(await tip_of(journal, 1))

    tip = await take_over(cluster.api, journal, HOME, "test")

    assert (tip.log_id, tip.generation, tip.sequence) == ("mylog", 4, 2)


async def test_an_empty_cluster_is_not_taken_over() -> None:
    """T4: where nothing was ever decided a log is begun with --fresh, not by leaving out a word."""
    here = Cluster(())
    here.api.writes.seed_namespace(HOME)

    with pytest.raises(NotAdoptable, match="say --fresh"):
        await take_over(here.api, MemoryJournal(), HOME, "test")


@pytest.mark.parametrize("left", ["an order", "a gated pod", "a stamped pod"])
async def test_what_keeps_a_fresh_log_away_can_be_taken_over(left: str) -> None:
    """T4: an order or a pod that no log ever spoke of, be it forged or restored, leaves one of the two beginnings."""
    here = Cluster(())
    for namespace in (HOME, "t"):
        here.api.writes.seed_namespace(namespace)
    if left == "an order":
        await _create(here, GPU_CLAIM, "t", _object(GPU_CLAIM, "mine", {"className": "a", "count": 1}))
    else:
        marks: dict[str, object] = {"name": "p", "labels": {REFERENCE_LABEL: "x"}}
        if left == "a stamped pod":
            marks["annotations"] = {ADMISSION_ANNOTATION: "forged"}
        gates = [{"name": GATE}] if left == "a gated pod" else []
        spec = {"schedulingGates": gates, "containers": [{"name": "c", "image": "i"}]}
        await _create(here, POD, "t", {"apiVersion": "v1", "kind": "Pod", "metadata": marks, "spec": spec})
    journal = MemoryJournal()

    with pytest.raises(NotFresh, match="without --fresh"):
        await adopt_fresh(here.api, journal, HOME, "test")
    tip = await take_over(here.api, journal, HOME, "test")

    state = await Follower(journal).start()
    assert (tip.generation, state.generation, state.adopting) == (1, 1, True)
    assert await Anchor(here.api, HOME).read() == tip
