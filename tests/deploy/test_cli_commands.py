"""`gpubinder pause`, `resume`, `move`, `release`, `unskip`: an operator's hand goes through the log and is answered."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from binder.access import Access
from binder.commanding import NotAnswered, command
from binder.jetstream import connect
from binder.logbook import open_epoch
from binder.state import State
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.adopt import adopt_fresh
from deploy.cluster_in_memory import Cluster, running
from deploy.demo import NAMESPACE
from deploy.local import LocalNats
from deploy.roles import Place, run_binder
from schemas.events import Command
from schemas.frames import Epoch
from schemas.names import CLASS_FINALIZER
from schemas.objects import ClaimView, ClassView, NodeView
from schemas.reasons import Order
from schemas.streams import DECISIONS, EVENTS, EVENTS_WATCH
from tests.binder.scene import Scene
from tests.deploy.command import Ran, gpubinder
from tests.deploy.logs import Kept
from tests.deploy.waiting import until

CARD = "nvidia.com/AD102GL_L40S"


@pytest.fixture
async def place(nats: LocalNats) -> AsyncIterator[Place]:
    """A log begun on an empty cluster; no role runs."""
    connection = await connect(Access((nats.url,)), lambda _why: None)
    journal, cluster = JetStreamJournal(connection), Cluster(())
    cluster.api.writes.seed_namespace(NAMESPACE)
    await create_streams(journal, replicas=1)
    await adopt_fresh(cluster.api, journal, NAMESPACE, "test")
    yield Place(cluster.api, journal, connection, NAMESPACE, "test", "test")
    await connection.close()


async def _said(nats: LocalNats, *words: str) -> Ran:
    return await asyncio.to_thread(gpubinder, *words, "--nats", nats.url)


def _state(place: Place) -> State:
    binder = place.standing.binder
    assert binder is not None
    assert binder.follower is not None
    return binder.follower.book.state


async def test_a_command_is_decided_and_answered(place: Place, nats: LocalNats) -> None:
    """D5: pause holds with who said so until resume; what changes nothing fails and says why; --json tells the same."""
    async with running(run_binder(place, place.binder())):
        paused = await _said(nats, "pause", "--who", "ops")
        assert (paused.code, _state(place).paused) == (0, "ops"), paused.err
        assert "placing is paused" in paused.out
        again = await _said(nats, "pause")
        assert again.code == 1
        assert "paused already, by ops" in again.err
        resumed = await _said(nats, "resume", "--who", "ops", "--json")
        assert msgspec.json.decode(resumed.out) == {
            "order": "resume",
            "who": "ops",
            "done": True,
            "answer": "placing goes on",
        }
        assert _state(place).paused == ""
        early = await _said(nats, "move", "tenant-a/mine", "--to", "n2")
        assert early.code == 1
        assert "the picture of the cluster is not complete yet" in " ".join(early.err.split())
        unskipped = await _said(nats, "unskip", "tenant-a/vm1", "n1", "--json")
        assert unskipped.code == 1
        assert msgspec.json.decode(unskipped.out)["answer"] == "VM tenant-a/vm1 skips no node n1 now"


async def _shown(place: Place) -> None:
    """Let EVENTS tell of a small cluster: a class, two nodes with a unit each, and a claim that was ordered."""
    scene = Scene()
    scene.show(ClassView("l40s", "", "", resource=CARD, finalizers=(CLASS_FINALIZER,)))
    scene.show(*(NodeView(name, "", "", ready=True, allocatable={CARD: 1}) for name in ("n1", "n2")))
    scene.show(ClaimView("mine", "", "", "tenant-a", class_name="l40s"))
    for sequence, _, body, _ in scene.log:
        await place.journal.append(EVENTS, EVENTS_WATCH, body, message_id=f"told-{sequence}")


async def test_a_claim_is_moved_and_released(place: Place, nats: LocalNats) -> None:
    """D9: a held claim that no launcher uses goes where the operator says, or loses its node."""
    async with running(run_binder(place, place.binder())):

        async def is_led() -> bool:
            return (await place.journal.info(DECISIONS)).last > 1

        # What an epoch saw before it began is old news to it (T11).
        await until(is_led)
        await _shown(place)

        async def is_bound() -> bool:
            holding = _state(place).holdings.get("tenant-a/mine")
            return holding is not None and holding.node == "n1"

        await until(is_bound)
        moved = await _said(nats, "move", "tenant-a/mine", "--to", "n2", "--who", "ops", "--json")
        assert (moved.code, moved.json["order"], moved.json["done"]) == (0, "move", True), moved.out + moved.err
        assert "moved to node n2 from node n1" in moved.json["answer"]
        assert _state(place).holdings["tenant-a/mine"].node == "n2"
        shown = await _said(nats, "explain", "tenant-a/mine")
        assert shown.out.startswith("tenant-a/mine has its units on n2"), shown.out + shown.err
        table = [" ".join(line.split()) for line in (await _said(nats, "replay")).out.splitlines()]
        assert "tenant-a/mine 1 x l40s n2 Bound -" in table
        again = await _said(nats, "move", "tenant-a/mine", "--to", "n2")
        assert again.code == 1
        assert "is on node n2 already" in again.err
        released = await _said(nats, "release", "tenant-a/mine")
        assert (released.code, _state(place).holdings["tenant-a/mine"].node) == (0, ""), released.err
        assert "left node n2" in " ".join(released.out.split())


async def test_a_command_is_told_to_nobody_who_can_not_read_it(place: Place) -> None:
    """T6: a leader that does not announce commands would stop on one, so that none is stored."""
    older = Epoch("log", 1, "old", "n", program="0.0", rules=1, events_last=0, message_versions=(1,))
    await open_epoch(place.journal, older)

    with pytest.raises(NotAnswered, match=r"the leader \(0.0\) does not read commands"):
        await command(place.journal, Command(Order.PAUSE, "ops"), seconds=60)
    assert (await place.journal.info(EVENTS)).last == 0


async def test_a_command_that_nobody_answers_is_carried_out_later(place: Place, nats: LocalNats) -> None:
    """It is stored: the operator hears so, and a binder that leads later carries it out."""
    late = await _said(nats, "pause", "--who", "ops", "--wait", "1")

    assert late.code == 1
    assert "is carried out as soon as one leads" in " ".join(late.err.split())
    async with running(run_binder(place, place.binder())):
        assert (await command(place.journal, Command(Order.PAUSE, "b"), seconds=60)).answer.endswith("by ops")


async def test_a_command_needs_a_log(nats: LocalNats) -> None:
    """T4: a stream without a genesis is no log, and nothing is stored in it."""
    connection = await connect(Access((nats.url,)), lambda _why: None)
    journal = JetStreamJournal(connection)
    await create_streams(journal, replicas=1)

    with pytest.raises(NotAnswered, match="has no genesis"):
        await command(journal, Command(Order.PAUSE, "ops"), seconds=60)
    assert (await journal.info(EVENTS)).last == 0
    await connection.close()


def test_a_vm_is_named_with_its_namespace(demo_log: Kept, tmp_path: Path) -> None:
    """Half a name is wrong usage."""
    ran = gpubinder("unskip", "vm1", "--data", demo_log.copy(tmp_path / "log"))

    assert ran.code == 2
    assert "NAMESPACE/NAME" in ran.err
