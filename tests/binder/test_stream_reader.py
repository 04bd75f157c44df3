"""The reader on real servers: kills, silence, lost tails; nothing is read over or read twice (T1)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import msgspec
import pytest

from binder import stream_reader
from binder.journal import RUN_MAX, Gap, Message
from binder.stream_api import Delivery
from binder.stream_journal import JetStreamJournal
from binder.tip import canonical
from schemas.streams import EVENTS, EVENTS_TICK
from tests.binder.conftest import NatsStand
from tests.binder.waiting import SECONDS, eventually, patient, true
from tests.nats_proxy import NatsProxy


async def _read(journal: JetStreamJournal, stream: str, start: int, until: int) -> list[Message]:
    return [message async for run in journal.read(stream, start, until=until) for message in run]


async def _took(reader: AsyncIterator[list[Message]], count: int) -> list[int]:
    """Return the sequences of what a reader gives next, so many: how they come in runs is the server's affair."""
    got: list[int] = []
    while len(got) < count:
        got += [message.sequence for message in await anext(reader)]
    return got


async def _fill(journal: JetStreamJournal, first: int, last: int, body: bytes = b"") -> None:
    parts = [(EVENTS_TICK, body or b"%d" % number) for number in range(first, last + 1)]
    await patient(lambda: journal.append_batch(EVENTS, parts))


async def test_a_message_has_one_hash_before_and_after_a_crash(stand: NatsStand) -> None:
    """T1: delivered and fetched, now and after kill -9 and restart, a message gives the same bytes to hash."""
    journal = await stand.fresh()
    for number in range(5):
        await journal.append(
            EVENTS,
            EVENTS_TICK,
            b"%d" % number,
            message_id=f"m{number}",
            expected_last=number,
            headers={"B": "ü", "A": ""},
        )
    before = [canonical(message) for message in await _read(journal, EVENTS, 1, 5)]

    await stand.servers.crash(EVENTS)

    delivered = await _read(journal, EVENTS, 1, 5)
    fetched = [await patient(partial(journal.get, EVENTS, at)) for at in range(1, 6)]
    assert [canonical(message) for message in delivered] == before
    assert [canonical(message) for message in fetched if message is not None] == before


async def _reached(got: list[int], count: int) -> None:
    await eventually(lambda: true(len(got) >= count), "the reader goes on")


async def test_a_reader_outlives_kills_without_hole_or_repeat(stand: NatsStand) -> None:
    """Kill -9 under a reader, three times: it gets every message once and in order."""
    journal = await stand.fresh()
    reader = journal.read(EVENTS, 1, until=1200)
    got: list[int] = []

    async def read() -> None:
        async for run in reader:
            got.extend(message.sequence for message in run)

    reading = asyncio.create_task(read())
    for turn in range(4):
        await _fill(journal, 300 * turn + 1, 300 * turn + 300)
        await _reached(got, 300 * turn + 100)
        if turn < 3:
            await stand.servers.crash(EVENTS)
    await reading

    last = (await patient(lambda: journal.info(EVENTS))).last
    # A batch whose acknowledgement died with the server is put again: count by sequence, not by body.
    assert last >= 1200
    assert got == list(range(1, 1201))


async def test_a_reader_asks_again_when_the_server_goes_silent(stand: NatsStand) -> None:
    """What the server sent is lost on the way: the reader notices the jump or the silence and reads on."""
    await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url)
        await _fill(journal, 1, 50)
        dropped = iter([False] * 10 + [True] * 7)
        proxy.loses = lambda frame: b"$JS.ACK." in frame and next(dropped, False)
        first = await _read(journal, EVENTS, 1, 50)

        dropped = iter([True] * 50)
        second = await _read(journal, EVENTS, 1, 50)

        assert proxy.lost > 7
        assert [m.sequence for m in first] == [m.sequence for m in second] == list(range(1, 51))


async def test_a_consumer_that_was_removed_is_made_again(stand: NatsStand) -> None:
    """Somebody deletes the reader's consumer: it makes another one at its own position."""
    journal = await stand.fresh()
    await _fill(journal, 1, 3)
    reader = journal.read(EVENTS, 1)
    assert await _took(reader, 3) == [1, 2, 3]
    connection = await stand.connect()
    consumers: list[str] = []

    async def named() -> bool:
        answer = await connection.call(f"$JS.API.CONSUMER.NAMES.{EVENTS}", b"{}")
        consumers.extend(msgspec.json.decode(answer.data)["consumers"])
        return bool(consumers)

    await eventually(named, "the reader's consumer is named")
    for consumer in consumers:
        await connection.call(f"$JS.API.CONSUMER.DELETE.{EVENTS}.{consumer}", b"")
    await _fill(journal, 4, 5)

    assert await _took(reader, 2) == [4, 5]
    await _end(reader)


