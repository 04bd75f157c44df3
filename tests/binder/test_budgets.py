"""Budgets at binding: whose units count where, who is let through, who waits, and who is woken (B3, B4)."""

from binder.budgets import hard_of
from binder.state import NEEDED_KINDS
from schemas import decisions as d
from schemas import events as e
from schemas.names import MIRRORED_BUDGET
from schemas.objects import BudgetView, VmView
from schemas.reasons import Wait
from tests.binder.tenancy import TOTAL, Tenancy, bounds, key, places

A, B, C, D, ROOT = "tenant-a", "tenant-a-b", "tenant-a-c", "tenant-a-d", "tenant-root"


def test_c28_a_missing_key_is_no_limit_and_zero_is_one() -> None:
    """C28: a child without a budget is bound by its parent, a key the parent lacks by itself, zero is none."""
    world = Tenancy()
    world.budget(A, l40s=4)
    world.budget(C, l40s=9, h100=2)
    world.budget(D, total=0)

    assert places(world.start(B, "b3", l40s=3)) == [f"{B}/b3"]
    assert bounds(world.start(C, "c2", l40s=2)) == [d.Over(A, "b", key("l40s"), 4, 3, 2)]
    assert places(world.start(C, "c1", l40s=1)) == [f"{C}/c1"]
    assert bounds(world.start(A, "a1", l40s=1)) == [d.Over(A, "b", key("l40s"), 4, 4, 1)]
    assert places(world.start(A, "a5", h100=5)) == [f"{A}/a5"]
    assert bounds(world.start(C, "c3", h100=3)) == [d.Over(C, "b", key("h100"), 2, 0, 3)]
    assert bounds(world.start(D, "d1", h100=1)) == [d.Over(D, "b", TOTAL, 0, 0, 1)]


def test_c29_use_is_rolled_up_along_names() -> None:
    """C29: tenant-ab is not below tenant-a, a missing tenant-a-b breaks no chain, and the root is above all tenants."""
    world = Tenancy()
    world.budget(ROOT, total=3)
    world.budget(A, total=2)

    assert places(world.start("tenant-ab", "one", l40s=1)) == ["tenant-ab/one"]
    assert places(world.start("tenant-a-b-c", "two", l40s=2)) == ["tenant-a-b-c/two"]
    assert (world.held(A, "total"), world.held(ROOT, "total"), world.held("tenant-ab", "total")) == (2, 3, 1)
    assert bounds(world.start(A, "three", l40s=1)) == [d.Over(A, "b", TOTAL, 2, 2, 1)]
    assert bounds(world.start("tenant-ab", "four", l40s=1)) == [d.Over(ROOT, "b", TOTAL, 3, 3, 1)]
    for namespace in ("default", "tenant"):
        assert places(world.start(namespace, "own", l40s=1)) == [f"{namespace}/own"]
    assert world.held(ROOT, "total") == 3


def test_a_namespace_that_is_no_tenants_has_its_own_budgets() -> None:
    """C29: they bind there, and there alone."""
    world = Tenancy()
    world.budget("default", total=1)
    world.start("default", "one", l40s=1)

    assert bounds(world.start("default", "two", l40s=1)) == [d.Over("default", "b", TOTAL, 1, 1, 1)]
    assert places(world.start("default-x", "three", l40s=1)) == ["default-x/three"]


def test_several_budgets_of_a_namespace_all_bind() -> None:
    """Each of them; the first by name is told."""
    world = Tenancy()
    world.budget(A, "loose", l40s=5)
    world.budget(A, "tight", l40s=1)
    world.budget(A, "also", total=1)
    world.start(A, "one", l40s=1)

    assert bounds(world.start(A, "two", l40s=1)) == [d.Over(A, "also", TOTAL, 1, 1, 1)]
    world.no_budget(A, "also")
    assert world.set_of(A, "two").over == d.Over(A, "tight", key("l40s"), 1, 1, 1)
    assert places(world.no_budget(A, "tight")) == [f"{A}/two"]


def test_b3_a_message_names_level_key_limit_and_use() -> None:
    """B3: a start that finds its budget used up stays gated and hears whose budget it is, and what to do."""
    world = Tenancy()
    world.budget(A, l40s=2)
    world.start(A, "one", l40s=1)
    (waits,) = (one for one in world.start(B, "two", l40s=2) if isinstance(one, d.SetWaits))

    assert waits.reason is Wait.OVER_BUDGET
    assert waits.message == (
        "budget tenant-a/b allows 2 units of gpus.cozystack.io/l40s, 1 is held by tenant-a and the tenants below it, "
        "2 more are asked; free some there, or have that budget raised"
    )


