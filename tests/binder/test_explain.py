"""What `explain` tells of VMs and held claims, from the state alone: the same tests that decide, in words."""

from rich.console import Console

from binder.explain import every_claim, explain
from deploy.commands.showing import told as told_on_screen
from schemas.decisions import Over, SetWaits
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
    """The VM that uses the claim by now, or the older one that it is for, is named; nodes answer as if it were free."""
    story = told("claim mine l40s=1", "vm vm1 uses=mine created=1", "start vm1 uses=mine", "pin vm1-pod n2")
    story.hear("start vm2 l40s=1 uses=mine")
    used = explain(story.scene.book, "t", "vm2")

    assert (used.reason, used.place > 0) == (Wait.CLAIM_IN_USE, True)
    assert used.summary == (
        "the held claim mine is for VM vm1, which uses it, or is older and names it too; to have it here, "
        "delete that VM or take it out of its template"
    )
    assert [(one.name, one.vm, one.node) for one in used.held] == [("mine", "t/vm1", "n2")]
    assert [(one.node, one.reason, one.free) for one in used.nodes] == [
        ("n1", None, {"nvidia.com/L40S": 2}),
        ("n2", Wait.NO_SUCH_DEVICE, {"nvidia.com/L40S": 1}),
    ]

    shown = Console(width=100, color_system=None, force_terminal=False)
    with shown.capture() as caught:
        shown.print(told_on_screen(used, width=100))
    rows = [" ".join(row.split()) for row in caught.get().splitlines()]
    assert "t/mine 1 x l40s n2 Bound t/vm1" in rows
    assert rows.index("each node, if it had the claims that it names:") < rows.index("n1 2 of 2 fits would fit")

    other = told("claim mine l40s=1", "vm vm1 uses=mine created=1", "start vm2 uses=mine")
    assert explain(other.scene.book, "t", "vm2").summary.startswith("the held claim mine is for VM vm1,")


def test_whose_a_claim_is_is_told_again_where_that_changes() -> None:
    """C59: once per VM that has it, whatever that VM does; several claims and VMs in one sentence; bare VMIs too."""
    story = told("claim a l40s=1", "claim b l40s=1", "vm vm1 uses=a uses=b created=1", "vm vm2 uses=a created=2")
    story.hear("start vm3 uses=a uses=b")
    first = explain(story.scene.book, "t", "vm3").summary
    told_first = waits(story)
    for line in ("start vm1 uses=a uses=b", "pin vm1-pod n1", "end vm1-pod", "gone vmi vm1"):
        story.hear(line)
    assert waits(story) == told_first
    story.hear("gone vm vm1")
    second = explain(story.scene.book, "t", "vm3").summary

    assert first.startswith("the held claims a, b are for VM vm1, which uses them, or is older and names them too;")
    assert second.startswith("the held claim a is for VM vm2,")
    assert waits(story) == told_first + 1

    bare = told("claim mine l40s=1", "start one uses=mine", "pin one-pod n2", "start two uses=mine")
    assert explain(bare.scene.book, "t", "two").summary.startswith("the held claim mine is for VM one,")


def waits(story: Story) -> int:
    """Return how often vm3 was told why it waits."""
    said = [one for _, _, _, decided in story.scene.log for one in decided]
    return sum(isinstance(one, SetWaits) and one.vmi.name == "vm3" for one in said)


def test_budgets_in_the_way_are_told_with_their_numbers() -> None:
    """B3: every budget that limits what is asked, the one that is short by its name; of VMs, claims, stopped VMs."""
    story = told("budget b l40s=2 total=9", "start vm1 l40s=2", "start vm2 l40s=1", "vm vm3 l40s=1")
    vm, stopped = (explain(story.scene.book, "t", name) for name in ("vm2", "vm3"))
    key, total = "gpus.cozystack.io/l40s", "gpus.cozystack.io"
    line = (Over("t", "b", key, 2, 2, 1), Over("t", "b", total, 9, 2, 1))

    assert (vm.reason, vm.budgets) == (Wait.OVER_BUDGET, line)
    assert vm.summary == (
        f"budget t/b allows 2 units of {key}, 2 are held by t and the tenants below it, 1 more is asked; "
        "free some there, or have that budget raised"
    )
    assert [(one.node, one.reason) for one in vm.nodes] == [("n1", Wait.NO_ROOM), ("n2", None)]
    assert (stopped.phase, stopped.budgets) == ("NotStarted", line)
    assert "; now a start would be beyond a budget: budget t/b allows 2 units of" in stopped.summary

    story.hear("claim mine l40s=1")
    claim = explain(story.scene.book, "t", "mine")
    assert (claim.phase, claim.reason, claim.budgets) == ("Pending", Wait.OVER_BUDGET, line)
    shown = Console(width=100, color_system=None, force_terminal=False)
    with shown.capture() as caught:
        shown.print(told_on_screen(claim, width=100))
    assert [" ".join(row.split()) for row in caught.get().splitlines() if row.strip().startswith("t/b")] == [
        "t/b l40s 2 2 1 OverBudget",
        "t/b all classes 9 2 1 enough",
    ]


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
