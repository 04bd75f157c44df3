"""Class status counts what is there: from the folded state, only on change, never backwards."""

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from binder.book import Book
from binder.kube import ApiError, PatchKind
from binder.state import GpuSet, Holding, State, empty_state
from projector.counts import Amount, ClassCounts, amounts
from projector.paced import SECONDS_BETWEEN
from schemas.classes import Mode
from schemas.decisions import HeldClaim, TemplateClaim, VmiId
from schemas.kinds import GPU_CLASS
from schemas.objects import ClassView, NodeView, PodView, Stamp, Taint, Toleration
from schemas.reasons import Unkept
from tests.projector.faults import Refusal
from tests.projector.scene import Obj, Scene, time_passes

CARD, SLICE = "nvidia.com/AD102GL_L40S", "nvidia.com/NVIDIA_L40S-24C"
GPU_TAINT = Taint("gpu", "", "NoSchedule")


def node(name: str, units: int, **fields: object) -> NodeView:
    """A ready node with this many cards."""
    made = NodeView(name, f"uid-{name}", "1", ready=True, allocatable={CARD: units, "cpu": 64_000})
    return replace(made, **fields)


def booked(name: str, on: str, units: int) -> GpuSet:
    """A set on a node."""
    vmi = VmiId("tenant-a", name, f"uid-{name}")
    claims = (TemplateClaim(f"{name}-0", "l40s", units, CARD),)
    return GpuSet(vmi, Stamp(1, 1), 0, claims=claims, node=on, pod=name, pod_uid=name, requests={CARD: units})


def cluster() -> State:
    """Three nodes that take pods, one each that is cordoned, not ready and tainted; two classes, two bookings."""
    state = empty_state()
    state.generation, state.events_seq = 1, 7
    nodes = [
        node("n1", 4),
        node("n2", 4),
        node("n3", 0),
        node("n4", 4, unschedulable=True),
        node("n5", 4, ready=False),
        node("n6", 8, taints=(GPU_TAINT,)),
    ]
    tolerant = ClassView("l40s-all", "uid-all", "1", resource=CARD, tolerations=(Toleration("gpu", "Exists"),))
    classes = [
        ClassView("l40s", "uid-l40s", "1", resource=CARD),
        tolerant,
        ClassView("s", "uid-s", "1", resource=SLICE),
    ]
    other = PodView("raw", "uid-raw", "1", "tenant-b", node="n2", phase="Running", requests={CARD: 1})
    state.objects["nodes"] = {view.key: view for view in nodes}
    state.objects["gpuclasses"] = {view.key: view for view in classes}
    state.objects["pods"] = {other.key: other}
    state.sets = {one.vmi.uid: one for one in (booked("a", "n1", 1), booked("b", "n4", 2))}
    return state


def test_units_are_counted_by_resource() -> None:
    """Allocatable is what nodes offer, held what is booked, free what is left where the class is served."""
    counted = amounts(Book(cluster()))

    assert counted["l40s"] == Amount(allocatable=24, held=3, free=3 + 3, most_free=3)
    assert counted["l40s-all"] == Amount(allocatable=24, held=3, free=3 + 3 + 8, most_free=8)
    assert counted["s"] == Amount(0, 0, 0, 0)


def test_more_used_than_offered_is_no_negative_room() -> None:
    """C40: a node whose allocatable fell below what is used has nothing free, and takes nothing off the others."""
    state = cluster()
    state.objects["nodes"]["n1"] = node("n1", 0)
    state.objects["nodes"]["n2"] = node("n2", 2)
    state.sets["uid-c"] = booked("c", "n2", 3)

    assert amounts(Book(state))["l40s"] == Amount(allocatable=18, held=6, free=0, most_free=0)