def test_who_waits_for_a_budget_is_woken_by_what_frees_it_alone() -> None:
    """A stop in the subtree wakes who fits, in the order of the queue; a stop or a node elsewhere wakes nobody."""
    world = Tenancy()
    world.budget(A, l40s=2)
    world.start(B, "b2", l40s=2)
    world.start("tenant-x", "x1", l40s=1)
    for namespace, vm, count in ((A, "large", 2), (C, "small", 1), (C, "other", 1)):
        world.start(namespace, vm, l40s=count)
        world.scene.tick(1)

    assert world.node(30) == ()
    assert places(world.stop("tenant-x", "x1")) == []
    assert places(world.stop(B, "b2")) == [f"{A}/large"]
    assert places(world.stop(A, "large")) == [f"{C}/small", f"{C}/other"]


def test_a_budget_that_is_raised_wakes_who_waits_for_it() -> None:
    """Raised enough it lets through; raised too little, the new limit is told; other budgets wake nobody."""
    world = Tenancy()
    world.budget(A, l40s=2)
    world.start(A, "three", l40s=3)

    assert world.budget(B, l40s=9) == ()
    assert bounds(world.budget(A, l40s=1)) == [d.Over(A, "b", key("l40s"), 1, 0, 3)]
    assert world.budget(A, l40s=1, h100=1) == ()
    assert places(world.budget(A, l40s=3)) == [f"{A}/three"]


def test_a_budget_lowered_below_its_use_takes_nothing_and_gives_nothing_new() -> None:
    """What is held stays; a set that asks nothing of that key is not kept from its place."""
    world = Tenancy()
    world.start(A, "three", l40s=3)

    assert world.budget(A, l40s=1) == ()
    assert world.set_of(A, "three").node == "n1"
    assert bounds(world.start(A, "one", l40s=1)) == [d.Over(A, "b", key("l40s"), 1, 3, 1)]
    assert places(world.start(A, "other", h100=1)) == [f"{A}/other"]
    assert places(world.stop(A, "three")) == [f"{A}/one"]


def test_a_reason_is_told_again_only_if_it_is_another_bound() -> None:
    """C59: what is used changes all the time and tells nobody anything; another budget that binds is told."""
    world = Tenancy()
    world.budget(A, l40s=4)
    for vm in ("v1", "v2", "v3"):
        world.start(B, vm, l40s=1)
    world.start(A, "three", l40s=3)

    assert not [one for one in world.stop(B, "v1") if isinstance(one, d.SetWaits)]
    world.budget(ROOT, l40s=2)
    assert bounds(world.stop(B, "v2")) == [d.Over(ROOT, "b", key("l40s"), 2, 1, 3)]


def test_an_order_waits_for_its_budget_and_a_set_for_its_held_claims() -> None:
    """A pending order asks for its units when it is placed, alone or with a VM; one that has them asks no more."""
    world = Tenancy()
    world.budget(A, l40s=2)
    world.start(A, "two", l40s=2)
    assert bounds(world.order(A, "g1")) == [d.Over(A, "b", key("l40s"), 2, 2, 1)]
    world.scene.show(VmView("vm", "", "", A, gpus='[{"claimName":"g1"}]'))
    assert bounds(world.start(A, "vm", "g1")) == [d.Over(A, "b", key("l40s"), 2, 2, 1)]

    assert places(world.budget(A, l40s=3)) == [f"{A}/vm"]
    assert world.held(A, "l40s") == 3
    world.budget(A, l40s=0)
    world.stop(A, "vm")
    assert world.holding(A, "g1").node == "n1"
    assert places(world.start(A, "vm", "g1")) == [f"{A}/vm"]
    assert (world.held(A, "l40s"), world.held(A, "total")) == (3, 3)


def test_c37_nothing_is_placed_before_budgets_are_known() -> None:
    """C37: while budgets, or served releases, are not listed, four launchers wait; then one is pinned."""
    world = Tenancy(synced=False)
    for kind in NEEDED_KINDS:
        if kind not in {"gpubudgets", "helmreleases"}:
            world.scene.relist(kind)
    world.begin(units=8)
    said = [one for number in range(4) for one in world.start(A, f"vm{number}", l40s=1)]
    world.scene.newer(BudgetView("b", "", "", A, hard={TOTAL: 1}))
    said += world.scene.relist("helmreleases")
    said += world.scene.open("gpubudgets")
    assert said == []
    said = list(world.scene.watch("gpubudgets", world.scene.objects["gpubudgets"].values()))
    assert said == []
    said = list(
        world.scene.send(e.SessionSynced("gpubudgets", world.scene.sessions["gpubudgets"], str(world.scene.rv)))
    )

    assert places(tuple(said)) == [f"{A}/vm0"]
    assert bounds(tuple(said)) == [d.Over(A, "b", TOTAL, 1, 1, 1)] * 3


