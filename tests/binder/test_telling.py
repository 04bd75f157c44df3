"""What inputs and decisions are about: VMs, held claims, nodes and classes by name, so that a log can be searched."""

import pytest

from binder.subjects import about_decision, about_event
from binder.telling import told_decision
from schemas import decisions as d
from schemas import events as e
from schemas.objects import ClaimView, Gone, Stamp
from schemas.reasons import Order, Placing, Unkept, Wait

VMI = d.VmiId("t", "vm1", "u1")
MINE = d.HeldClaim("mine", "c1", "l40s", 2, "nvidia.com/L40S")


@pytest.mark.parametrize(
    ("event", "about"),
    [
        (
            e.Changes(
                "gpuclaims", 1, (ClaimView("mine", "c1", "1", "t", class_name="l40s"), Gone("old", "c0", "2", "t"))
            ),
            {"claim t/mine", "class l40s", "claim t/old"},
        ),
        (e.Command(Order.MOVE, "ops", "t", "mine", "n1"), {"vm t/mine", "claim t/mine", "node n1"}),
        (e.Command(Order.PAUSE, "ops"), set()),
        (
            e.Outcomes(
                (
                    e.Outcome("held", "t", "mine", "", Stamp()),
                    e.Outcome("set", "t", "vm1", "u1", Stamp()),
                    e.Outcome("guard", "", "l40s", "", Stamp()),
                )
            ),
            {"claim t/mine", "vm t/vm1", "class l40s"},
        ),
    ],
)
def test_what_an_input_is_about(event: e.AnyEvent, about: set[str]) -> None:
    """A claim, a class, and of a command both that its name may mean."""
    assert about_event(e.encode_event(event)) == about


@pytest.mark.parametrize(
    ("decision", "about", "told"),
    [
        (d.NodeKept(VMI, "n1"), {"vm t/vm1", "node n1"}, "n1 is kept for t/vm1"),
        (d.NodeKept(VMI, ""), {"vm t/vm1"}, "no node is kept for t/vm1"),
        (d.SetOpened(VMI, (), (MINE,)), {"vm t/vm1", "claim t/mine", "class l40s"}, "t/vm1 asks for 2 x l40s"),
        (
            d.HeldPlaced("t", (MINE,), "n1", Placing.ORDERED),
            {"claim t/mine", "class l40s", "node n1"},
            "claim t/mine on n1: Ordered",
        ),
        (
            d.HeldLost("t", (MINE,), "", Unkept.SPLIT, "why"),
            {"claim t/mine", "class l40s"},
            "claim t/mine is lost, NoNodeForAll: why",
        ),
        (
            d.HeldWaits("t", (MINE,), Wait.NO_ROOM, "why"),
            {"claim t/mine", "class l40s"},
            "claim t/mine waits, NoRoom: why",
        ),
        (d.HeldFreed("t", "mine", "c1"), {"claim t/mine"}, "claim t/mine may go: nobody uses it"),
        (d.ClassFreed("l40s", "k1"), {"class l40s"}, "class l40s may go: nothing uses it"),
    ],
)
def test_what_a_decision_is_about_and_how_it_is_told(decision: d.Decision, about: set[str], told: str) -> None:
    """One line each, and every name that it can be searched by."""
    assert about_decision(decision) == about
    assert told_decision(decision) == told
