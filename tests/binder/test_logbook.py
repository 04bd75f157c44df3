"""The log of one leader at a time: chained, fenced, begun once, and never shorter than it was (T1 to T4)."""

import asyncio
from collections import Counter

import msgspec
import pytest

from binder.journal import Journal
from binder.logbook import (
    DataLoss,
    Draft,
    Fenced,
    LogReader,
    LogWriter,
    append_genesis,
    append_void,
)
from binder.memory_journal import MemoryJournal
from binder.stream_journal import JetStreamJournal
from binder.tip import START
from schemas.decisions import Rejected
from schemas.frames import Entry, Epoch, Frame, Void
from schemas.streams import DECISIONS, DECISIONS_FRAME
from tests.binder.conftest import NatsStand
from tests.binder.leading import GENESIS, QUICK, begin, covered, draft, lead, log


async def test_frames_are_chained_on_what_was_stored(stand: NatsStand) -> None:
    """T1: each frame carries the hash of the message before it, and a reader comes to the writer's tip."""
    journal = await stand.fresh()
    writer = await begin(journal)

    said = [await writer.append(draft(writer.tip)) for _ in range(20)]

    whole = await log(await stand.journal())
    assert whole[2:] == said
    assert whole[-1].tip == writer.tip
    previous = [one.record.previous for one in said if isinstance(one.record, Frame)]
    assert previous == [one.tip.hash.hex() for one in whole[1:-1]]


async def test_a_reader_goes_on_from_a_known_tip(stand: NatsStand) -> None:
    """A reader given a tip proves it, then yields only what follows, also what comes later."""
    journal = await stand.fresh()
    writer = await begin(journal)
    known = (await writer.append(draft(writer.tip))).tip
    reader = LogReader(journal, known)
    assert [said async for said in reader.follow(until=known.sequence)] == []

    following = reader.follow()
    later = asyncio.ensure_future(anext(following))
    said = await writer.append(draft(writer.tip))

    assert await later == said
    await following.aclose()  # type: ignore[attr-defined] # a generator


async def test_a_foreign_epoch_fences(stand: NatsStand) -> None:
    """T2: a leader that another epoch overtook appends nothing; it may lead again after reading up to its own."""
    one, two = await stand.fresh(), await stand.journal()
    first = await begin(one)
    await first.append(draft(first.tip))
    second = await lead(two, holder="b")

    with pytest.raises(Fenced) as met:
        await first.append(draft(first.tip))
    await second.append(draft(second.tip))
    third = await lead(one, first.tip)
    await third.append(draft(third.tip))

    assert met.value.message.sequence == second.tip.epoch
    assert isinstance(met.value.record, Epoch)
    assert met.value.record.holder == "b"
    with pytest.raises(Fenced):
        await second.append(draft(second.tip))
    assert await covered(one) == [1, 2, 3]


async def test_newcomers_are_not_starved(stand: NatsStand) -> None:
    """T2: three that all believe they lead fence each other, and the log stays one gapless history."""
    first = await stand.fresh()
    await append_genesis(first, GENESIS)
    led: Counter[str] = Counter()

    async def contend(name: str, journal: Journal) -> None:
        tip = START
        while tip.covers_to < 60:
            writer = await lead(journal, tip, name)
            try:
                while writer.tip.covers_to < 60:
                    await writer.append(draft(writer.tip))
                    led[name] += 1
            except Fenced:
                pass
            tip = writer.tip

    await asyncio.gather(contend("a", first), contend("b", await stand.journal()), contend("c", await stand.journal()))

    assert await covered(first) == list(range(1, led.total() + 1))
    assert led.total() >= 60


async def test_a_skip_in_the_way_is_chained_over(stand: NatsStand) -> None:
    """T6: an operator's void record fences nobody: the frame is built anew on the hash after it."""
    journal = await stand.fresh()
    writer = await begin(journal)
    for number in range(3):
        void = Void(log_id="log", generation=1, sequence=number + 1, who="operator", why="unreadable")
        assert await append_void(await stand.journal(), void) == writer.tip.sequence + 1
        await writer.append(draft(writer.tip))

    kinds = [type(said.record).__name__ for said in await log(journal)]
    assert kinds == ["Genesis", "Epoch", "Void", "Frame", "Void", "Frame", "Void", "Frame"]
    assert await covered(journal) == [1, 2, 3]


