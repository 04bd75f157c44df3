"""Bounds and edges of the heart: long affinities, strays in crowds, deep messages, old admissions, names."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from binder.book import ADMITTED_KEPT_NS, Book
from binder.decide_set import claim_name
from binder.evolve import BYTES_PER_INPUT_MAX, SETS_PER_INPUT_MAX, is_dirty
from binder.evolve_holdings import RETRY_NS_MAX
from binder.invariants import check
from binder.settings import read_settings
from binder.state import NEEDED_KINDS, Admitted, GpuSet, empty_state
from binder.step import step
from schemas import decisions as d
from schemas.decisions import VmiId
from schemas.events import Continue, Outcome, Outcomes, Tick, UnknownMessage, encode_event
from schemas.names import CLASS_FINALIZER
from schemas.objects import ClaimView, ClassView, NodeSelectorTerm, NodeView, Requirement, Stamp, VmiView
from tests.binder.scene import SECOND, Scene, launcher

RESOURCE = "nvidia.com/L40S"


def a_scene(units: int = 500) -> Scene:
    """Return a synced cluster of one node and one class."""
    scene = Scene()
    scene.show(ClassView("l40s", "", "", resource=RESOURCE, finalizers=(CLASS_FINALIZER,)))
    scene.show(NodeView("n1", "", "", ready=True, allocatable={RESOURCE: units}))
    return scene


def a_vmi(scene: Scene, name: str) -> VmiView:
    """Create a VMI of one unit."""
    vmi = scene.newer(VmiView(name, "", "", "t", gpus='[{"className":"l40s","count":1}]'))
    scene.watch("virtualmachineinstances", [vmi])
    return vmi


def test_long_affinities_end_an_input_early() -> None:
    """T5: decisions of one input stay far below a message's limit however long the pods' affinities are."""
    scene = a_scene()
    long = Requirement("zone", "NotIn", tuple(f"{number:060}" for number in range(1_000)))
    vmis = [a_vmi(scene, f"vm{number}") for number in range(30)]
    for vmi in vmis:
        scene.admit(vmi, f"r-{vmi.name}")
    pods = [launcher(vmi, f"p-{vmi.name}", f"r-{vmi.name}", {RESOURCE: 1}) for vmi in vmis]
    scene.show(*(replace(pod, terms=(NodeSelectorTerm((long,)),)) for pod in pods))
    sizes, placed = [], 0
    decided = scene.show(*(replace(vmi, active_pods={f"uid-p-{vmi.name}": ""}) for vmi in vmis))
    while decided:
        sizes.append(len(msgspec.json.encode(decided)))
        placed += sum(isinstance(one, d.SetPlaced) for one in decided)
        decided = scene.send(Continue())

    assert placed == 30
    assert len(sizes) > 2
    assert max(sizes) < 2 * BYTES_PER_INPUT_MAX


def test_a_crowd_of_strays_is_dropped_in_parts() -> None:
    """T5, T14: undecided claims count towards the bound too."""
    scene = a_scene()
    vmi = a_vmi(scene, "vm")
    strays = [ClaimView(f"s{number}", "", "", "t", template=True, owner_uid=vmi.uid) for number in range(150)]
    first = scene.show(*strays)
    rest = scene.settled()

    assert len(first) == SETS_PER_INPUT_MAX
    assert {one.name for one in first + rest if isinstance(one, d.ClaimDropped)} == {one.name for one in strays}
    assert not is_dirty(scene.book.state)


def test_an_admission_of_nobody_is_forgotten() -> None:
    """T25, T12: an answered create whose VMI is not there is kept for ten minutes of logical time, then no more."""
    scene = a_scene()
    ghost = VmiView("ghost", "uid-ghost", "", "t", gpus='[{"className":"l40s","count":1}]')
    seen = a_vmi(scene, "seen")
    scene.admit(ghost, "r1")
    scene.admit(seen, "r2")
    for _ in range(ADMITTED_KEPT_NS // (30 * SECOND) - 1):
        scene.tick(30)
    assert set(scene.book.state.admitted) == {"uid-ghost", "uid-seen"}
    scene.tick(30)
    assert set(scene.book.state.admitted) == {"uid-seen"}
    scene.remove("virtualmachineinstances", "t/seen")
    for _ in range(ADMITTED_KEPT_NS // (30 * SECOND) - 1):
        scene.tick(30)
    assert set(scene.book.state.admitted) == {"uid-seen"}
    scene.tick(30)
    assert not scene.book.state.admitted


def test_the_back_off_has_a_limit() -> None:
    """T23: however often a pin is refused, the next try is at most five minutes away."""
    scene = a_scene()
    vmi = a_vmi(scene, "vm")
    scene.admit(vmi, "r")
    pod = launcher(vmi, "p", "r", {RESOURCE: 1})
    scene.show(pod)
    scene.show(replace(vmi, active_pods={pod.uid: ""}))
    waits = []
    for _ in range(12):
        stamp = scene.book.state.sets[vmi.uid].stamp
        scene.send(Outcomes((Outcome("pin", "t", "vm", vmi.uid, stamp, 422, "Invalid"),)))
        due_ns = scene.book.state.sets[vmi.uid].retry_ns
        waits.append(due_ns - scene.book.state.now_ns)
        while scene.book.state.now_ns < due_ns:
            scene.tick(30)

    assert waits[0] == 2 * SECOND
    assert waits == sorted(waits)
    assert waits[-1] == RETRY_NS_MAX


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(max_size=5), st.lists).map(msgspec.json.encode))
@settings(max_examples=300, deadline=None)
def test_no_bytes_stop_the_world(body: bytes) -> None:
    """T6: whatever the bytes, the input is rejected, or told to be unknown; nothing else happens."""
    book = Book(empty_state())
    try:
        decided = step(book, 1, 1, body)
    except UnknownMessage:
        return
    assert all(isinstance(one, d.Rejected) for one in decided)


@pytest.mark.parametrize("part", [b"[", b'{"a":', b'{"type":"tick","x":['])
def test_a_deep_message_is_rejected(part: bytes) -> None:
    """T6: a message nested beyond reason is one that can't be read."""
    decided = step(Book(empty_state()), 1, 1, part * 100_000)

    assert [type(one) for one in decided] == [d.Rejected]


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"secret-kind-password","version":1}',
        b'{"type":"changes","kind":"nodes","session":1,"changes":[{"type":"s3cr3t"}]}',
        b'{"type":"outcomes","outcomes":[{"action":7,"namespace":"s3cr3t"}]}',
    ],
)
def test_a_rejection_quotes_nothing(body: bytes) -> None:
    """T16: what could not be read is not repeated in the log."""
    try:
        (rejected,) = step(Book(empty_state()), 1, 1, body)
    except UnknownMessage:
        return
    assert isinstance(rejected, d.Rejected)
    assert b"s3cr3t" not in msgspec.json.encode(rejected)


