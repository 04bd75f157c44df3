"""`gpubinder pause`, `resume`, `unskip`: an operator's hand goes through the log, and hears what became of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from binder.access import Access
from binder.commanding import NotAnswered, command
from binder.jetstream import connect
from binder.state import State
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.adopt import adopt_fresh
from deploy.cluster_in_memory import Cluster, running
from deploy.demo import NAMESPACE
from deploy.local import LocalNats
from deploy.roles import Place, run_binder
from schemas.events import Command
from schemas.reasons import Order
from schemas.streams import EVENTS
from tests.deploy.command import Ran, gpubinder
from tests.deploy.logs import Kept


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
        unskipped = await _said(nats, "unskip", "tenant-a/vm1", "n1", "--json")
        assert unskipped.code == 1
        assert msgspec.json.decode(unskipped.out)["answer"] == "VM tenant-a/vm1 skips no node n1 now"


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
        await command(journal, Command(Order.PAUSE, "ops"), seconds=1)
    assert (await journal.info(EVENTS)).last == 0
    await connection.close()


def test_a_vm_is_named_with_its_namespace(demo_log: Kept, tmp_path: Path) -> None:
    """Half a name is wrong usage."""
    ran = gpubinder("unskip", "vm1", "--data", demo_log.copy(tmp_path / "log"))

    assert ran.code == 2
    assert "NAMESPACE/NAME" in ran.err
