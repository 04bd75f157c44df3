"""A later generation of a log: it begins with nothing, books what it finds, and is proven like the first (T4)."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import msgspec
import pytest
from msgspec.structs import replace

from binder.adopting import taking_over
from binder.adoption_notes import conflicts, counted, not_booked, overbooked
from binder.anchor import Anchor
from binder.audit import Auditor
from binder.book import Book
from binder.evolve import SETS_PER_INPUT_MAX, Spent, evolve_decision
from binder.evolve_objects import observe
from binder.follower import Follower
from binder.logbook import append_genesis
from binder.memory_journal import MemoryJournal
from binder.service import Binder
from binder.snapshot import encode_state
from binder.snapshots import StateSnapshots
from binder.state import empty_state
from deploy.world.apiserver import ApiServer
from deploy.world.clock import WallClock
from projector.plan import undecided
from schemas import decisions as d
from schemas import events as e
from schemas.frames import Frame, Genesis
from schemas.kinds import NAMESPACE
from schemas.objects import AnyView, ClaimView, ClassView, NodeView, PodView, Stamp, VmiView
from schemas.reasons import Order
from schemas.streams import DECISIONS, EVENTS, EVENTS_WATCH
from tests.binder.leading import log
from tests.binder.scene import Scene, launcher
from tests.binder.test_heart_bounds import RESOURCE, a_scene, a_vmi
from tests.binder.test_service import HOME, _hear, a_binder, ended
from tests.binder.waiting import eventually, true


def running(scene: Scene, name: str, node: str = "n1") -> VmiView:
    """Show a VM whose launcher was let go on a node; nobody decided it in this scene's log."""
    vmi = a_vmi(scene, name)
    pod = replace(launcher(vmi, f"{name}-pod", f"r-{name}", {RESOURCE: 1}), gates=(), node=node, phase="Running")
    scene.show(pod)
    scene.show(replace(vmi, active_pods={pod.uid: node}))
    return vmi


def lists(scene: Scene) -> tuple[d.Decision, ...]:
    """List every kind anew."""
    return tuple(one for kind in scene.objects for one in scene.relist(kind))


def test_many_vms_are_booked_within_the_bound_and_nothing_else_is_decided_before_the_last() -> None:
    """T4, T5: the first input books as many as it may; the rest follows, over a restart; only then a VM is gathered."""
    scene = a_scene(units=200)
    names = [f"vm{number:03}" for number in range(SETS_PER_INPUT_MAX + 30)]
    for name in names:
        running(scene, name)
    late = a_vmi(scene, "late")
    scene.admit(late, "r-late")
    pod = launcher(late, "late-pod", "r-late", {RESOURCE: 1})
    scene.forget("nodes", "n1")
    scene.adopt()
    scene.show(NodeView("n1", "", "", ready=True, allocatable={RESOURCE: 200, "cpu": 1 << 30}))
    scene.show(pod)
    scene.show(replace(late, active_pods={pod.uid: ""}))

    first = [one for one in lists(scene) if not isinstance(one, d.PodAdmitted)]
    assert len(first) == SETS_PER_INPUT_MAX
    assert scene.book.state.adopting
    assert undecided(scene.book.state) == ()
    scene.restart()
    said = scene.settled()

    assert len([one for one in (*first, *said) if isinstance(one, d.SetAdopted)]) == len(names)
    kinds = [type(one) for one in said]
    assert kinds.index(d.Adopted) < kinds.index(d.SetPlaced)
    node = scene.book.state.node("n1")
    assert node is not None
    assert scene.book.free(node, RESOURCE) == 200 - len(names) - 1


def test_a_command_that_moves_something_waits_until_all_is_booked() -> None:
    """T4: nothing is moved or released of which it is not known who uses it."""
    scene = a_scene(units=200)
    for number in range(SETS_PER_INPUT_MAX + 5):
        running(scene, f"vm{number:03}")
    scene.adopt()
    lists(scene)
    assert scene.book.state.adopting

    answer = scene.send(e.Command(Order.RELEASE, "ops", "t", "vm000"))[0]

    assert isinstance(answer, d.Commanded)
    assert not answer.done
    assert "not complete yet" in answer.answer


def picture(*views: tuple[str, AnyView]) -> Book:
    """Return a picture of a cluster, as an operator's look reads it."""
    book = Book(empty_state())
    for kind, view in views:
        observe(book, kind, view)
    return book