def test_held_claims_count_once() -> None:
    """Whether nobody holds a claim or a VMI does, whose set is booked; one without a node counts nothing."""
    state = cluster()
    alone = HeldClaim("alone", "uid-1", "l40s", 1, CARD)
    used = HeldClaim("used", "uid-2", "l40s", 2, CARD)
    lost = HeldClaim("lost", "uid-3", "l40s", 1, CARD)
    gpu_set = replace(booked("c", "n2", 1), held=(used,), requests={CARD: 3})
    state.sets[gpu_set.vmi.uid] = gpu_set
    for holding in (
        Holding("tenant-a", alone, node="n1"),
        Holding("tenant-a", used, node="n2", attached=gpu_set.vmi),
        Holding("tenant-a", lost, lost=Unkept.NODE_GONE),
    ):
        state.holdings[f"tenant-a/{holding.claim.name}"] = holding

    counted = amounts(Book(state))["l40s"]

    assert counted == Amount(allocatable=24, held=3 + 1 + 3, free=4 - 2 + 4 - 4, most_free=2)


async def made(model: Scene, *names: str) -> None:
    """Create classes."""
    for name in names:
        spec = {"resourceName": CARD, "mode": Mode.PASSTHROUGH}
        body = {"apiVersion": GPU_CLASS.api_version, "kind": "GPUClass", "metadata": {"name": name}, "spec": spec}
        await model.kube.create(GPU_CLASS, "", msgspec.json.encode(body))


async def shown(model: Scene, name: str) -> Obj:
    """Return a class's status."""
    status: Obj = msgspec.json.decode(await model.kube.get(GPU_CLASS, "", name)).get("status", {})
    return status


async def test_counts_are_written_only_on_change(model: Scene) -> None:
    """The status shows the counts and the stamp; a new start and a step that counts the same write nothing."""
    await made(model, "l40s", "l40s-all", "s")
    book = Book(cluster())
    counts = ClassCounts(model.kube)
    await counts.write(book)
    first = await shown(model, "l40s")
    book.state.events_seq = 8

    await counts.write(book)
    await ClassCounts(model.kube).write(book)

    stamp = {"generation": 1, "sequence": 7, "entry": 0}
    assert first == {"allocatable": 24, "held": 3, "free": 6, "mostFree": 3, "stamp": stamp}
    assert await shown(model, "l40s") == first


async def test_a_class_under_the_name_of_one_that_is_gone_is_counted_too(model: Scene) -> None:
    """K2: deleted and made anew within a second, a class shows counts that are those of the one before."""
    await made(model, "l40s")
    state = cluster()
    state.objects["gpuclasses"] = {"l40s": ClassView("l40s", "uid-l40s", "1", resource=CARD)}
    counts = ClassCounts(model.kube)
    await counts.write(Book(state))
    first = await shown(model, "l40s")
    await model.kube.delete(GPU_CLASS, "", "l40s")
    await made(model, "l40s")
    state.objects["gpuclasses"] = {"l40s": ClassView("l40s", "uid-anew", "2", resource=CARD)}

    await counts.write(Book(state))

    assert first["allocatable"] == 24
    assert await shown(model, "l40s") == first


async def test_t12_counts_that_a_backup_took_back_are_read_again(model: Scene) -> None:
    """T12: what was written is taken for shown, until a look again finds it otherwise; what stands is left alone."""
    await made(model, "l40s", "s")
    state = cluster()
    del state.objects["gpuclasses"]["l40s-all"]
    counts = ClassCounts(model.kube)
    await counts.write(Book(state))
    first, other = await shown(model, "l40s"), await shown(model, "s")
    older = msgspec.json.encode({"status": {"allocatable": 1, "held": 0, "free": 1, "mostFree": 1}})
    await model.kube.patch(GPU_CLASS, "", "l40s", older, kind=PatchKind.MERGE, subresource="status")
    state.events_seq = 8
    await counts.write(Book(state))
    untouched = await shown(model, "l40s")

    counts.look_again()
    known = dict(counts.shown)
    await counts.write(Book(state))

    assert (untouched["allocatable"], known["l40s"].allocatable) == (1, 24)
    assert await shown(model, "l40s") == first | {"stamp": first["stamp"] | {"sequence": 8}}
    assert await shown(model, "s") == other


async def test_an_old_count_does_not_overwrite_a_newer_one(model: Scene) -> None:
    """T22: a writer behind the log is refused, and reads what stands there."""
    await made(model, "l40s", "l40s-all", "s")
    newer, older = Book(cluster()), Book(cluster())
    newer.state.events_seq = 9
    older.state.sets.clear()
    await ClassCounts(model.kube).write(newer)

    await ClassCounts(model.kube).write(Book(older.state))

    assert (await shown(model, "l40s"))["stamp"]["sequence"] == 9


