"""A record is written on condition of what was seen of it, and no two owners share one (T22, C32)."""

import asyncio

import msgspec
import pytest_asyncio
from msgspec.structs import replace

from binder.kube import ApiError
from projector.mirror import Mirror
from projector.records import Record, Records, SeenRecord, read_record, shows
from projector.verdicts import LANDED, SETTLED, Kind
from schemas.kinds import CONFIGMAP, NAMESPACE, WORKLOAD
from schemas.workloads import WorkloadStatus
from schemas.writes import BlockingOwner
from tests.projector.faults import Refusal
from tests.projector.scene import SECONDS, Obj, Scene

NAME = "gpuclaim-a"


class Writing:
    """A writer of records whose mirror sees only what it is given: it may be as late as it likes."""

    def __init__(self, scene: Scene, owner: Obj) -> None:
        self.scene = scene
        self.seen: Mirror[SeenRecord] = Mirror(scene.kube, WORKLOAD, read_record, lambda _before, _after: None)
        self.records = Records(scene.kube, self.seen)
        self.record = Record(
            scene.namespace,
            NAME,
            BlockingOwner(CONFIGMAP.api_version, CONFIGMAP.kind, "owner", owner["metadata"]["uid"], block=False),
            WorkloadStatus("gpu", {"a": "1"}, "l40s", operational=True),
            {"mine": "1"},
            {"note": "1"},
        )

    async def look(self) -> None:
        """See the record as it stands."""
        self.seen.put(msgspec.json.encode(await self.scene.get(WORKLOAD, NAME)))


@pytest_asyncio.fixture
async def writing(scene: Scene) -> Writing:
    """A writer, and an owner for its record."""
    return Writing(scene, await scene.create(CONFIGMAP, {"metadata": {"name": "owner"}}))


async def test_what_is_seen_is_what_was_written(writing: Writing) -> None:
    """Created, and then changed in one write, a record shows what it must; the answers are seen at once."""
    assert await writing.records.write(writing.record) == LANDED
    seen = writing.seen.get(writing.scene.namespace, NAME)
    assert seen is not None
    assert shows(seen, writing.record)

    after = replace(writing.record, status=WorkloadStatus("gpu", {"b": "2"}), labels={"mine": "2"})
    assert await writing.records.write(after) == LANDED
    seen = writing.seen.get(writing.scene.namespace, NAME)
    assert seen is not None
    assert shows(seen, after)
    assert (await writing.scene.get(WORKLOAD, NAME))["status"] == {"kind": "gpu", "resources": {"b": "2"}}


async def test_a_writer_that_saw_another_version_writes_nothing(writing: Writing) -> None:
    """T22: between what was seen and the write somebody else wrote: the record stays, until it was seen anew."""
    await writing.records.write(writing.record)
    newer = await writing.scene.patch(WORKLOAD, NAME, {"metadata": {"annotations": {"note": "newer"}}})
    after = replace(writing.record, annotations={"note": "older"})

    late = await writing.records.write(after)

    assert (late.kind, late.code) == (Kind.AGAIN, 409)
    assert await writing.scene.get(WORKLOAD, NAME) == newer
    await writing.look()
    assert await writing.records.write(after) == LANDED


async def test_a_record_that_was_not_seen_is_not_overwritten(writing: Writing) -> None:
    """Another writer was first: ours learns of it from the watch, and compares before it writes."""
    made = await writing.scene.create(
        WORKLOAD, {"metadata": {"name": NAME}, "status": {"kind": "other", "resources": {}}}
    )

    verdict = await writing.records.write(writing.record)

    assert (verdict.kind, verdict.code) == (Kind.AGAIN, 409)
    assert await writing.scene.get(WORKLOAD, NAME) == made


async def test_the_record_of_another_owner_makes_way(writing: Writing) -> None:
    """C32: it is deleted as it was seen, and one of our own is made: no record passes from one owner to the next."""
    await writing.records.write(writing.record)
    first = await writing.scene.get(WORKLOAD, NAME)
    other = await writing.scene.create(CONFIGMAP, {"metadata": {"name": "next"}})
    owner = BlockingOwner(CONFIGMAP.api_version, CONFIGMAP.kind, "next", other["metadata"]["uid"], block=False)
    record = replace(writing.record, owner=owner)

    assert (await writing.records.write(record)).kind is Kind.AGAIN
    assert await writing.scene.find(WORKLOAD, NAME) is None
    writing.seen.drop(writing.scene.namespace, NAME, "9" * 30)
    assert await writing.records.write(record) == LANDED
    assert (await writing.scene.get(WORKLOAD, NAME))["metadata"]["uid"] != first["metadata"]["uid"]


async def test_the_record_of_another_owner_stays_where_it_changed_meanwhile(writing: Writing) -> None:
    """T21: what is deleted is what was seen; a record that was written since is looked at again."""
    await writing.records.write(writing.record)
    await writing.scene.patch(WORKLOAD, NAME, {"metadata": {"labels": {"mine": "3"}}})
    owner = BlockingOwner(CONFIGMAP.api_version, CONFIGMAP.kind, "next", "another-uid", block=False)

    verdict = await writing.records.write(replace(writing.record, owner=owner))

    assert (verdict.kind, verdict.code) == (Kind.AGAIN, 409)
    assert (await writing.scene.get(WORKLOAD, NAME))["metadata"]["labels"]["mine"] == "3"


async def test_in_a_namespace_that_goes_nothing_is_made(writing: Writing) -> None:
    """There is nothing left to record where the namespace is going or gone: that is the end of it."""
    scene = writing.scene
    await scene.kube.delete(NAMESPACE, "", scene.namespace)

    async with asyncio.timeout(SECONDS):
        verdict = await writing.records.write(writing.record)

    assert verdict == SETTLED


async def test_a_refusal_is_told_without_its_values(model: Scene) -> None:
    """T16: code and reason of what the API server refuses go on, its message does not."""
    owner = await model.create(CONFIGMAP, {"metadata": {"name": "owner"}})
    refusal = Refusal(ApiError(403, "Forbidden", "hunter2 exceeds the quota"), WORKLOAD)
    made = Writing(model, owner)

    verdict = await Records(refusal.door(model.kube), made.seen).write(made.record)

    assert (verdict.kind, verdict.code, verdict.reason) == (Kind.REFUSED, 403, "Forbidden")
    assert "hunter2" not in str(verdict)