async def test_a_repeat_inside_the_window_is_not_swallowed(stand: NatsStand) -> None:
    """C38: the same decision twice within a minute is two messages, each with an id of its own."""
    journal = await stand.fresh()
    writer = await begin(journal)
    same = Draft(1, "0", "settings", 1, 0, "digest")

    first, second = await writer.append(same), await writer.append(same)

    assert [first.message.sequence, second.message.sequence] == [3, 4]
    assert len({said.message.headers["Nats-Msg-Id"] for said in (first, second)}) == 2
    assert all(said.message.headers["Nats-Msg-Id"].startswith("log/1/2/") for said in (first, second))


async def _shortened(stand: NatsStand, journal: JetStreamJournal, kept: int, other: bytes = b"") -> None:
    """Play a server that lost the log's tail and, with `other`, stored something else in its place."""
    stored = [said.message for said in await log(journal)]
    fresh = await stand.fresh()
    for message in stored[:kept]:
        await fresh.append(DECISIONS, message.subject, message.body, message_id="")
    for _ in stored[kept:] if other else ():
        await fresh.append(DECISIONS, DECISIONS_FRAME, other, message_id="")


async def test_a_log_shorter_than_known_stops_its_writer(stand: NatsStand) -> None:
    """T3: the refusal comes from a tail before ours: acknowledged messages are lost, and nothing is appended."""
    journal = await stand.fresh()
    writer = await begin(journal)
    for _ in range(3):
        await writer.append(draft(writer.tip))
    await _shortened(stand, journal, kept=3)

    with pytest.raises(DataLoss, match="DECISIONS message 5 is gone"):
        await writer.append(draft(writer.tip))

    assert (await journal.info(DECISIONS)).last == 3


@pytest.mark.parametrize(("other", "what"), [(b"", "is gone"), (b"{}", "is not the one that was there")])
async def test_a_reader_finds_that_its_tip_is_not_there(stand: NatsStand, other: bytes, what: str) -> None:
    """T4: a log that is shorter than a known tip, or as long and another one, is not read on."""
    journal = await stand.fresh()
    writer = await begin(journal)
    await writer.append(draft(writer.tip))
    await _shortened(stand, journal, kept=2, other=other)

    with pytest.raises(DataLoss, match=what):
        await anext(LogReader(journal, writer.tip, confirm_seconds=QUICK).follow())


async def test_a_log_begins_once(stand: NatsStand) -> None:
    """T4: the same genesis again is the first one; another log's genesis is refused by it."""
    journal = await stand.fresh()

    assert await append_genesis(journal, GENESIS) == 1
    assert await append_genesis(journal, GENESIS) == 1
    with pytest.raises(Fenced, match="genesis"):
        await append_genesis(journal, msgspec.structs.replace(GENESIS, log_id="other"))


async def test_a_frame_that_is_too_big_leaves_the_writer_whole() -> None:
    """T5: it is refused before anything is sent, and a smaller one goes on from the same tip."""
    journal = MemoryJournal()
    writer = await begin(journal)
    huge = Entry(1, (Rejected("x" * 4_000_000),))

    with pytest.raises(ValueError, match="body"):
        await writer.append(msgspec.structs.replace(draft(writer.tip), entries=(huge,)))

    assert (await writer.append(draft(writer.tip))).message.sequence == 3


async def test_a_writer_needs_the_newest_epoch() -> None:
    """T2: who read past another epoch's record has no business to write under its own."""
    journal = MemoryJournal()
    writer = await begin(journal)

    with pytest.raises(ValueError, match="newest epoch is 2, not 1"):
        LogWriter(journal, writer.tip, 1)
