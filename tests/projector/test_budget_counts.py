"""Budget status says what is held and who binds: from the folded state, on change, seldom for what happens above."""

import asyncio

import msgspec
import pytest

from binder.kube import ApiError, PatchKind
from ingest.budgets import read_budget
from projector.budget_counts import SECONDS_ABOVE, BudgetCounts
from projector.paced import SECONDS_BETWEEN
from schemas.budgets import BINDINGS_MAX, KEYS_MAX, TEXT_MAX
from schemas.kinds import GPU_BUDGET, NAMESPACE
from schemas.names import BUDGET_TOTAL
from schemas.objects import VmView
from schemas.quantity import AMOUNT_MAX
from tests.binder.tenancy import L40S, Tenancy, key
from tests.projector.faults import Refusal
from tests.projector.scene import Obj, Scene, time_passes

A, B, ROOT = "tenant-a", "tenant-a-b", "tenant-root"


async def budget(scene: Scene, world: Tenancy, namespace: str, **hard: int) -> None:
    """Create a budget in the API server, and let the binder hear of it."""
    if namespace != scene.namespace:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await scene.kube.create(NAMESPACE, "", msgspec.json.encode(body))
    limits = {key(one): units for one, units in hard.items()}
    made = {"apiVersion": GPU_BUDGET.api_version, "kind": GPU_BUDGET.kind, "metadata": {"name": "b"}}
    stored = await scene.kube.create(GPU_BUDGET, namespace, msgspec.json.encode(made | {"spec": {"hard": limits}}))
    world.scene.show(read_budget(stored))


async def shown(scene: Scene, namespace: str) -> Obj:
    """Return a budget's status."""
    status: Obj = msgspec.json.decode(await scene.kube.get(GPU_BUDGET, namespace, "b")).get("status", {})
    return status


async def test_a_budget_shows_what_is_held_under_it(scene: Scene) -> None:
    """C28: used and declared units of its keys, zeros included, and an older count is refused (T22)."""
    world = Tenancy()
    await budget(scene, world, scene.namespace, l40s=4, total=9, h100=1)
    world.start(scene.namespace, "vm", l40s=3)
    stopped = VmView("stopped", "", "", scene.namespace, gpus='[{"className":"l40s","count":2}]')
    world.scene.show(stopped)
    world.raw(scene.namespace, "raw", l40s=1)
    await BudgetCounts(scene.kube).write(world.scene.book)
    status = await shown(scene, scene.namespace)
    world.scene.book.state.events_seq -= 1
    world.stop(scene.namespace, "vm")
    world.scene.book.state.events_seq -= 9
    await BudgetCounts(scene.kube).write(world.scene.book)

    assert status["used"] == {key("l40s"): 3, BUDGET_TOTAL: 3, key("h100"): 0}
    assert status["declared"] == {key("l40s"): 5, BUDGET_TOTAL: 5, key("h100"): 0}
    assert status["asks"] == "h100 0/1, l40s 5/4, total 5/9"
    assert (status["usage"], status["boundBy"]) == ("h100 0/1, l40s 3/4, total 3/9", "itself")
    assert await shown(scene, scene.namespace) == status


async def test_the_ancestors_that_bind_are_named(model: Scene) -> None:
    """C28: for each key of the line the budget that leaves least, with its numbers."""
    world = Tenancy()
    await budget(model, world, ROOT, total=10)
    await budget(model, world, A, l40s=4)
    await budget(model, world, B, l40s=9, h100=2)
    world.start(A, "vm", l40s=3)
    world.start(B, "vm", l40s=1)
    await BudgetCounts(model.kube).write(world.scene.book)
    status = await shown(model, B)

    assert status["used"] == {key("l40s"): 1, key("h100"): 0}
    assert status["boundBy"] == "tenant-root: total 4/10, tenant-a: l40s 4/4"
    assert status["binding"] == [
        {"key": BUDGET_TOTAL, "namespace": ROOT, "budget": "b", "hard": 10, "used": 4},
        {"key": key("h100"), "namespace": B, "budget": "b", "hard": 2, "used": 0},
        {"key": key("l40s"), "namespace": A, "budget": "b", "hard": 4, "used": 4},
    ]
    assert (await shown(model, A))["usage"] == "l40s 4/4"


async def test_raw_units_are_shown_under_their_resource(model: Scene) -> None:
    """A pod without a claim counts under the name that it requests; what no status can hold is shown as the most."""
    world = Tenancy()
    await budget(model, world, A, **{L40S: 2})
    world.raw(A, "raw", l40s=1)
    world.start(A, "vm", l40s=1)
    counts = BudgetCounts(model.kube)
    await counts.write(world.scene.book)
    usage = (await shown(model, A))["usage"]
    world.raw(A, "huge", l40s=AMOUNT_MAX)
    await counts.write(world.scene.book)
    status = await shown(model, A)

    assert usage == f"{L40S} 1/2"
    assert (status["used"], status["binding"][0]["used"]) == ({L40S: AMOUNT_MAX}, AMOUNT_MAX)