def test_d12_releases_that_are_not_served_are_not_waited_for() -> None:
    """D12: a cluster without Flux says so, to each new leader again; budgets not served are waited for."""
    world = Tenancy(synced=False)
    for kind in NEEDED_KINDS:
        if kind != "helmreleases":
            world.scene.relist(kind)
    world.begin()
    assert world.start(A, "vm", l40s=1) == ()
    world.scene.open("helmreleases")
    said = world.scene.send(e.NotServed("helmreleases", world.scene.sessions["helmreleases"]))
    assert places(said) == [f"{A}/vm"]

    world.scene.epoch()
    world.start(A, "two", l40s=1)
    marks = {kind: number for kind, number in world.scene.sessions.items() if kind != "helmreleases"}
    assert world.scene.send(e.Progress(tuple((kind, number, "0") for kind, number in marks.items()))) == ()
    said = world.scene.send(e.NotServed("helmreleases", world.scene.sessions["helmreleases"]))
    assert places(said) == [f"{A}/two"]

    world.scene.open("gpubudgets")
    world.scene.send(e.NotServed("gpubudgets", world.scene.sessions["gpubudgets"]))
    assert places(world.start(A, "three", l40s=1)) == []


def test_a_tenants_release_wins_over_the_budget_that_mirrors_it() -> None:
    """B1: as soon as it says so, whatever the mirror shows; without it, or without keys in it, the mirror counts."""
    world = Tenancy()
    world.mirror(A, l40s=9)
    world.release(ROOT, A, A, l40s=1)
    world.start(A, "one", l40s=1)
    assert bounds(world.start(A, "two", l40s=1)) == [d.Over(A, MIRRORED_BUDGET, key("l40s"), 1, 1, 1)]

    world.release(ROOT, A, A)
    assert hard_of(world.scene.book.state, A, MIRRORED_BUDGET) == {key("l40s"): 9}
    assert world.set_of(A, "two").node == "n1"
    world.no_budget(A, MIRRORED_BUDGET)
    assert world.scene.book.budgets.limits == {}
    world.release(ROOT, A, A, l40s=2)
    world.scene.remove("helmreleases", f"{ROOT}/{A}")
    assert world.scene.book.budgets.limits == {}


def test_unreadable_quotas_are_the_last_known_and_never_unlimited() -> None:
    """B1: a key that can't be read keeps its number, from the release or its mirror; one never known is zero."""
    world = Tenancy()
    state = world.scene.book.state
    world.release(ROOT, A, A, l40s=4, total=5)
    world.release(ROOT, A, A, "l40s", total=6)
    assert hard_of(state, A, MIRRORED_BUDGET) == {TOTAL: 6, key("l40s"): 4}
    world.release(ROOT, A, A, opaque=True)
    assert hard_of(state, A, MIRRORED_BUDGET) == {TOTAL: 6, key("l40s"): 4}

    world.mirror("tenant-b", l40s=7)
    world.release(ROOT, "tenant-b", "tenant-b", "l40s", "h100", total=6)
    assert hard_of(state, "tenant-b", MIRRORED_BUDGET) == {TOTAL: 6, key("l40s"): 7, key("h100"): 0}
    world.release(ROOT, "tenant-c", "tenant-c", opaque=True)
    assert hard_of(state, "tenant-c", MIRRORED_BUDGET) == {TOTAL: 0}
    assert bounds(world.start("tenant-c", "vm", l40s=1)) == [d.Over("tenant-c", MIRRORED_BUDGET, TOTAL, 0, 0, 1)]
    world.mirror("tenant-c", total=1)
    assert world.set_of("tenant-c", "vm").node == "n1"


def test_a_restart_goes_on_with_the_same_budgets() -> None:
    """T10: what is used, limited and waited for comes out of the snapshot as it was."""
    world = Tenancy()
    world.budget(A, l40s=1)
    world.start(A, "one", l40s=1)
    world.start(B, "two", l40s=1)
    world.scene.restart()

    assert places(world.stop(A, "one")) == [f"{B}/two"]
