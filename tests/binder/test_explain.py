"""What `explain` tells of VMs and held claims, from the state alone: the same tests that decide, in words."""

from binder.explain import every_claim, explain
from schemas.reasons import Wait
from tests.stories.language import Story

CLUSTER = ("class l40s", "node n1 l40s=2 cpu=8", "node n2 l40s=1 cpu=8")


def told(*lines: str) -> Story:
    """Return a story after these lines."""
    story = Story()
    for line in (*CLUSTER, *lines):
        story.hear(line)
    return story


def test_a_bound_claim_is_explained() -> None:
    """Where its units are, and which VM holds it."""
    story = told("claim mine l40s=1", "vm vm1 uses=mine", "start vm1 uses=mine", "pin vm1-pod n2")
    claim, vm = (explain(story.scene.book, "t", name) for name in ("mine", "vm1"))

    assert (claim.kind, claim.phase, claim.node, claim.held[0].vm) == ("claim", "Bound", "n2", "t/vm1")
    assert (vm.phase, vm.node, [(one.name, one.node) for one in vm.held]) == ("Placed", "n2", [("mine", "n2")])
    assert [(key, one.phase) for key, one in every_claim(story.scene.book)] == [("t", "Bound")]


def test_a_waiting_claim_is_explained_node_by_node() -> None:
    """Its reason, its place among the claims that wait, and what each node is short of."""
    story = told("claim a l40s=2", "claim b l40s=1", "claim early l40s=2 created=5", "claim late l40s=2 created=9")
    late = explain(story.scene.book, "t", "late")

    assert (late.phase, late.reason, late.place) == ("Pending", Wait.NO_ROOM, 2)
    assert [(one.node, one.reason, one.detail) for one in late.nodes] == [
        ("n1", Wait.NO_ROOM, "0 of 2 nvidia.com/L40S free"),
        ("n2", Wait.NO_SUCH_DEVICE, "offers 1 of 2 nvidia.com/L40S"),
    ]
    assert explain(story.scene.book, "t", "early").place == 1


def test_a_lost_claim_says_for_what() -> None:
    """D9: its node is gone, no other has room, and those that go with it are named."""
    story = told("claim mine l40s=2", "claim other l40s=1", "vm vm1 uses=mine", "gone node n1", "pass 80")
    mine = explain(story.scene.book, "t", "mine")

    assert (mine.phase, mine.node, mine.reason) == ("Lost", "", Wait.NO_SUCH_DEVICE)
    assert "NodeGone" in mine.summary
    assert [one.name for one in mine.held] == ["mine"]


def test_a_claim_whose_vm_waits_is_explained_with_its_set() -> None:
    """A launcher waits for the claim and a unit beside it: nodes answer for both, and its own units are free to it."""
    story = told("claim mine l40s=1", "start vm1 l40s=2 uses=mine")
    mine, vm = (explain(story.scene.book, "t", name) for name in ("mine", "vm1"))

    assert (vm.phase, vm.reason, vm.place) == ("Waiting", Wait.NO_SUCH_DEVICE, 1)
    assert (mine.phase, mine.node, mine.nodes, mine.place) == ("Bound", "n2", vm.nodes, 1)
    assert [(one.node, one.free) for one in vm.nodes] == [
        ("n1", {"nvidia.com/L40S": 2}),
        ("n2", {"nvidia.com/L40S": 1}),
    ]


def test_who_has_a_claim_is_told_to_whom_it_is_in_use() -> None:
    """The VM that uses the claim by now, or the older one that it is for, is named beside the claim itself."""
    story = told("claim mine l40s=1", "vm vm1 uses=mine created=1", "start vm1 uses=mine", "pin vm1-pod n2")
    story.hear("start vm2 uses=mine")
    used = explain(story.scene.book, "t", "vm2")

    assert (used.reason, used.place > 0) == (Wait.CLAIM_IN_USE, True)
    assert used.summary.endswith("(mine is used by t/vm1)")
    assert [(one.name, one.vm, one.node) for one in used.held] == [("mine", "t/vm1", "n2")]

    other = told("claim mine l40s=1", "vm vm1 uses=mine created=1", "start vm2 uses=mine")
    assert explain(other.scene.book, "t", "vm2").summary.endswith(
        "(mine is for t/vm1, which names it too and is older)"
    )


def test_who_has_a_node_kept_is_told_so() -> None:
    """C55: the one that has waited long, and those for whom that node is closed."""
    starts = [f"start {name} l40s=1" for name in ("a", "b", "c")]
    story = told(*starts, "start big l40s=2", "pass 620", "end b-pod", "start small l40s=1")
    big, small = (explain(story.scene.book, "t", name) for name in ("big", "small"))

    assert (big.kept, small.reason) == ("n1", Wait.NODE_KEPT)
    assert {one.node: one.detail for one in small.nodes}["n1"] == "kept for t/big, which has waited longer"


def test_a_name_of_both_is_the_vm() -> None:
    """A claim that has a VM's name is asked for by itself; a name of nothing is unknown."""
    book = told("claim vm1 l40s=1", "vm vm1").scene.book

    assert explain(book, "t", "vm1").kind == "vm"
    assert explain(book, "t", "vm1", claim=True).phase == "Bound"
    assert explain(book, "t", "nobody").phase == explain(book, "t", "nobody", claim=True).phase == "Unknown"