async def test_conditions_beside_the_counts_stay(model: Scene) -> None:
    """The counts are merged into the status: they are not all that stands there."""
    await made(model, "l40s", "l40s-all", "s")
    condition = {"type": "ResourceNameConflict", "status": "True", "reason": "Older", "message": ""}
    conditions = [condition | {"lastTransitionTime": "2026-05-03T10:00:00Z"}]
    patch = msgspec.json.encode({"status": {"conditions": conditions}})
    await model.kube.patch(GPU_CLASS, "", "l40s", patch, kind=PatchKind.MERGE, subresource="status")

    await ClassCounts(model.kube).write(Book(cluster()))

    status = await shown(model, "l40s")
    assert (status["conditions"], status["free"]) == (conditions, 6)


async def test_a_class_that_is_gone_is_passed_over(model: Scene) -> None:
    """A class deleted meanwhile does not keep the others from being written."""
    await made(model, "s")

    await ClassCounts(model.kube).write(Book(cluster()))

    assert (await shown(model, "s"))["allocatable"] == 0


async def test_a_class_shows_how_much_there_is(scene: Scene) -> None:
    """Counts of the folded state stand in the class's status, with zeros, and an older count is refused (T22)."""
    name, state = scene.namespace, empty_state()
    spec = {"resourceName": CARD, "mode": "Passthrough"}
    body = {"apiVersion": GPU_CLASS.api_version, "kind": "GPUClass", "metadata": {"name": name}, "spec": spec}
    await scene.kube.create(GPU_CLASS, "", msgspec.json.encode(body))
    state.objects["gpuclasses"][name] = ClassView(name, "uid", "1", resource=CARD)
    state.objects["nodes"]["n"] = NodeView("n", "uid", "1", ready=True, allocatable={CARD: 4})
    for sequence, cordoned in ((8, False), (7, True)):
        state.events_seq = sequence
        state.objects["nodes"]["n"] = replace(state.objects["nodes"]["n"], unschedulable=cordoned)
        await ClassCounts(scene.kube).write(Book(state))

    status = msgspec.json.decode(await scene.kube.get(GPU_CLASS, "", name))["status"]
    await scene.kube.delete(GPU_CLASS, "", name)
    stamp_shown = {"generation": 0, "sequence": 8, "entry": 0}
    assert status == {"allocatable": 4, "held": 0, "free": 4, "mostFree": 4, "stamp": stamp_shown}


@pytest.mark.looptime
async def test_a_class_is_written_at_most_once_a_second(model: Scene) -> None:
    """However often the state changes, a class is left alone for a second; the last count is written."""
    await made(model, "l40s", "l40s-all", "s")
    book = Book(cluster())
    counts = ClassCounts(model.kube)
    running = asyncio.create_task(counts.run(book))
    loop, seen = asyncio.get_running_loop(), []
    start = loop.time()
    for units in range(1, 31):
        book.store("nodes", "n3", node("n3", units))
        book.state.events_seq += 1
        counts.changed()
        await time_passes(0.1)
        seen.append((await shown(model, "l40s"))["stamp"]["sequence"])
    await time_passes(SECONDS_BETWEEN + 0.1)
    running.cancel()

    assert len(set(seen)) <= (loop.time() - start) / SECONDS_BETWEEN + 1
    assert (await shown(model, "l40s"))["allocatable"] == 24 + 30


@pytest.mark.looptime
async def test_a_count_that_was_not_taken_is_written_later(model: Scene) -> None:
    """A server that can't be reached is asked again, without another change."""
    await made(model, "l40s", "l40s-all", "s")
    refusal = Refusal(ApiError(0, "Unreachable", ""), GPU_CLASS)
    counts = ClassCounts(refusal.door(model.kube))
    running = asyncio.create_task(counts.run(Book(cluster())))
    counts.changed()
    await time_passes(5)
    assert await shown(model, "l40s") == {}

    refusal.over = True
    await time_passes(5)
    running.cancel()

    assert (await shown(model, "l40s"))["free"] == 6