def told(book: Book) -> list[str]:
    """Take all over as the look does; return what an operator reads of it."""
    notes: list[str] = []
    for number, decision in enumerate(taking_over(book, Spent())):
        notes += conflicts(book, decision)
        evolve_decision(book, Stamp(1, 1, number), decision)
    return [*notes, *not_booked(book), *overbooked(book), *counted(book)]


def cluster(pods: Iterable[PodView], claims: Iterable[ClaimView], *vmis: VmiView) -> Book:
    """Return a cluster of two nodes of two units each, with these objects."""
    nodes = [NodeView(name, name, "1", ready=True, allocatable={"gpu/a": 2}) for name in ("n1", "n2")]
    return picture(
        ("gpuclasses", ClassView("a", "a", "1", resource="gpu/a")),
        *(("nodes", node) for node in nodes),
        *(("virtualmachineinstances", vmi) for vmi in vmis),
        *(("gpuclaims", claim) for claim in claims),
        *(("pods", pod) for pod in pods),
    )


def a_vm(name: str, entry: str, pod: str) -> VmiView:
    """Return a VMI that lists one pod."""
    return VmiView(name, f"uid-{name}", "1", "t", gpus=f"[{entry}]", active_pods={f"uid-{pod}": ""})


def let_go(vmi: VmiView, name: str, node: str, units: int = 1) -> PodView:
    """Return its launcher, running on a node."""
    return replace(launcher(vmi, name, f"r-{name}", {"gpu/a": units}), gates=(), node=node)


def test_the_pod_wins_over_a_status_and_the_operator_reads_so() -> None:
    """T4, T14: a claim's status is old, its launcher is elsewhere; a claim whose units launchers have is Lost."""
    user, greedy = a_vm("user", '{"claimName":"mine"}', "user-pod"), a_vm("greedy", '{"className":"a","count":2}', "g")
    mine = ClaimView("mine", "m", "1", "t", class_name="a", phase="Bound", node="n1", resource="gpu/a")
    taken = replace(mine, name="taken", uid="x")
    book = cluster([let_go(user, "user-pod", "n2"), let_go(greedy, "g", "n1", 2)], [mine, taken], user, greedy)

    notes = told(book)

    assert [book.state.holdings[key].node for key in ("t/mine", "t/taken")] == ["n2", ""]
    assert notes[0].startswith("claim t/greedy-")
    assert notes[0].endswith("is missing: it is made again")
    assert "claim t/mine says n1, the launcher user-pod is on n2: n2 it is" in notes
    assert any(
        note.startswith("claim t/taken: launchers or older bookings leave it too few units on node n1")
        for note in notes
    )


def test_what_is_no_set_of_ours_is_listed_and_counts_by_itself() -> None:
    """T4: a VM with GPU entries of its own, and one whose launcher requests something else, keep what they have."""
    odd = a_vm("odd", '{"className":"a","count":1}', "odd-pod")
    plain = PodView("virt-launcher-plain", "p", "1", "t", node="n2", requests={"gpu/a": 1}, owner_name="plain")
    book = cluster([let_go(odd, "odd-pod", "n1", 2), plain], [], odd)

    notes = told(book)

    assert notes[0].startswith("VM t/odd is on n1, and its entries, claims and requests don't make one set of ours")
    assert notes[1:] == [
        "pod t/odd-pod of VM t/odd on n1: 2 x gpu/a",
        "pod t/virt-launcher-plain of VM t/plain on n2: 1 x gpu/a",
    ]
    nodes = [book.state.node(name) for name in ("n1", "n2")]
    assert [book.free(node, "gpu/a") for node in nodes if node is not None] == [0, 1]


def test_of_two_vms_that_run_with_one_claim_the_older_has_it() -> None:
    """A claim is in one set only; the other VM goes on, and its units are its launcher's alone."""
    older, younger = (a_vm(name, '{"claimName":"mine"}', f"{name}-pod") for name in ("older", "younger"))
    younger = replace(younger, created=5)
    mine = ClaimView("mine", "m", "1", "t", class_name="a", phase="Bound", node="n2", resource="gpu/a")
    book = cluster([let_go(older, "older-pod", "n1"), let_go(younger, "younger-pod", "n2")], [mine], younger, older)

    notes = told(book)

    assert [one.vmi.name for one in book.state.sets.values()] == ["older"]
    assert book.state.holdings["t/mine"].node == "n1"
    assert "pod t/younger-pod of VM t/younger on n2: 1 x gpu/a" in notes
    nodes = [book.state.node(name) for name in ("n1", "n2")]
    assert [book.free(node, "gpu/a") for node in nodes if node is not None] == [1, 1]