async def test_keys_that_went_do_not_stay(model: Scene) -> None:
    """A budget's status has the keys that it has now; what shows as it should is not written again."""
    world = Tenancy()
    await budget(model, world, A, l40s=2, total=2)
    counts = BudgetCounts(model.kube)
    await counts.write(world.scene.book)
    patch = [{"op": "remove", "path": f"/spec/hard/{BUDGET_TOTAL}"}]
    stored = await model.kube.patch(GPU_BUDGET, A, "b", msgspec.json.encode(patch), kind=PatchKind.JSON)
    world.scene.show(read_budget(stored))
    await counts.write(world.scene.book)
    first = await shown(model, A)
    world.scene.tick(1)
    await counts.write(world.scene.book)
    await BudgetCounts(model.kube).write(world.scene.book)

    assert first["used"] == {key("l40s"): 0}
    assert await shown(model, A) == first


async def test_more_keys_than_a_status_takes_are_told_of_as_far_as_it_takes_them(model: Scene) -> None:
    """B1: a line of tenants may limit more keys than one budget can: those that leave least are told, and written."""
    world = Tenancy()
    for level in range(5):
        many = {f"{'x' * 200}.example/{level}-{number:02}": 9 for number in range(KEYS_MAX)}
        await budget(model, world, A + "-b" * level, **many)
    deepest = A + "-b" * 4
    await budget(model, world, ROOT, l40s=1)
    await BudgetCounts(model.kube).write(world.scene.book)
    status = await shown(model, deepest)

    assert len(status["used"]) == KEYS_MAX
    assert len(status["binding"]) == BINDINGS_MAX
    assert status["binding"][0]["key"] == key("l40s")
    assert len(status["boundBy"]) == TEXT_MAX


@pytest.mark.looptime
async def test_a_budget_is_written_at_most_once_a_second_and_seldom_for_others(model: Scene) -> None:
    """Its own use shows within a second; that of an ancestor alone within half a minute."""
    world = Tenancy(units=100)
    await budget(model, world, ROOT, total=90)
    await budget(model, world, A, l40s=50)
    counts = BudgetCounts(model.kube)
    running = asyncio.create_task(counts.run(world.scene.book))
    counts.changed()
    await time_passes(SECONDS_BETWEEN + 0.1)
    stamps: dict[str, list[int]] = {A: [], ROOT: []}
    for number in range(30):
        world.start("tenant-x", f"x{number}", l40s=1)
        counts.changed()
        await time_passes(0.1)
        for namespace, seen in stamps.items():
            seen.append((await shown(model, namespace))["stamp"]["sequence"])
    world.start(A, "vm", l40s=2)
    counts.changed()
    await time_passes(SECONDS_BETWEEN + 0.1)
    own = (await shown(model, A))["usage"]
    world.start("tenant-x", "last", l40s=5)
    counts.changed()
    await time_passes(SECONDS_BETWEEN + 0.1)
    before = (await shown(model, A))["boundBy"]
    await time_passes(SECONDS_ABOVE + SECONDS_BETWEEN)
    after = (await shown(model, A))["boundBy"]
    running.cancel()

    assert len(set(stamps[A])) == 1
    assert 2 <= len(set(stamps[ROOT])) <= 5
    assert own == "l40s 2/50"
    assert (before, after) == ("tenant-root: total 32/90", "tenant-root: total 37/90")


async def test_t12_a_status_that_a_backup_took_back_is_read_again(model: Scene) -> None:
    """T12: what was written is taken for shown, until a look again finds it otherwise; what stands is left alone."""
    world = Tenancy()
    await budget(model, world, A, l40s=2)
    await budget(model, world, B, l40s=1)
    counts = BudgetCounts(model.kube)
    await counts.write(world.scene.book)
    first, other = await shown(model, A), await shown(model, B)
    older = msgspec.json.encode({"status": {"usage": "l40s 9/9"}})
    await model.kube.patch(GPU_BUDGET, A, "b", older, kind=PatchKind.MERGE, subresource="status")
    world.scene.book.state.events_seq += 1
    await counts.write(world.scene.book)
    untouched = await shown(model, A)

    counts.look_again()
    await counts.write(world.scene.book)
    again = await shown(model, A)

    assert untouched["usage"] == "l40s 9/9"
    assert again.pop("stamp") != first.pop("stamp")
    assert again == first
    assert await shown(model, B) == other


@pytest.mark.looptime
async def test_a_status_that_was_not_taken_is_written_later(model: Scene) -> None:
    """A server that can't be reached is asked again without another change; a budget that is gone is passed over."""
    world = Tenancy()
    await budget(model, world, A, l40s=2)
    world.budget("tenant-gone", l40s=1)
    refusal = Refusal(ApiError(0, "Unreachable", ""), GPU_BUDGET)
    counts = BudgetCounts(refusal.door(model.kube))
    running = asyncio.create_task(counts.run(world.scene.book))
    counts.changed()
    await time_passes(5)
    assert await shown(model, A) == {}

    refusal.over = True
    await time_passes(5)
    running.cancel()

    assert (await shown(model, A))["usage"] == "l40s 0/2"
