"""Held claims at their edges: what a decision costs, broken promises that name themselves, and who may use what."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from msgspec.structs import replace

from binder.book import Book
from binder.evolve import SETS_PER_INPUT_MAX, is_dirty
from binder.holdings import key_of
from binder.invariants import check
from binder.snapshot import decode_state, encode_state
from binder.state import Holding
from schemas import decisions as d
from schemas.decisions import HeldClaim, VmiId
from schemas.objects import ClaimView, ClassView, NodeView, SettingsView, VmiView, VmView
from schemas.reasons import Placing, Unkept, Wait
from tests.binder.scene import Scene, launcher

RESOURCE = "nvidia.com/L40S"


def an_order(name: str, count: int = 1, created: int = 0) -> ClaimView:
    """Return a claim that a tenant orders."""
    return ClaimView(name, "", "", "t", class_name="l40s", count=count, created=created)


def a_scene(nodes: int, units: int, *, lawful: bool = True) -> Scene:
    """Return a synced cluster of one class and so many equal nodes."""
    scene = Scene(lawful=lawful)
    scene.show(ClassView("l40s", "", "", resource=RESOURCE))
    for number in range(nodes):
        scene.show(NodeView(f"n{number:04}", "", "", ready=True, allocatable={RESOURCE: units}))
    return scene


def calls(act: Callable[[], object]) -> int:
    """Return how many functions of ours an act calls."""
    count = 0

    def heard(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and "/binder/" in frame.f_code.co_filename

    sys.setprofile(heard)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def a_full_cluster(nodes: int, waiting: int) -> Scene:
    """Return a cluster whose nodes are full of claims, a VM each, with so many orders and a Lost set waiting."""
    scene = a_scene(nodes, 1, lawful=False)
    for number in range(nodes):
        scene.show(an_order(f"held{number}"))
        scene.show(VmView(f"vm{number}", "", "", "t", gpus=f'[{{"claimName":"held{number}"}}]'))
    for number in range(waiting):
        scene.show(an_order(f"order{number}", created=number))
    scene.settled()
    return scene


ACTS: dict[str, Callable[[Scene], object]] = {
    "a claim goes, and who waits longest gets its units": lambda scene: scene.remove("gpuclaims", "t/held0"),
    "a VM stops naming its claim": lambda scene: scene.show(VmView("vm1", "", "", "t")),
    "an order goes that was waiting": lambda scene: scene.remove("gpuclaims", "t/order1"),
    "a VM is made that names a waiting order": lambda scene: scene.show(
        VmView("new", "", "", "t", gpus='[{"claimName":"order2"}]')
    ),
    "a status is seen": lambda scene: scene.show(replace(an_order("held2"), node="n0002", phase="Bound")),
    "time passes": lambda scene: scene.tick(5),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_a_decision_costs_what_its_input_touches(act: Callable[[Scene], object]) -> None:
    """With ten times the nodes, claims and waiting orders an input calls hardly more functions of the binder."""
    small, large = (a_full_cluster(nodes, waiting) for nodes, waiting in ((20, 30), (200, 300)))
    few, many = calls(lambda: act(small)), calls(lambda: act(large))

    assert many < 1.5 * few + 50, (few, many)


def test_a_flood_of_orders_is_served_in_parts_and_in_order() -> None:
    """T5, D6: 200 orders at once are bound 64 an input, the oldest first; the rest hears why."""
    scene = a_scene(1, 100)
    parts = [scene.show(*(an_order(f"o{number:03}", created=1000 - number) for number in range(200)))]
    while is_dirty(scene.book.state):
        parts.append(scene.settled())
    placed = [one for part in parts for one in part if isinstance(one, d.HeldPlaced)]
    told = [one for part in parts for one in part if isinstance(one, d.HeldWaits)]

    assert len(parts[0]) == SETS_PER_INPUT_MAX
    assert [one.claims[0].name for one in placed] == [f"o{number:03}" for number in range(199, 99, -1)]
    assert {one.reason for one in told} == {Wait.NO_ROOM}
    assert len(told) == 100


def test_a_restored_book_goes_on_as_the_lived_one() -> None:
    """T10: from a snapshot's bytes the same groups, line and decisions come as from the lived tables."""
    scene = a_scene(2, 2)
    for number in range(5):
        scene.show(an_order(f"o{number}", created=5 - number))
    scene.show(VmView("vm", "", "", "t", gpus='[{"claimName":"o0"},{"claimName":"o1"}]'))
    restored = Scene(lawful=True)
    restored.book = Book(decode_state(encode_state(scene.book.state)))
    for twin in (scene, restored):
        twin.sessions, twin.sequence, twin.stamp_ns, twin.rv = (
            dict(scene.sessions), scene.sequence, scene.stamp_ns, scene.rv,
        )  # fmt: skip
        twin.objects = {kind: dict(table) for kind, table in scene.objects.items()}
    lived, again = (twin.remove("gpuclaims", "t/o3") for twin in (scene, restored))

    assert lived == again
    assert any(isinstance(one, d.HeldPlaced) for one in lived)


