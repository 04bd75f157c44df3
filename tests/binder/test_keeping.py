"""Nodes that can't keep what is booked on them, at the edges: what it costs, how much at once, what is promised."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from binder.book import Book
from binder.evolve import SETS_PER_INPUT_MAX, is_dirty
from binder.explain import explain
from binder.invariants import check
from binder.snapshot import decode_state, encode_state
from binder.troubles import GONE_NS, GRACE_NS, SECOND, end_of_grace, overdue
from schemas import decisions as d
from schemas.objects import NodeView, VmiView
from schemas.reasons import Placing, Unkept
from tests.binder.scene import Scene, launcher
from tests.binder.test_held_claims import a_scene, an_order, calls


def node_of(scene: Scene, name: str) -> NodeView:
    """Return a node as the API server holds it."""
    view = scene.objects["nodes"][name]
    assert isinstance(view, NodeView)
    return view


def later(scene: Scene, seconds: int) -> list[d.Decision]:
    """Let so much logical time pass."""
    return [one for _ in range(seconds // 20) for one in scene.tick(20)]


def a_busy_cluster(nodes: int) -> Scene:
    """Return a cluster whose nodes hold a claim each, with one more that is empty, and one that fails since a while."""
    scene = a_scene(nodes, 1, lawful=False)
    for number in range(nodes):
        scene.show(an_order(f"held{number}"))
    scene.show(replace(node_of(scene, "n0000"), name="z", uid="z"))
    scene.show(replace(node_of(scene, "n0003"), ready=False))
    later(scene, 280)
    return scene


ACTS: dict[str, Callable[[Scene], object]] = {
    "a grace is over, and a claim moves": lambda scene: scene.tick(20),
    "a node fails": lambda scene: scene.show(replace(node_of(scene, "n0001"), ready=False)),
    "a node is well again": lambda scene: scene.show(replace(node_of(scene, "n0003"), ready=True)),
    "a node is gone": lambda scene: scene.remove("nodes", "n0002"),
    "a plugin shows nothing": lambda scene: scene.show(replace(node_of(scene, "n0001"), allocatable={})),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_what_a_node_does_costs_what_it_holds(act: Callable[[Scene], object]) -> None:
    """With ten times the nodes and bookings an input calls hardly more functions of the binder (design)."""
    small, large = a_busy_cluster(20), a_busy_cluster(200)
    few, many = calls(lambda: act(small)), calls(lambda: act(large))

    assert many < 1.5 * few + 50, (few, many)


def test_a_grace_that_is_over_moves_what_is_there() -> None:
    """The cost above is that of doing something: the claim on the failed node is moved by that tick (D9)."""
    [moved] = a_busy_cluster(20).tick(20)

    assert isinstance(moved, d.HeldPlaced)
    assert (moved.node, moved.why) == ("z", Placing.MOVED)


def test_a_node_full_of_claims_is_left_in_parts() -> None:
    """T5: 150 groups on a node that is gone go Lost 64 an input, all of them, and each once."""
    scene = a_scene(1, 200)
    scene.show(*(an_order(f"o{number:03}", created=number) for number in range(150)))
    scene.settled()
    scene.remove("nodes", "n0000")
    parts = [scene.tick(20) for _ in range(GONE_NS // SECOND // 20)]
    while is_dirty(scene.book.state):
        parts.append(scene.settled())
    lost = [[one.claims[0].name for one in part if isinstance(one, d.HeldLost)] for part in parts]

    assert lost[-2] == [f"o{number:03}" for number in range(149, 149 - SETS_PER_INPUT_MAX, -1)]
    assert sorted(name for part in lost for name in part) == [f"o{number:03}" for number in range(150)]
    assert {one.reason for part in parts for one in part if isinstance(one, d.HeldLost)} == {Unkept.NODE_GONE}


def test_a_restored_book_bears_as_long_as_the_lived_one() -> None:
    """T10: a grace that began before a restart is over at the same input after it."""
    scene = a_scene(2, 1)
    scene.show(an_order("mine"))
    scene.show(replace(node_of(scene, "n0000"), ready=False))
    later(scene, 200)
    restored = Book(decode_state(encode_state(scene.book.state)))
    scene.book = restored

    assert later(scene, 80) == []
    assert [type(one) for one in later(scene, 20)] == [d.HeldPlaced]


@pytest.mark.parametrize(
    ("word", "borne_ns"),
    [("gone", GONE_NS), ("not-ready", GRACE_NS), ("taint:a=:NoExecute", GRACE_NS), ("short:r=1", GRACE_NS)],
)
def test_each_trouble_has_its_grace(word: str, borne_ns: int) -> None:
    """A node that is gone is borne for a minute, anything else for five (C16, C44)."""
    scene = Scene()
    scene.book.state.troubles["n"] = {word: 7}
    seen = []
    for now_ns in (6 + borne_ns, 7 + borne_ns):
        scene.book.state.now_ns = now_ns
        seen.append(overdue(scene.book.state, "n"))

    assert end_of_grace(word, 7) == 7 + borne_ns
    assert seen == [[], [word]]


def _forgotten(book: Book) -> None:
    book.state.troubles.clear()


def _invented(book: Book) -> None:
    book.state.troubles["n0001"] = {"gone": 0}


def _early(book: Book) -> None:
    book.state.troubles["n0000"] = {"not-ready": book.state.now_ns + 1}


def _misplaced(book: Book) -> None:
    book.troubles.holdings.add("n0001", "t/mine")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_forgotten, "node n0000 is said to be [], and is ['not-ready:nvidia.com/L40S']"),
        (_invented, "node n0001 is said to be ['gone'], and is []"),
        (_early, "node n0000 has a trouble that has not begun"),
        (_misplaced, "index booked on nodes"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_broken_promise_about_nodes_names_itself(spoil: Callable[[Book], None], says: str) -> None:
    """What is kept of nodes is derived anew from the tables; where nothing is wrong the checks have nothing to say."""
    scene = a_scene(2, 1)
    scene.show(an_order("mine"), an_order("other"))
    scene.show(replace(node_of(scene, "n0000"), ready=False))
    assert check(scene.book) == []
    spoil(scene.book)

    assert any(says in sentence for sentence in check(scene.book)), check(scene.book)


def test_a_vm_that_was_given_up_is_told_so() -> None:
    """D5, D8: who asks about a VM that goes hears of its node, until it is gone."""
    scene = a_scene(1, 1)
    vmi = scene.newer(VmiView("vm", "", "", "t", gpus='[{"className":"l40s","count":1}]'))
    scene.watch("virtualmachineinstances", [vmi])
    scene.admit(vmi, "r")
    pod = scene.newer(launcher(vmi, "p", "r", {"nvidia.com/L40S": 1}))
    scene.watch("pods", [pod])
    scene.show(replace(vmi, active_pods={pod.uid: ""}))
    scene.show(replace(pod, gates=()))
    scene.remove("nodes", "n0000")
    before = explain(scene.book, "t", "vm").summary
    [given_up] = later(scene, 60)

    assert isinstance(given_up, d.VmiGivenUp)
    assert before == "on n0000: pinned, our gate removed"
    assert explain(scene.book, "t", "vm").summary == f"on n0000: {given_up.message}"
    assert "gone for 60 seconds" in given_up.message
