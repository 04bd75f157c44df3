"""Mirrors of tenants' releases: made, kept, overruling whoever edits them, and gone with the release's quotas (B1)."""

from contextlib import suppress

import msgspec
import pytest

from binder.kube import ApiError, PatchKind
from ingest.budgets import read_budget
from projector.tenant_budgets import TenantBudgets
from schemas import events as e
from schemas.kinds import GPU_BUDGET, NAMESPACE
from schemas.names import BUDGET_TOTAL, MIRRORED_BUDGET, STAMP_ANNOTATION
from schemas.objects import NamespaceView
from tests.binder.tenancy import Tenancy, key
from tests.projector.scene import Obj, Scene

ROOT, A = "tenant-root", "tenant-a"


@pytest.fixture
def world() -> Tenancy:
    """A tenant that is there, in a cluster with Flux."""
    world = Tenancy()
    world.scene.show(NamespaceView(A, "", ""))
    world.scene.progress()
    return world


async def mirror(scene: Scene, tenant: str = A) -> Obj | None:
    """Return the mirror as it stands."""
    with suppress(ApiError):
        body: Obj = msgspec.json.decode(await scene.kube.get(GPU_BUDGET, tenant, MIRRORED_BUDGET))
        return body
    return None


async def heard(scene: Scene, world: Tenancy) -> Obj:
    """Let the binder hear of the mirror, and return it."""
    found = await mirror(scene)
    assert found is not None
    world.scene.show(read_budget(msgspec.json.encode(found)))
    return found


async def test_a_release_is_mirrored_and_followed(model: Scene, world: Tenancy) -> None:
    """B1: its GPU keys, stamped; changed with it, keys that went included; what is so is not written again."""
    mirrors = TenantBudgets(model.kube)
    world.release(ROOT, A, A, l40s=4, total=6)
    await mirrors.write(world.scene.book)
    made = await heard(model, world)
    await mirrors.write(world.scene.book)
    assert await mirror(model) == made
    world.release(ROOT, A, A, total=5)
    await mirrors.write(world.scene.book)
    after = await heard(model, world)

    assert made["spec"]["hard"] == {key("l40s"): 4, BUDGET_TOTAL: 6}
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "gpubinder"}
    assert after["spec"]["hard"] == {BUDGET_TOTAL: 5}
    assert made["metadata"]["annotations"][STAMP_ANNOTATION] < after["metadata"]["annotations"][STAMP_ANNOTATION]


async def test_the_release_wins_over_whoever_edits_its_mirror(model: Scene, world: Tenancy) -> None:
    """An edit, and a budget of that name that somebody made by hand, are written over."""
    body = {"apiVersion": GPU_BUDGET.api_version, "kind": GPU_BUDGET.kind, "metadata": {"name": MIRRORED_BUDGET}}
    by_hand = msgspec.json.encode(body | {"spec": {"hard": {BUDGET_TOTAL: 99}}})
    world.scene.show(read_budget(await model.kube.create(GPU_BUDGET, A, by_hand)))
    mirrors = TenantBudgets(model.kube)
    world.release(ROOT, A, A, l40s=4)
    await mirrors.write(world.scene.book)
    assert (await heard(model, world))["spec"]["hard"] == {key("l40s"): 4}
    edit = msgspec.json.encode({"spec": {"hard": {key("l40s"): 77}}})
    await model.kube.patch(GPU_BUDGET, A, MIRRORED_BUDGET, edit, kind=PatchKind.MERGE)
    await heard(model, world)
    await mirrors.write(world.scene.book)

    assert (await heard(model, world))["spec"]["hard"] == {key("l40s"): 4}