def _held(book: Book, **changes: object) -> None:
    one = replace(book.state.holdings["t/mine"], **changes)
    book.store_holding(key_of(one), one)


def _spoilt_place(book: Book) -> None:
    _held(book, attached=VmiId("t", "vm", "nobody"))


def _spoilt_freed(book: Book) -> None:
    _held(book, freed=True)


def _spoilt_lost(book: Book) -> None:
    _held(book, lost=Unkept.NODE_GONE)


def _spoilt_resource(book: Book) -> None:
    _held(book, claim=HeldClaim("mine", "uid-mine", "l40s", 1, ""))


def _spoilt_split(book: Book) -> None:
    book.store_holding("t/other", replace(book.state.holdings["t/other"], node="n0001"))
    book.state.dirty_nodes.clear()
    book.state.dirty_holdings.clear()


def _spoilt_reason(book: Book) -> None:
    for name in ("mine", "other"):
        book.store_holding(f"t/{name}", replace(book.state.holdings[f"t/{name}"], node=""))
    book.state.dirty_nodes.clear()
    book.state.dirty_holdings.clear()


def _spoilt_ghost(book: Book) -> None:
    book.store_holding("t/ghost", Holding("t", HeldClaim("ghost", "u", "l40s", 1, "")))


def _spoilt_gone(book: Book) -> None:
    book.store_holding("t/mine", None)