def test_of_two_claims_whose_statuses_name_the_same_units_one_has_them() -> None:
    """T4: no launcher speaks for either, and both statuses can't be true: the other is Lost, and still counts (B4)."""
    one = ClaimView("one", "1", "1", "t", class_name="a", count=2, phase="Bound", node="n1", resource="gpu/a")
    book = cluster([], [one, replace(one, name="other", uid="2")])

    notes = told(book)

    assert [book.state.holdings[key].node for key in ("t/one", "t/other")] == ["n1", ""]
    assert notes[0].startswith("claim t/other: launchers or older bookings leave it too few units on node n1")
    assert book.usage.used == {"n1": {"gpu/a": 2}}
    assert book.budgets.held("t", "gpus.cozystack.io/a") == 4


@pytest.mark.parametrize("offered", [0, 1])
def test_a_node_that_offers_too_little_for_a_while_loses_no_claim(offered: int) -> None:
    """C16: the device plugin restarts while the cluster is taken over: the claim stays, and the node has its grace."""
    mine = ClaimView("mine", "m", "1", "t", class_name="a", count=2, phase="Bound", node="n3", resource="gpu/a")
    book = cluster([], [mine])
    observe(book, "nodes", NodeView("n3", "n3", "1", ready=True, allocatable={"gpu/a": offered}))

    assert told(book) == [f"node n3 has {2 - offered} x gpu/a less than is booked there"]
    assert book.state.holdings["t/mine"].node == "n3"


@asynccontextmanager
async def _anchored(journal: MemoryJournal) -> AsyncIterator[Binder]:
    """Run a standby on a log whose anchor says where it stands now."""
    api = ApiServer(clock=WallClock())
    await api.create(
        NAMESPACE, "", msgspec.json.encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    )
    anchor = Anchor(api, HOME)
    await anchor.create((await log(journal))[-1].tip)
    binder = Binder(journal, anchor, StateSnapshots(journal, "0"), identity="b", program="0")
    following = asyncio.create_task(binder.run())
    await eventually(lambda: true(binder.follower is not None and binder.follower.tip.generation == 2), "the standby")
    try:
        yield binder
    finally:
        await ended(following)


async def _adopted(journal: MemoryJournal) -> bool:
    frames = [one.record for one in await log(journal) if isinstance(one.record, Frame)]
    entries = [entry for frame in frames for entry in frame.entries]
    return any(isinstance(one, d.Adopted) for entry in entries for one in entry.decisions)


async def test_a_generation_goes_on_in_the_streams_that_stand() -> None:
    """T1, T4: it reads its inputs from where its genesis says, forgets what was before, and verify proves all of it."""
    journal = MemoryJournal()
    scene = a_scene(units=4)
    async with a_binder(journal) as (binder, _):
        leading = asyncio.create_task(binder.lead())
        await eventually(lambda: true(binder.leading), "a leader")
        await _hear(journal, scene)
        await ended(leading)
    running(scene, "vm")
    before = (await log(journal))[-1].tip
    last = (await journal.info(EVENTS)).last
    await append_genesis(journal, Genesis("log", 2, "c", "0", adopts=True, events_last=last), before)

    follower = Follower(journal)
    state = await follower.start()
    assert (state.generation, state.adopting, state.events_seq, state.sets) == (2, True, last, {})
    assert state.objects["nodes"] == {}
    anew = Scene(synced=False)
    anew.sequence, anew.objects = last, scene.objects
    anew.adopt()
    lists(anew)
    async with _anchored(journal) as binder:
        leading = asyncio.create_task(binder.lead())
        await eventually(lambda: true(binder.leading), "a leader of the new generation")
        for number, (_, _, body, _) in enumerate(anew.log):
            await journal.append(EVENTS, f"{EVENTS_WATCH}.any", body, message_id=f"anew{number}")
        await eventually(lambda: _adopted(journal), "the adoption")
        await ended(leading)

    report = await Auditor(journal, confirm_seconds=0.1).verify()
    assert report.whole, report
    assert (report.generation, report.chain_only) == (2, 0)
    once, again = Follower(journal), Follower(journal)
    assert encode_state(await once.start()) == encode_state(await again.start())
    assert [(one.node, one.stamp.generation) for one in once.book.state.sets.values()] == [("n1", 2)]
    assert (await journal.info(DECISIONS)).last > before.sequence + 1