@pytest.mark.parametrize("sizes", [(1, 200), (3, 7)])
def test_how_a_list_is_cut_decides_nothing(sizes: tuple[int, int]) -> None:
    """T13: the same cluster listed in other chunks leads to the same decisions."""
    told = []
    for chunk in sizes:
        scene = Scene(synced=False)
        scene.newer(ClassView("l40s", "", "", resource=RESOURCE, finalizers=(CLASS_FINALIZER,)))
        for number in range(3):
            scene.newer(NodeView(f"n{number}", "", "", ready=True, allocatable={RESOURCE: 2 + number}))
        for number in range(14):
            vmi = scene.newer(VmiView(f"vm{number}", "", "", "t", gpus='[{"className":"l40s","count":1}]'))
            scene.admit(vmi, f"r{number}")
            pod = scene.newer(launcher(vmi, f"p{number}", f"r{number}", {RESOURCE: 1}))
            scene.newer(replace(vmi, active_pods={pod.uid: ""}))
        decided: tuple[d.Decision, ...] = ()
        for kind in NEEDED_KINDS:
            decided += scene.relist(kind, chunk=chunk)
        told.append(decided + scene.settled())

    assert told[0] == told[1]
    assert sum(isinstance(one, d.SetPlaced) for one in told[0]) == 9


