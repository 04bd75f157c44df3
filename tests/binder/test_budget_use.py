"""What counts against budgets: each unit once, for whoever holds it, and what is left of each key (B4, C34)."""

from msgspec.structs import replace

from binder.budgets import binding, first_over
from schemas import decisions as d
from schemas.objects import BudgetView, NodeView, PodView, VmView
from schemas.reasons import Unkept, Wait
from tests.binder.scene import launcher
from tests.binder.tenancy import H100, L40S, TOTAL, Tenancy, bounds, key, places

A, B, C, ROOT = "tenant-a", "tenant-a-b", "tenant-a-c", "tenant-root"


def test_c34_each_unit_is_counted_once() -> None:
    """C34, B4: a VM's claims, not their pods; a stopped VM's held claim; a raw pod by its resource."""
    world = Tenancy(units=4)
    world.scene.show(BudgetView("b", "", "", A, hard={TOTAL: 3, L40S: 1}))
    world.scene.show(VmView("u2", "", "", A, gpus='[{"claimName":"g2"}]'))
    world.order(A, "g3")
    world.order(A, "g2")
    world.start(A, "u2", "g2")
    world.run(A, "u2")
    world.start(A, "u1", l40s=1)
    world.run(A, "u1")
    world.raw(A, "raw", l40s=1)

    assert {one: world.held(A, one) for one in ("total", "l40s", L40S)} == {"total": 3, "l40s": 3, L40S: 1}
    assert world.scene.book.usage.used["n1"][L40S] == 4
    assert bounds(world.order(A, "g4")) == [d.Over(A, "b", TOTAL, 3, 3, 1)]
    assert not bounds(world.order("tenant-b", "h1"))
    assert world.holding("tenant-b", "h1").reason is Wait.NO_ROOM


def test_b4_a_lost_claim_counts_until_it_is_gone() -> None:
    """B4: its node gone it is Lost and still counts; rebound it is not asked for again; deleted it is free."""
    world = Tenancy()
    world.budget(A, l40s=2)
    world.order(A, "g1", count=2)
    world.order(A, "g2")
    world.scene.remove("nodes", "n1")
    for _ in range(10):
        world.scene.tick(10)

    assert world.holding(A, "g1").lost is Unkept.NODE_GONE
    assert (world.held(A, "l40s"), world.held(ROOT, "l40s")) == (2, 2)
    assert places(world.node(8)) == [f"{A}/g1"]
    assert world.held(A, "l40s") == 2
    claim = world.scene.objects["gpuclaims"][f"{A}/g1"]
    said = world.scene.show(replace(claim, deleting=True))
    assert places(said + world.scene.remove("gpuclaims", f"{A}/g1")) == [f"{A}/g2"]


def test_a_migrations_second_pod_is_not_counted_again() -> None:
    """C43: an admitted pod of a VMI with a set is its own wherever it runs; the set counts until the last one goes."""
    world = Tenancy()
    world.scene.show(NodeView("n2", "", "", ready=True, allocatable={L40S: 4, "cpu": 64_000}))
    world.budget(A, l40s=2)
    world.start(A, "vm", l40s=1)
    world.run(A, "vm")
    vmi = world.scene.objects["virtualmachineinstances"][f"{A}/vm"]
    assert vmi is not None
    world.scene.admit(vmi, "r-target")  # type: ignore[arg-type]  # the table of VMIs
    target = launcher(vmi, "target", "r-target", {L40S: 1, "cpu": 1000})  # type: ignore[arg-type]  # the same
    world.scene.show(replace(target, gates=(), node="n2", migration=True, phase="Running"))

    assert (world.held(A, "l40s"), world.held(A, L40S)) == (1, 0)
    world.scene.remove("pods", f"{A}/vm-pod")
    assert (world.held(A, "l40s"), world.held(A, L40S)) == (1, 0)
    world.scene.remove("pods", f"{A}/target")
    assert (world.held(A, "l40s"), world.held(A, L40S)) == (0, 0)


def test_t25_a_pod_that_says_it_is_a_vms_counts_as_raw() -> None:
    """T25: an owner and a copied stamp make no launcher; what such a pod uses is counted under its resource."""
    world = Tenancy()
    world.start(A, "vm", l40s=1)
    world.run(A, "vm")
    forged = replace(world.pod(A, "vm-pod"), name="forged", uid="uid-forged", rv="", admission="somebody")
    world.scene.show(forged)
    assert (world.held(A, "l40s"), world.held(A, L40S)) == (1, 1)
    world.scene.show(replace(forged, admission=world.pod(A, "vm-pod").admission))
    assert (world.held(A, "l40s"), world.held(A, L40S)) == (1, 1)
    world.scene.remove("pods", f"{A}/forged")
    assert (world.held(A, "l40s"), world.held(A, L40S)) == (1, 0)


def test_only_extended_resources_count_as_raw() -> None:
    """A pod's cpu and memory are no GPUs; a pod that has ended, or is on no node, holds nothing."""
    world = Tenancy()
    pod = PodView("p", "", "", A, node="n1", phase="Running", requests={"cpu": 1000, "memory": 1, H100: 2, L40S: 0})
    world.scene.show(pod)
    assert world.scene.book.budgets.used[A] == {H100: 2}
    world.scene.show(replace(pod, ended=True, phase="Succeeded"))
    assert world.scene.book.budgets.used == {}


def test_the_least_of_each_key_is_what_binds() -> None:
    """Per key the budget that leaves least, the nearest of equals, over the whole line."""
    world = Tenancy()
    world.budget(ROOT, total=10)
    world.budget(A, total=4, l40s=3)
    world.budget(B, l40s=3, h100=1)
    world.start(C, "vm", l40s=2)

    assert list(binding(world.scene.book.budgets, B)) == [
        d.Over(A, "b", TOTAL, 4, 2, 0),
        d.Over(B, "b", key("h100"), 1, 0, 0),
        d.Over(A, "b", key("l40s"), 3, 2, 0),
    ]
    assert list(binding(world.scene.book.budgets, "default")) == []


def test_another_count_of_use_may_be_asked_about() -> None:
    """B2: the same question with other units in use than those that are held: what is declared."""
    world = Tenancy()
    world.budget(A, l40s=2)
    budgets = world.scene.book.budgets

    assert first_over(budgets, B, {key("l40s"): 2}) is None
    assert first_over(budgets, B, {key("l40s"): 2}, lambda _level, _key: 1) == d.Over(A, "b", key("l40s"), 2, 1, 2)
    assert first_over(budgets, B, {key("l40s"): 0}, lambda _level, _key: 9) is None