async def test_a_mirror_goes_with_the_quotas_of_its_release(model: Scene, world: Tenancy) -> None:
    """Not before it is known that they are gone: a kind that is not served says nothing about its objects (D12)."""
    mirrors = TenantBudgets(model.kube)
    world.release(ROOT, A, A, l40s=4)
    await mirrors.write(world.scene.book)
    await heard(model, world)
    world.scene.open("helmreleases")
    world.scene.send(e.NotServed("helmreleases", world.scene.sessions["helmreleases"]))
    world.scene.book.store("helmreleases", f"{ROOT}/{A}", None)
    await mirrors.write(world.scene.book)
    assert await mirror(model) is not None
    world.release(ROOT, A, A)
    await mirrors.write(world.scene.book)
    assert await mirror(model) is not None
    world.scene.relist("helmreleases")
    await mirrors.write(world.scene.book)

    assert await mirror(model) is None


async def test_a_budget_by_hand_is_not_deleted(model: Scene, world: Tenancy) -> None:
    """One of that name that mirrors nothing, and budgets of other names, are nobody's to remove."""
    body = {"apiVersion": GPU_BUDGET.api_version, "kind": GPU_BUDGET.kind, "metadata": {"name": MIRRORED_BUDGET}}
    by_hand = msgspec.json.encode(body | {"spec": {"hard": {BUDGET_TOTAL: 99}}})
    world.scene.show(read_budget(await model.kube.create(GPU_BUDGET, A, by_hand)))
    await TenantBudgets(model.kube).write(world.scene.book)

    assert await mirror(model) is not None


async def test_unreadable_quotas_leave_the_last_known_mirror(
    model: Scene, world: Tenancy, capsys: pytest.CaptureFixture[str]
) -> None:
    """B1: a new binder that never knew them goes by the mirror; it says once which keys can't be read."""
    mirrors = TenantBudgets(model.kube)
    world.release(ROOT, A, A, l40s=4, total=6)
    await mirrors.write(world.scene.book)
    found = await heard(model, world)
    new = Tenancy()
    new.scene.show(NamespaceView(A, "", ""))
    new.scene.show(read_budget(msgspec.json.encode(found)))
    new.release(ROOT, A, A, "l40s", total=6)
    for _ in range(2):
        await mirrors.write(new.scene.book)

    assert await mirror(model) == found
    assert capsys.readouterr().out.count("quotas.unreadable") == 1


async def test_quotas_that_never_could_be_read_are_mirrored_as_none(model: Scene, world: Tenancy) -> None:
    """B1: unreadable never means unlimited, and the mirror says so."""
    world.release(ROOT, A, A, opaque=True)
    await TenantBudgets(model.kube).write(world.scene.book)

    assert (await heard(model, world))["spec"]["hard"] == {BUDGET_TOTAL: 0}


async def test_a_tenant_without_namespace_has_no_mirror_yet(model: Scene, world: Tenancy) -> None:
    """Its release comes first: the mirror is made once the namespace is there, and not in one that goes."""
    world.release(ROOT, "tenant-b", "tenant-b", l40s=4)
    mirrors = TenantBudgets(model.kube)
    await mirrors.write(world.scene.book)
    assert await mirror(model, "tenant-b") is None
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant-b"}}
    await model.kube.create(NAMESPACE, "", msgspec.json.encode(body))
    world.scene.show(NamespaceView("tenant-b", "", "", deleting=True))
    await mirrors.write(world.scene.book)
    assert await mirror(model, "tenant-b") is None
    world.scene.show(NamespaceView("tenant-b", "", ""))
    await mirrors.write(world.scene.book)

    assert await mirror(model, "tenant-b") is not None


async def test_t22_a_projector_of_the_past_leaves_a_newer_mirror(model: Scene, world: Tenancy) -> None:
    """T22: a stamp beyond its own tells it that it is behind the log."""
    world.release(ROOT, A, A, l40s=4)
    past = Tenancy()
    past.scene.show(NamespaceView(A, "", ""))
    past.release(ROOT, A, A, l40s=9)
    world.scene.tick()
    world.scene.tick()
    world.scene.tick()
    await TenantBudgets(model.kube).write(world.scene.book)
    assert past.scene.book.state.events_seq < world.scene.book.state.events_seq
    await TenantBudgets(model.kube).write(past.scene.book)

    assert (await heard(model, world))["spec"]["hard"] == {key("l40s"): 4}
