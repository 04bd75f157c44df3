"""A member that is cut off from its cluster while clients hold on to it: its copy decides nothing (C62)."""

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from binder.access import Access
from binder.doubt import Doubt
from binder.jetstream import Connection, connect
from binder.journal import Unavailable, Unclear
from binder.stream_journal import JetStreamJournal, Leaderless
from binder.stream_setup import create_streams
from deploy.local import NatsServer
from schemas.streams import EVENTS, EVENTS_TICK
from tests.binder.waiting import eventually, patient
from tests.nats_links import LinkedNats
from tests.servers import stream_leader

pytestmark = pytest.mark.nats


@pytest_asyncio.fixture
async def linked(tmp_path: Path) -> AsyncIterator[LinkedNats]:
    """Three servers whose links can be cut."""
    async with LinkedNats(tmp_path / "nats") as nats:
        yield nats


async def _follower(nats: LinkedNats) -> NatsServer:
    """Return a member that leads neither EVENTS nor the cluster."""
    leading = (await stream_leader(nats, EVENTS), await nats.leader())
    return next(server for server in nats.servers if server not in leading)


async def _on_the_leader(nats: LinkedNats) -> Connection:
    """Make the streams; return a connection to the server that leads EVENTS."""
    maker = await connect(Access(tuple(nats.urls)), pytest.fail)
    await patient(partial(create_streams, JetStreamJournal(maker), replicas=3))
    await maker.close()
    return await connect(Access(((await stream_leader(nats, EVENTS)).url,)), pytest.fail)


async def _has_old_copy(connection: Connection) -> bool:
    """Say whether the member shows the first message as its newest, where it answers from its own copy."""
    question = json.dumps({"last_by_subj": EVENTS_TICK}).encode()
    try:
        # Any member may answer this; those beyond the cut are not heard.
        answer = await connection.call(f"$JS.API.DIRECT.GET.{EVENTS}", question, seconds=0.3)
    except (Unclear, Unavailable):
        return False
    return answer.data == b"old"


async def test_what_was_written_is_never_read_older(linked: LinkedNats) -> None:
    """C62: written through one server, read through a member that missed it: no answer, never the old one."""
    near = await _on_the_leader(linked)
    journal = JetStreamJournal(near)
    await patient(lambda: journal.append(EVENTS, EVENTS_TICK, b"old", message_id="old"))
    member = await _follower(linked)
    far = await connect(Access((member.url,)), pytest.fail, call_seconds=1.0)
    far.doubt = Doubt(_stay)
    beyond = JetStreamJournal(far)
    assert (await patient(lambda: beyond.info(EVENTS))).last == 1

    linked.cut(member)
    await patient(lambda: journal.append(EVENTS, EVENTS_TICK, b"new", message_id="new"))
    await eventually(lambda: _has_old_copy(far), "the member answers from its own, older copy")

    async def hears_of_no_leader() -> bool:
        try:
            await beyond.info(EVENTS)
        except Leaderless:
            return True
        except (Unavailable, Unclear):
            return False
        raise AssertionError("a member that was cut off told of its own copy")

    await eventually(hears_of_no_leader, "the member knows that it hears of no leader")
    with pytest.raises((Unavailable, Unclear)):
        await beyond.get(EVENTS, 2)
    with pytest.raises((Unavailable, Unclear)):
        await beyond.last(EVENTS, EVENTS_TICK)
    linked.mend(member)
    assert (await patient(lambda: beyond.info(EVENTS))).last == 2
    found = await patient(lambda: beyond.last(EVENTS, EVENTS_TICK))
    assert found is not None
    assert found.body == b"new"
    await far.close()
    await near.close()


async def _stay() -> None:
    """Leave a client where it is."""


async def test_a_client_leaves_a_member_that_answers_nothing(linked: LinkedNats) -> None:
    """Connected to a member that is cut off, it goes to another by itself, and goes on there."""
    near = await _on_the_leader(linked)
    journal = JetStreamJournal(near)
    member = await _follower(linked)
    # Of the others it hears from this one.
    far = await connect(Access((member.url,)), pytest.fail, call_seconds=1.0)
    beyond = JetStreamJournal(far)
    await patient(lambda: beyond.info(EVENTS))

    linked.cut(member)
    stored = await patient(lambda: beyond.append(EVENTS, EVENTS_TICK, b"", message_id="a"))
    assert stored == (await patient(lambda: journal.info(EVENTS))).last
    linked.mend(member)
    await far.close()
    await near.close()
