"""What every journal promises, held against memory, one server and a cluster of three."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from binder.journal import (
    EXPECTED_LAST,
    EXPECTED_STREAM,
    MESSAGE_ID,
    RUN_MAX,
    BatchJournal,
    Gap,
    Message,
    WrongLastSequence,
)
from binder.memory_journal import MemoryJournal
from binder.stream_journal import JetStreamJournal
from schemas.streams import (
    DECISIONS,
    DECISIONS_FRAME,
    EVENTS,
    EVENTS_TICK,
    MESSAGE_BYTES_MAX,
    SNAPSHOT_CHUNK,
    SNAPSHOTS,
    STREAMS,
)


async def _read(journal: BatchJournal, stream: str, start: int, until: int) -> list[Message]:
    return [message async for run in journal.read(stream, start, until=until) for message in run]


async def _tick(journal: BatchJournal, name: str, body: bytes = b"{}") -> int:
    return await journal.append(EVENTS, EVENTS_TICK, body, message_id=name)


async def test_what_is_appended_is_read_back_whole(journal: BatchJournal) -> None:
    """Sequences count from one; subject, headers in their order and body come back as they were sent."""
    first = await journal.append(
        EVENTS, EVENTS_TICK, b"\x00\xff body", message_id="a/1", headers={"Trace": "x", "Ümlaut".encode().hex(): "ü"}
    )
    second = await journal.append(EVENTS, EVENTS_TICK, b"", message_id="a/2", expected_last=first)

    one, two = await _read(journal, EVENTS, 1, 2)

    assert (first, second, one.sequence, two.sequence) == (1, 2, 1, 2)
    assert list(one.headers.items()) == [
        ("Trace", "x"),
        ("Ümlaut".encode().hex(), "ü"),
        (EXPECTED_STREAM, EVENTS),
        (MESSAGE_ID, "a/1"),
    ]
    assert list(two.headers) == [EXPECTED_STREAM, MESSAGE_ID, EXPECTED_LAST]
    assert (one.subject, one.body, two.body) == (EVENTS_TICK, b"\x00\xff body", b"")
    assert 1_500_000_000_000_000_000 < one.stamp_ns <= two.stamp_ns


async def test_a_message_is_the_same_delivered_and_fetched(journal: BatchJournal) -> None:
    """Both ways to a stored message give the same message, so a hash over it is one hash (T1)."""
    await _tick(journal, "a", b"x" * 1000)
    await journal.append_batch(EVENTS, [(EVENTS_TICK, b"y"), (EVENTS_TICK, b"z")])
    await journal.append(EVENTS, EVENTS_TICK, b"", message_id="b", expected_last=3, headers={"Empty": "", "k": "a:b"})

    delivered = await _read(journal, EVENTS, 1, 4)

    fetched = [await journal.get(EVENTS, sequence) for sequence in range(1, 5)]
    assert delivered == fetched
    assert [list(m.headers) for m in delivered] == [list(m.headers) for m in fetched if m is not None]


async def test_an_absent_message_is_none(journal: BatchJournal) -> None:
    """A sequence beyond the tail, and a subject without messages, have no message."""
    await _tick(journal, "a")

    assert await journal.get(EVENTS, 2) is None
    assert await journal.last(EVENTS, "gpubinder.events.command") is None


async def test_a_stale_expectation_is_refused_and_stores_nothing(journal: BatchJournal) -> None:
    """A conditional append on another tail raises WrongLastSequence (10071, 10164) and leaves no trace."""
    await _tick(journal, "a")
    await _tick(journal, "b")

    for stale in (0, 1, 3):
        with pytest.raises(WrongLastSequence):
            await journal.append(EVENTS, EVENTS_TICK, b"", message_id=f"c{stale}", expected_last=stale)

    assert (await journal.info(EVENTS)).last == 2


async def test_of_writers_with_one_expectation_one_wins(journal: BatchJournal) -> None:
    """Eight appends at once on the same tail: one is stored, seven are refused (C39)."""
    results = await asyncio.gather(
        *(
            journal.append(DECISIONS, DECISIONS_FRAME, b"", message_id=f"w{writer}", expected_last=0)
            for writer in range(8)
        ),
        return_exceptions=True,
    )

    assert [result for result in results if isinstance(result, int)] == [1]
    assert sum(isinstance(result, WrongLastSequence) for result in results) == 7
    assert (await journal.info(DECISIONS)).last == 1


async def test_a_landed_append_tried_again_is_not_stored_twice(journal: BatchJournal) -> None:
    """T3: the same publish again is refused by one server and confirmed by a cluster; neither stores it."""
    first = await journal.append(DECISIONS, DECISIONS_FRAME, b"x", message_id="f", expected_last=0)

    try:
        again = await journal.append(DECISIONS, DECISIONS_FRAME, b"x", message_id="f", expected_last=0)
    except WrongLastSequence:
        again = first

    assert (first, again) == (1, 1)
    assert (await journal.info(DECISIONS)).last == 1


async def test_a_known_id_returns_the_first_sequence(journal: BatchJournal) -> None:
    """Inside the window an unconditional append with a known id stores nothing, whatever its body."""
    await _tick(journal, "a", b"one")
    await _tick(journal, "b")

    assert await _tick(journal, "a", b"other") == 1
    assert (await journal.info(EVENTS)).last == 2


async def test_many_appends_at_once_are_all_stored_once(journal: BatchJournal) -> None:
    """Edges publish side by side: three hundred appends get three hundred sequences."""
    sequences = await asyncio.gather(*(_tick(journal, f"m{number}") for number in range(300)))

    assert sorted(sequences) == list(range(1, 301))
    stored = await _read(journal, EVENTS, 1, 300)
    assert {m.headers[MESSAGE_ID]: m.sequence for m in stored} == {
        f"m{number}": sequence for number, sequence in enumerate(sequences)
    }


async def test_reads_are_runs_in_order_from_any_start(journal: BatchJournal) -> None:
    """A reader gets non-empty runs of at most 500, gapless from where it starts through where it ends."""
    await journal.append_batch(EVENTS, [(EVENTS_TICK, b"%d" % number) for number in range(1, 1001)])
    await journal.append_batch(EVENTS, [(EVENTS_TICK, b"%d" % number) for number in range(1001, 1701)])

    for start, until in ((1, 1700), (700, 1650), (1700, 1700)):
        runs = [run async for run in journal.read(EVENTS, start, until=until)]
        assert all(0 < len(run) <= RUN_MAX for run in runs)
        assert [int(m.body) for run in runs for m in run] == list(range(start, until + 1))
        assert [m.sequence for run in runs for m in run] == list(range(start, until + 1))


async def test_a_read_that_ends_before_it_starts_is_empty(journal: BatchJournal) -> None:
    """An `until` below the start yields nothing and does not wait."""
    assert await _read(journal, EVENTS, 5, 4) == []


async def test_a_reader_waits_for_what_comes(journal: BatchJournal) -> None:
    """A reader at the tail, or beyond it, gets what is appended later, and two readers get the same."""
    await _tick(journal, "a")
    at_tail, beyond = journal.read(EVENTS, 2), journal.read(EVENTS, 4)
    firsts = asyncio.gather(anext(at_tail), anext(beyond))

    for name in ("b", "c", "d"):
        await _tick(journal, name)

    one, two = await firsts
    assert one[0].headers[MESSAGE_ID] == "b"
    assert two[0].headers[MESSAGE_ID] == "d"
    await _end(at_tail, beyond)


async def _end(*readers: AsyncIterator[list[Message]]) -> None:
    for reader in readers:
        await reader.aclose()  # type: ignore[attr-defined] # the protocol says iterator, each is a generator


async def test_a_hole_is_never_read_over(journal: BatchJournal) -> None:
    """A reader that is due a removed message raises Gap and hands out nothing after it."""
    for piece in range(4):
        await journal.append_batch(SNAPSHOTS, [(SNAPSHOT_CHUNK, b"%d" % piece)])
    await journal.purge_below(SNAPSHOTS, 3)

    with pytest.raises(Gap) as met:
        await _read(journal, SNAPSHOTS, 2, 4)

    assert (met.value.wanted, met.value.got) == (2, 3)
    assert [m.sequence for m in await _read(journal, SNAPSHOTS, 3, 4)] == [3, 4]
    assert (await journal.info(SNAPSHOTS)).first == 3


async def test_a_batch_stands_together(journal: BatchJournal) -> None:
    """Batches put at the same time are stored one after the other, each in its own order."""
    letters = "abcdef"
    lasts = await asyncio.gather(
        *(
            journal.append_batch(SNAPSHOTS, [(SNAPSHOT_CHUNK, f"{letter}{part}".encode()) for part in range(20)])
            for letter in letters
        )
    )

    stored = [m.body.decode() for m in await _read(journal, SNAPSHOTS, 1, 120)]
    for letter, last in zip(letters, lasts, strict=True):
        assert stored[last - 20 : last] == [f"{letter}{part}" for part in range(20)]


@pytest.mark.parametrize(
    ("body", "headers"),
    [(b"x" * (MESSAGE_BYTES_MAX + 1), {}), (b"x" * MESSAGE_BYTES_MAX, {"Fill": "y" * 700_000})],
    ids=["body", "headers"],
)
async def test_a_message_that_is_too_big_is_refused_before_it_is_sent(
    journal: BatchJournal, body: bytes, headers: dict[str, str]
) -> None:
    """T5: body and headers are measured; the server would cut the connection for good over them."""
    with pytest.raises(ValueError, match=f"stream {EVENTS}: a message on {EVENTS_TICK} has a body of"):
        await journal.append(EVENTS, EVENTS_TICK, body, message_id="big", headers=headers)

    assert await _tick(journal, "small") == 1


async def test_the_biggest_message_goes_through_whole(journal: BatchJournal) -> None:
    """T5: a body of the allowed size is stored, delivered and fetched as it is."""
    body = bytes(range(256)) * (MESSAGE_BYTES_MAX // 256)
    await _tick(journal, "big", body)

    fetched = await journal.get(EVENTS, 1)
    assert fetched is not None
    assert fetched.body == body
    assert await _read(journal, EVENTS, 1, 1) == [fetched]


@pytest.mark.parametrize("bad", [{"a b": "x"}, {"": "x"}, {"ü": "x"}, {"a": "x\ny"}, {"a": " x"}, {"a:": "x"}], ids=str)
async def test_a_header_that_would_change_on_its_way_is_refused(journal: BatchJournal, bad: dict[str, str]) -> None:
    """What would be stored otherwise than sent would break the chain, so it is not sent (T1)."""
    with pytest.raises(ValueError, match="header"):
        await journal.append(EVENTS, EVENTS_TICK, b"", message_id="x", headers=bad)


async def test_info_tells_where_a_stream_stands(journal: BatchJournal) -> None:
    """An empty stream stands at 0 with first 1; then first, last and count follow the messages."""
    for spec in STREAMS:
        empty = await journal.info(spec.name)
        assert (empty.first, empty.last, empty.messages) == (1, 0, 0)
    await _tick(journal, "a")
    await _tick(journal, "b")

    info = await journal.info(EVENTS)

    assert (info.first, info.last, info.messages) == (1, 2, 2)
    assert info.bytes > 0
    assert info.created == (await journal.info(EVENTS)).created


async def test_a_stream_that_is_not_there_is_named(journal: BatchJournal) -> None:
    """Reading, fetching and asking about an unknown stream say which one it is (a mistyped URL, T4)."""
    with pytest.raises(LookupError, match="MISSING"):
        await journal.info("MISSING")
    with pytest.raises(LookupError, match="MISSING"):
        await journal.get("MISSING", 1)
    with pytest.raises(LookupError, match="MISSING"):
        await _read(journal, "MISSING", 1, 1)


async def test_headers_are_the_same_in_memory_and_on_a_server(journal: BatchJournal) -> None:
    """The journal in memory stores the headers a server stores, in the same order."""
    memory = MemoryJournal()
    both: list[BatchJournal] = [memory, journal]
    for held in both:
        await held.append(EVENTS, EVENTS_TICK, b"b", message_id="i", expected_last=0, headers={"Z": "1", "A": "2"})

    mine, theirs = [await held.get(EVENTS, 1) for held in both]

    assert mine is not None
    assert theirs is not None
    assert list(mine.headers.items()) == list(theirs.headers.items())
    assert isinstance(journal, MemoryJournal | JetStreamJournal)