async def _end(reader: AsyncIterator[list[Message]]) -> None:
    await reader.aclose()  # type: ignore[attr-defined] # a generator


@pytest.mark.parametrize("again", [2, 3, 5])
async def test_sequences_used_again_are_not_read_over(
    stand: NatsStand, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server lost its tail and numbers new messages as the lost ones: a reader stops, however many came."""
    monkeypatch.setattr("binder.stream_reader.CONFIRM_SECONDS", 0.5)
    journal = await stand.fresh()
    await _fill(journal, 1, 3)
    reader = journal.read(EVENTS, 1)
    assert await _took(reader, 3) == [1, 2, 3]

    other = await stand.fresh()
    await _fill(other, 1, again, b"other")

    with pytest.raises(Gap, match="lost or written anew"):
        await anext(reader)


async def test_a_reader_keeps_a_bounded_number_of_messages(stand: NatsStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that is slow leaves the backlog on the server: at most one and a half batches come ahead of it."""
    # A busy machine is not a silent server, which would have the reader begin anew.
    monkeypatch.setattr(stream_reader, "_LISTEN_SECONDS", 60.0)
    journal = await stand.fresh()
    for first in range(1, 10_001, 1000):
        await _fill(journal, first, first + 999)
    reader = journal.read(EVENTS, 1, until=10_000)
    taken = [m.sequence for _ in range(6) for m in await anext(reader)]
    connection = await stand.connect()
    listed = await connection.call(f"$JS.API.CONSUMER.LIST.{EVENTS}", b"{}")
    # More than one where the stream's leader changed meanwhile: the server keeps the former for a while.
    consumers = msgspec.json.decode(listed.data)["consumers"]

    assert consumers
    assert max(one["delivered"]["stream_seq"] for one in consumers) <= len(taken) + 3 * RUN_MAX
    rest = [m.sequence async for run in reader for m in run]
    assert taken + rest == list(range(1, 10_001))


async def test_big_messages_come_within_the_bytes_asked_for(stand: NatsStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request ends when its bytes are up: twenty megabytes come in order although one request takes sixteen."""
    # A busy machine is not a silent server, which would have the reader begin anew.
    monkeypatch.setattr(stream_reader, "_LISTEN_SECONDS", 60.0)
    journal = await stand.fresh()
    for number in range(13):
        body, name = b"%d" % number * 1_500_000, f"m{number}"
        await patient(partial(journal.append, EVENTS, EVENTS_TICK, body, message_id=name))
    async with NatsProxy(stand.servers.port) as proxy:
        consumers: set[bytes] = set()

        def counting(subject: bytes, _frame: bytes) -> bool:
            if b"CONSUMER.CREATE" in subject:
                consumers.add(subject)  # Asked twice where the answer is slow: the subject names the consumer.
            return False

        proxy.holds = counting
        stored = await _read(await stand.journal(proxy.url), EVENTS, 1, 13)

    assert [m.body[:2] for m in stored] == [(b"%d" % number * 2)[:2] for number in range(13)]
    # A stream of three copies may change its leader under this load, which ends a consumer.
    assert len(consumers) == 1 or stand.servers.replicas > 1


async def test_a_reader_that_is_ended_at_the_moment_of_a_message_ends(
    stand: NatsStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that is lost, or a process asked to stop, ends its readers: also just when the server speaks."""
    await stand.fresh()
    connection = await stand.connect()
    listen, heard = connection.listen, 0

    async def listening(subject: str, handle: Callable[[Delivery], None]) -> Callable[[], Awaitable[None]]:
        def handling(delivery: Delivery) -> None:
            nonlocal heard
            heard += 1
            handle(delivery)
            # In the turn in which the reader's wait is over, before the reader itself goes on.
            asyncio.get_running_loop().call_soon(reading.cancel)

        return await listen(subject, handling)

    monkeypatch.setattr(connection, "listen", listening)
    reading = asyncio.create_task(_read(JetStreamJournal(connection), EVENTS, 1, 1))
    ended, _ = await asyncio.wait({reading}, timeout=SECONDS)

    # Two where they came in one turn.
    assert heard
    assert ended == {reading}
    assert reading.cancelled()
