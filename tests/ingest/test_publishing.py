"""Publishing: chunks of bounded size, credit that keeps the way free for requests, answers that get lost."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.world.apiserver import ApiServer
from ingest.chunks import CHUNK_BYTES_MAX, chunks
from ingest.credit import IN_FLIGHT_MAX, Credit
from schemas import kinds
from schemas.events import CHANGES_PER_CHUNK_MAX, Changes, SessionOpened, Tick, decode_event, encode_event
from schemas.objects import AnyView, Gone, NodeView
from schemas.streams import EVENTS, EVENTS_TICK
from tests.ingest.following import Leader, following, settled, until
from tests.ingest.given import put
from tests.ingest.troubled import Lossy

SIZES = st.lists(st.sampled_from([10, 1000, 30_000, 300_000]), max_size=12)


@given(SIZES, st.integers(0, 450))
def test_t13_chunks_keep_order_and_bounds(sizes: list[int], more: int) -> None:
    """All changes in order; at most so many and so many bytes a chunk, unless one change alone is larger (T5, T13)."""
    views = [NodeView(f"n{at}", "u", "1", labels={"x": "y" * size}) for at, size in enumerate(sizes)]
    changes: list[AnyView | Gone] = [*views, *(Gone(f"g{at}", "u", "1") for at in range(more))]

    bodies = list(chunks("nodes", 7, changes))
    read = [decode_event(body) for body in bodies]

    assert [change for chunk in read if isinstance(chunk, Changes) for change in chunk.changes] == changes
    assert all(isinstance(chunk, Changes) and (chunk.kind, chunk.session) == ("nodes", 7) for chunk in read)
    assert all(0 < len(chunk.changes) <= CHANGES_PER_CHUNK_MAX for chunk in read if isinstance(chunk, Changes))
    assert all(len(body) <= CHUNK_BYTES_MAX for body in bodies)


async def test_t13_credit_is_lent_in_turn_and_given_back_by_frames() -> None:
    """No more than the limit is out; whoever waited longest is served first; a failed publish gives its place back."""
    credit, order = Credit(2), []

    async def publish(sequence: int) -> None:
        async with credit.place() as place:
            order.append(sequence)
            place.sequence = sequence

    async with asyncio.TaskGroup() as group:
        for sequence in (11, 12, 13, 14):
            group.create_task(publish(sequence))
        await until(lambda: order == [11, 12], "two are out")
        assert credit.taken == 2
        credit.cover(11)
        await until(lambda: order == [11, 12, 13], "one more")
        credit.cover(20)
    with pytest.raises(OSError, match="lost"):
        async with credit.place():
            raise OSError("lost")
    assert order == [11, 12, 13, 14]
    assert credit.taken == 0


@pytest.mark.looptime
async def test_t13_a_relist_of_thousands_leaves_the_way_free() -> None:
    """While the leader covers nothing, few chunks are on the stream; a request would stand right behind them (T13)."""
    server = ApiServer()
    for number in range(2500):
        put(server, kinds.POD, "launcher", f"pod-{number:05}")
    async with following(server) as (ingest, leader):
        leader.covering.clear()
        await until(lambda: ingest.credit.taken >= IN_FLIGHT_MAX, "credit is used up")
        waiting = await _chunks_beyond(leader, leader.book.state.events_seq)
        tail = (await leader.journal.info(EVENTS)).last
        await leader.journal.append(EVENTS, EVENTS_TICK, encode_event(Tick()), message_id="tick")
        assert (await leader.journal.info(EVENTS)).last == tail + 1
        leader.covering.set()
        await settled(server, leader, ingest)
        sizes = [len(e.changes) for _, e in leader.events if isinstance(e, Changes) and e.kind == "pods"]
        assert ingest.credit.taken == 0
    assert waiting <= IN_FLIGHT_MAX
    assert sum(sizes) == 2500
    assert max(sizes) <= CHANGES_PER_CHUNK_MAX


async def _chunks_beyond(leader: Leader, sequence: int) -> int:
    tail = (await leader.journal.info(EVENTS)).last
    found = [await leader.journal.get(EVENTS, number) for number in range(sequence + 1, tail + 1)]
    return sum(isinstance(decode_event(message.body), Changes) for message in found if message)


@pytest.mark.looptime
async def test_t3_a_publish_whose_answer_was_lost_is_repeated_under_its_own_id() -> None:
    """Each message is stored once, in order, although every second answer is lost; no id is used for two (T3, C38)."""
    server, journal = ApiServer(), Lossy()
    for number in range(450):
        put(server, kinds.POD, "launcher", f"pod-{number:03}")
    async with following(server, journal=journal) as (ingest, leader):
        await settled(server, leader, ingest)
        put(server, kinds.POD, "launcher", "pod-000", status__phase="Running")
        put(server, kinds.POD, "launcher", "pod-000", status__phase="Pending")
        await until(
            lambda: sum(len(c.changes) for c in leader.published(Changes) if c.kind == "pods") == 452, "changes"
        )
        bodies = Counter(message.body for message, event in leader.events if not isinstance(event, SessionOpened))
        told = [e for _, e in leader.events if isinstance(e, Changes) and e.kind == "pods"]
    assert set(bodies.values()) == {1}
    assert max(journal.asked.values()) == 2
    assert [len(e.changes) for e in told[:3]] == [200, 200, 50]
    assert len({e.session for e in told}) == 1
