"""`gpubinder void`: one input that nobody can read stops the log, and a skip lets it go on (T6)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from binder.access import Access
from binder.anchor import Anchor
from binder.audit import Auditor
from binder.evolve import may_place
from binder.jetstream import connect
from binder.logbook import append_genesis
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from binder.voiding import NotVoidable, void
from deploy.adopt import adopt_fresh
from deploy.cluster_in_memory import Cluster, running
from deploy.demo import NAMESPACE
from deploy.local import LocalNats
from deploy.roles import Place, run_binder, run_ingest
from schemas.events import Tick, UnknownMessage, encode_event
from schemas.frames import Genesis
from schemas.streams import DECISIONS, EVENTS, EVENTS_TICK
from tests.deploy.command import gpubinder
from tests.deploy.logs import Kept
from tests.deploy.waiting import SECONDS, until

UNKNOWN = b'{"type":"tick","version":2}'


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


async def _until_placing(place: Place) -> int:
    """Wait until the binder may place; return the EVENTS sequence it folded."""

    async def look() -> int | None:
        binder = place.standing.binder
        follower = binder.follower if binder is not None else None
        return follower.book.state.events_seq if follower is not None and may_place(follower.book.state) else None

    return await until(look)


async def test_an_unknown_message_stops_the_binder_until_it_is_voided(place: Place, nats: LocalNats) -> None:
    """T6: the binder names the message and the way out; after the skip the log goes on, and is whole."""
    async with running(run_binder(place, place.binder()), run_ingest(place)):
        await _until_placing(place)
    unknown = await place.journal.append(EVENTS, EVENTS_TICK, UNKNOWN, message_id="from-tomorrow")

    with pytest.raises(UnknownMessage, match=rf"EVENTS message {unknown}: .*`gpubinder void {unknown} "):
        await asyncio.wait_for(run_binder(place, place.binder()), SECONDS)
    ran = await asyncio.to_thread(
        gpubinder, "void", str(unknown), "--why", "rolled back", "--who", "ops", "--json", "--nats", nats.url
    )
    assert ran.code == 0, ran.err
    async with running(run_binder(place, place.binder()), run_ingest(place)):
        assert await _until_placing(place) > unknown
        state = place.standing.binder.follower.book.state  # type: ignore[union-attr]  # it was just waited for
        assert state.voided == {str(unknown): "ops: rolled back"}

    report = await Auditor(place.journal).verify(await Anchor(place.kube, NAMESPACE).read())
    assert report.whole, report
    assert report.voided == 1


async def test_a_skip_is_refused_where_it_would_change_history(place: Place) -> None:
    """T6: what was decided on, what can be read, and what is not there can't be skipped; each says why."""
    async with running(run_binder(place, place.binder()), run_ingest(place)):
        await _until_placing(place)
    readable = await place.journal.append(EVENTS, EVENTS_TICK, encode_event(Tick()), message_id="readable")
    malformed = await place.journal.append(EVENTS, EVENTS_TICK, b"{", message_id="malformed")

    for sequence, why in (
        (1, "was decided on already"),
        (readable, "can be read, it is tick"),
        (malformed, "is answered with a rejection"),
        (malformed + 1, "does not exist"),
    ):
        with pytest.raises(NotVoidable, match=why):
            await void(place.journal, sequence, who="ops", why="test")

    at, _ = await void(place.journal, readable, who="ops", why="its folding fails", force=True)
    assert at == (await place.journal.info(DECISIONS)).last


async def test_a_skip_needs_a_log(nats: LocalNats) -> None:
    """T4: a stream without a genesis is no log to skip in."""
    connection = await connect(Access((nats.url,)), lambda _why: None)
    journal = JetStreamJournal(connection)
    await create_streams(journal, replicas=1)

    with pytest.raises(NotVoidable, match="has no genesis"):
        await void(journal, 1, who="ops", why="test")
    await append_genesis(journal, Genesis("log", 1, "cluster", "test"))
    with pytest.raises(NotVoidable, match="does not exist"):
        await void(journal, 1, who="ops", why="test")
    await connection.close()


def test_a_skip_says_why(demo_log: Kept, tmp_path: Path) -> None:
    """A reason of blanks is none: wrong usage."""
    ran = gpubinder("void", "3", "--why", " ", "--data", demo_log.copy(tmp_path / "log"))

    assert ran.code == 2
    assert "--why" in ran.err