def test_claim_names_are_short_and_never_meet() -> None:
    """N3: a claim's name is its VMI's cut to fit, a hash of the uid and the index; the same VMI name is no clash."""
    names = [claim_name(vmi, uid, index) for vmi in ("vm", "v" * 300, "v.-" * 90) for uid in "ab" for index in (0, 15)]

    assert len(set(names)) == len(names)
    assert all(len(name) <= 253 and name[0].isalnum() and name[-1].isalnum() for name in names)
    assert claim_name("vm", "a", 0).startswith("vm-")
    assert ".-" not in claim_name("v" * 238 + "....-----" * 9, "a", 0).removeprefix("v" * 238)


def test_a_setting_that_cannot_be_read_keeps_its_default() -> None:
    """A typing error of the operator neither pauses nor unpauses, and is named."""
    read = read_settings({"paused": "yes", "startPolicy": "Whatever", "enabled": "FALSE"})

    assert (read.paused, read.policy, read.enabled) == (False, "Wait", False)
    assert [problem.split(":")[0] for problem in read.problems] == ["startPolicy", "paused"]


def _spoilt_usage(book: Book) -> None:
    book.usage.used["n1"][RESOURCE] += 1


def _spoilt_line(book: Book) -> None:
    book.line.put("uid-vm", (0, 0, "", "", "uid-vm"), (("dirty", "", 0),))


def _spoilt_pod(book: Book) -> None:
    first = book.state.sets["uid-vm"]
    other = replace(first, vmi=VmiId("t", "other", "u"), claims=(replace(first.claims[0], name="x"),))
    book.store_set("u", other)


def _spoilt_uid(book: Book) -> None:
    book.store_set("elsewhere", GpuSet(VmiId("t", "vm", "u"), Stamp(), 0))


def _spoilt_requests(book: Book) -> None:
    book.store_set("uid-vm", replace(book.state.sets["uid-vm"], requests={RESOURCE: 3}))


def _spoilt_reason(book: Book) -> None:
    known = book.state.sets["uid-vm"]
    book.store_set("uid-vm", GpuSet(known.vmi, known.stamp, 0, known.claims))
    book.state.dirty_nodes.clear()


def _spoilt_admission(book: Book) -> None:
    book.state.admitted["nobody"] = Admitted(("r",), 0)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_spoilt_usage, "index used"),
        (_spoilt_line, "index line"),
        (_spoilt_pod, "booked for one pod"),
        (_spoilt_uid, "kept under another uid"),
        (_spoilt_requests, "its booked pod requests"),
        (_spoilt_reason, "was told no reason"),
        (_spoilt_admission, "index deadlines"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_broken_promise_names_itself(spoil: object, says: str) -> None:
    """The checks find what is wrong with a state, and a state that is right has nothing to say."""
    scene = a_scene(units=1)
    vmi = a_vmi(scene, "vm")
    scene.admit(vmi, "r")
    pod = launcher(vmi, "p", "r", {RESOURCE: 1})
    scene.show(pod)
    scene.show(replace(vmi, active_pods={pod.uid: ""}))
    assert check(scene.book) == []
    assert callable(spoil)
    spoil(scene.book)

    assert any(says in sentence for sentence in check(scene.book)), check(scene.book)


def test_a_tick_is_small() -> None:
    """T9: time costs the log a handful of bytes."""
    assert encode_event(Tick()) == b'{"type":"tick"}'