def _spoilt_line(book: Book) -> None:
    book.held.line.put("claim t/mine", (0, 0, "t", "mine", "claim t/mine"), (("dirty", "", 0),))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_spoilt_place, "which has no set"),
        (_spoilt_freed, "is freed, and has something"),
        (_spoilt_lost, "and Lost or waits"),
        (_spoilt_resource, "counted by no resource"),
        (_spoilt_split, "is split over"),
        (_spoilt_reason, "was told no reason"),
        (_spoilt_ghost, "is held, and not seen"),
        (_spoilt_gone, "nothing is kept of it"),
        (_spoilt_line, "index held line"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_broken_promise_about_held_claims_names_itself(spoil: Callable[[Book], None], says: str) -> None:
    """The checks find what is wrong with held claims, and where nothing is wrong they have nothing to say."""
    scene = a_scene(2, 2)
    scene.show(VmView("vm", "", "", "t", gpus='[{"claimName":"mine"},{"claimName":"other"}]'))
    scene.show(an_order("mine"), an_order("other"))
    assert check(scene.book) == []
    spoil(scene.book)

    assert any(says in sentence for sentence in check(scene.book)), check(scene.book)


def test_claims_of_one_name_in_two_namespaces_do_not_meet() -> None:
    """D10: a VM names claims of its own namespace alone."""
    scene = a_scene(1, 4)
    scene.show(VmView("vm", "uid-a", "", "a", gpus='[{"claimName":"mine"},{"claimName":"more"}]'))
    decided = scene.show(
        ClaimView("mine", "u1", "", "a", class_name="l40s"),
        ClaimView("more", "u2", "", "a", class_name="l40s"),
        ClaimView("mine", "u3", "", "b", class_name="l40s"),
    )

    assert [tuple(one.uid for one in each.claims) for each in decided if isinstance(each, d.HeldPlaced)] == [
        ("u1", "u2"),
        ("u3",),
    ]
    assert all(isinstance(one, d.HeldPlaced) and one.why is Placing.ORDERED for one in decided)


def test_a_claim_made_anew_under_its_name_is_another_one() -> None:
    """T24: the next claim of a name has nothing of the one before it, and that one's units are free."""
    scene = a_scene(1, 3)
    scene.show(an_order("mine", 3))
    scene.show(replace(an_order("mine", 2), uid="second"))
    holding = scene.book.state.holdings["t/mine"]

    assert (holding.claim.uid, holding.claim.count, holding.node) == ("second", 2, "n0000")
    assert scene.book.usage.used == {"n0000": {RESOURCE: 2}}


def test_a_gated_pod_deleted_over_and_over_leaves_nothing_and_keeps_its_turn() -> None:
    """C30: after twenty launchers the waiting VM is still first, and no claim, unit or stamp is of a dead pod."""
    scene = a_scene(1, 1)
    scene.show(an_order("mine"))
    vmi = scene.newer(VmiView("waits", "", "", "t", gpus='[{"className":"l40s","count":1}]'))
    later = scene.newer(VmiView("later", "", "", "t", gpus='[{"className":"l40s","count":1}]'))
    scene.watch("virtualmachineinstances", [vmi, later])
    for number in range(20):
        scene.tick(1)
        for one in (vmi, later) if number == 10 else (vmi,):
            _relaunch(scene, one, number)
    claims = len(scene.book.state.sets[vmi.uid].claims)
    decided = scene.remove("gpuclaims", "t/mine")

    assert claims == 1
    assert [(one.vmi.name, one.pod) for one in decided if isinstance(one, d.SetPlaced)] == [("waits", "waits-19")]
    assert scene.book.usage.used == {"n0000": {RESOURCE: 1}}
    assert sorted(scene.book.state.sets) == sorted((vmi.uid, later.uid))


def _relaunch(scene: Scene, vmi: VmiView, number: int) -> None:
    """Delete a VMI's gated pod, and let KubeVirt make the next one."""
    for key in [key for key, pod in scene.objects["pods"].items() if getattr(pod, "owner_uid", "") == vmi.uid]:
        scene.remove("pods", key)
    scene.admit(vmi, f"r-{vmi.name}-{number}")
    pod = launcher(vmi, f"{vmi.name}-{number}", f"r-{vmi.name}-{number}", {RESOURCE: 1})
    scene.show(pod)
    scene.show(replace(vmi, active_pods={pod.uid: ""}))


def test_a_flood_that_was_paused_goes_on_in_parts() -> None:
    """T5, D5: after a pause 150 waiting orders are looked at in parts, and each is bound or hears why it waits now."""
    scene = a_scene(1, 70)
    scene.show(SettingsView("settings", "", "", "gpubinder", data={"paused": "true"}))
    scene.show(*(an_order(f"o{number:03}") for number in range(150)))
    scene.settled()
    first = scene.show(SettingsView("settings", "", "", "gpubinder", data={}))
    decided = first + scene.settled()

    assert len(first) == SETS_PER_INPUT_MAX
    assert sum(isinstance(one, d.HeldPlaced) for one in decided) == 70
    assert {one.reason for one in scene.book.state.holdings.values() if not one.node} == {Wait.NO_ROOM}
    assert sum(isinstance(one, d.HeldWaits) for one in decided) == 80
