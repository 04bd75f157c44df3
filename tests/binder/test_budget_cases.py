"""Faults of budgets from public reports, told from their first state to the last: C37 and C50."""

import pytest
from msgspec.structs import replace

from binder.state import FOREIGN_KINDS, NEEDED_KINDS
from schemas import decisions as d
from schemas.names import CLAIM_FINALIZER
from schemas.objects import BudgetView, ClaimView
from tests.binder.scene import Decisions
from tests.binder.tenancy import TOTAL, Tenancy, bounds, places

A, B = "tenant-a", "tenant-a-b"


def test_c50_a_budget_lowered_below_use_stops_nothing_and_a_namespace_that_goes_is_charged_no_more() -> None:
    """C50, B3: what runs and what is held stays, also over a restart of its VM; what is new waits until units go."""
    world = Tenancy(units=8)
    world.budget(A, total=4)
    world.order(B, "s", count=3)
    world.start(B, "held", "s")
    world.start(B, "template", l40s=1)
    for vm in ("held", "template"):
        world.run(B, vm)

    assert world.budget(A, total=1) == ()
    assert (world.set_of(B, "held").node, world.set_of(B, "template").node) == ("n1", "n1")
    # A VM whose held claims have its units starts again; one that asks for units anew waits as any other does.
    world.stop(B, "held")
    assert places(world.start(B, "held", "s")) == [f"{B}/held"]
    world.stop(B, "template")
    assert bounds(world.start(B, "template", l40s=1)) == [d.Over(A, "b", TOTAL, 1, 3, 1)]
    assert bounds(world.order(A, "new")) == [d.Over(A, "b", TOTAL, 1, 3, 1)]

    # The namespace tenant-a-b is deleted, with all that is in it.
    world.stop(B, "template")
    claim = world.scene.objects["gpuclaims"][f"{B}/s"]
    assert isinstance(claim, ClaimView)
    world.scene.show(replace(claim, deleting=True, finalizers=(CLAIM_FINALIZER,)))
    assert world.held(A, "total") == 3, "its launcher still runs"
    said = world.stop(B, "held") + world.scene.remove("gpuclaims", f"{B}/s")
    assert places(said) == [f"{A}/new"]
    assert (world.held(A, "total"), world.held(B, "total")) == (1, 0)


@pytest.mark.parametrize("late", [kind for kind in NEEDED_KINDS if kind not in FOREIGN_KINDS])
def test_c37_no_kind_that_is_late_is_taken_for_empty(late: str) -> None:
    """C37: a new leader lists everything anew but one kind: nothing is placed and nothing Lost; then one is placed."""
    world = Tenancy(units=8)
    world.order("tenant-x", "held")
    world.raw("tenant-x", "raw", l40s=6)
    world.budget(A, total=0)
    for number in range(4):
        world.start(A, f"vm{number}", l40s=1)
    # While nobody leads, the budget is raised.
    world.scene.newer(BudgetView("b", "", "", A, hard={TOTAL: 1}))
    world.scene.restart()
    world.scene.epoch()

    said: Decisions = ()
    for kind in NEEDED_KINDS:
        if kind != late:
            said += world.scene.relist(kind)
    said += world.scene.open(late)
    for _ in range(30):
        # Far longer than any grace of a node.
        said += world.scene.tick(30)
    assert said == ()
    assert world.holding("tenant-x", "held").node == "n1"

    said = world.scene.relist(late) + world.scene.settled()
    assert places(said) == [f"{A}/vm0"]
    assert not [one for one in said if isinstance(one, d.HeldLost)]
