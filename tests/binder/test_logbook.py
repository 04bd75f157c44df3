"""One leader's frames, each exactly once, whatever network, servers and other leaders do (T2, T3).

Every test runs on one server and on a cluster of three: a retry of what landed is refused by the one
and confirmed by the other.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from secrets import token_hex

import msgspec
import pytest
from typing_extensions import override

from binder.journal import Journal, Unclear, WrongLastSequence
from binder.logbook import (
    DataLoss,
    Draft,
    Fenced,
    LogReader,
    LogWriter,
    Said,
    append_genesis,
    append_void,
    open_epoch,
)
from binder.memory_journal import MemoryJournal
from binder.stream_api import ApiError, refusal
from binder.stream_journal import JetStreamJournal
from binder.tip import START, Tip
from schemas.decisions import Rejected
from schemas.frames import Entry, Epoch, Frame, Genesis, Void
from schemas.streams import DECISIONS, DECISIONS_EPOCH, DECISIONS_FRAME, EVENTS, EVENTS_TICK, STREAMS
from tests.binder.conftest import NatsStand, eventually, patient
from tests.nats_proxy import NatsProxy

GENESIS = Genesis(log_id="log", generation=1, cluster="c", program="0")
QUICK = 0.5
"""A loss is confirmed after this many seconds: nothing here answers from beyond a partition."""


def _draft(tip: Tip) -> Draft:
    cause = tip.covers_to + 1
    return Draft(1, "0", "settings", cause, cause, "digest", (Entry(cause, (Rejected("spec: missing"),)),))


async def _lead(journal: Journal, tip: Tip = START, holder: str = "a") -> LogWriter:
    """Open an epoch and return its writer."""
    reader = LogReader(journal, tip, confirm_seconds=QUICK)
    nonce = token_hex(4)
    epoch = await open_epoch(journal, Epoch("log", 1, holder, nonce, program="0", rules=1, events_last=0, message_versions=(1,)))
    async for _ in reader.follow(until=epoch):
        pass
    return LogWriter(journal, reader.tip, epoch, confirm_seconds=QUICK)


async def _begin(journal: Journal) -> LogWriter:
    await append_genesis(journal, GENESIS)
    return await _lead(journal)


async def _log(journal: Journal) -> list[Said]:
    """Read the whole log, checked."""
    info = await patient(lambda: journal.info(DECISIONS))
    return [said async for said in LogReader(journal).follow(until=info.last)]


async def _covered(journal: Journal) -> list[int]:
    """Return the inputs that the log's frames decided on; the reader holds that none is missing or repeated."""
    return [said.record.covers_to for said in await _log(journal) if isinstance(said.record, Frame)]


def _is_ack(frame: bytes) -> bool:
    return b'"stream":"GPUBINDER_DECISIONS"' in frame and b'"seq":' in frame


class Once:
    """True for the first thing it is asked about that matches."""

    def __init__(self, part: bytes) -> None:
        self._part = part
        self.met = False

    def __call__(self, subject: bytes, _frame: bytes = b"") -> bool:
        """Say whether this is the one."""
        hit = not self.met and self._part in subject
        self.met = self.met or hit
        return hit


async def test_frames_are_chained_on_what_was_stored(stand: NatsStand) -> None:
    """T1: each frame carries the hash of the message before it, and a reader comes to the writer's tip."""
    journal = await stand.fresh()
    writer = await _begin(journal)

    said = [await writer.append(_draft(writer.tip)) for _ in range(20)]

    log = await _log(await stand.journal())
    assert log[2:] == said
    assert log[-1].tip == writer.tip
    previous = [one.record.previous for one in said if isinstance(one.record, Frame)]
    assert previous == [one.tip.hash.hex() for one in log[1:-1]]


async def test_a_reader_goes_on_from_a_known_tip(stand: NatsStand) -> None:
    """A reader given a tip proves it, then yields only what follows, also what comes later."""
    journal = await stand.fresh()
    writer = await _begin(journal)
    known = (await writer.append(_draft(writer.tip))).tip
    reader = LogReader(journal, known)
    assert [said async for said in reader.follow(until=known.sequence)] == []

    following = reader.follow()
    later = asyncio.ensure_future(anext(following))
    said = await writer.append(_draft(writer.tip))

    assert await later == said
    await following.aclose()  # type: ignore[attr-defined] # a generator


async def test_a_lost_acknowledgement_does_not_store_a_frame_twice(stand: NatsStand) -> None:
    """T3: the frame landed, its PubAck did not arrive: the retry finds it in the log and goes on."""
    await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.5)
        writer = await _begin(journal)
        proxy.loses = lambda frame: proxy.lost == 0 and _is_ack(frame)

        first = await writer.append(_draft(writer.tip))
        second = await writer.append(_draft(writer.tip))

        assert proxy.lost == 1
        assert [first.message.sequence, second.message.sequence] == [3, 4]
        assert await _covered(journal) == [1, 2]


async def test_a_delayed_publish_that_arrives_late_is_refused(stand: NatsStand) -> None:
    """T2: a frame that was held up, and was tried again meanwhile, changes nothing when it arrives."""
    await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.5)
        writer = await _begin(journal)
        proxy.holds = Once(DECISIONS_FRAME.encode())

        await writer.append(_draft(writer.tip))
        assert len(proxy.held) == 1
        await proxy.release()
        await writer.append(_draft(writer.tip))

        assert await _covered(journal) == [1, 2]


async def test_a_delayed_publish_of_a_former_leader_is_refused(stand: NatsStand) -> None:
    """C39: what a leader sent before it stopped arrives after another leads: it is not in the log."""
    journal = await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        former = await _begin(await stand.journal(proxy.url, call_seconds=0.5))
        await former.append(_draft(former.tip))
        proxy.holds = lambda subject, _frame: subject == DECISIONS_FRAME.encode()
        sending = asyncio.create_task(former.append(_draft(former.tip)))
        await eventually(lambda: _true(bool(proxy.held)), "a frame is held")
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

        writer = await _lead(journal, holder="b")
        await writer.append(_draft(writer.tip))
        await proxy.release()
        proxy.holds = lambda _subject, _frame: False
        await writer.append(_draft(writer.tip))

        assert await _covered(journal) == [1, 2, 3]
        epochs = [s.record.epoch for s in await _log(journal) if isinstance(s.record, Frame)]
        assert epochs == [2, writer.tip.epoch, writer.tip.epoch]


async def _true(value: bool) -> bool:
    return value


async def test_a_cancelled_append_ends_its_writer(stand: NatsStand) -> None:
    """T3: an append that was given up may still land, so only a new epoch goes on; it reads which it was."""
    await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.5)
        writer = await _begin(journal)
        proxy.loses = _is_ack
        sending = asyncio.create_task(writer.append(_draft(writer.tip)))
        await eventually(lambda: _true(proxy.lost > 0), "the frame landed unheard")
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        proxy.loses = lambda _frame: False

        with pytest.raises(RuntimeError, match="open a new epoch"):
            await writer.append(_draft(writer.tip))
        after = await _lead(journal, writer.tip)

        assert after.tip.covers_to == 1
        assert (await after.append(_draft(after.tip))).tip.covers_to == 2


async def test_a_foreign_epoch_fences(stand: NatsStand) -> None:
    """T2: a leader that another epoch overtook appends nothing; it may lead again after reading up to its own."""
    one, two = await stand.fresh(), await stand.journal()
    first = await _begin(one)
    await first.append(_draft(first.tip))
    second = await _lead(two, holder="b")

    with pytest.raises(Fenced) as met:
        await first.append(_draft(first.tip))
    await second.append(_draft(second.tip))
    third = await _lead(one, first.tip)
    await third.append(_draft(third.tip))

    assert met.value.message.sequence == second.tip.epoch
    assert isinstance(met.value.record, Epoch)
    assert met.value.record.holder == "b"
    with pytest.raises(Fenced):
        await second.append(_draft(second.tip))
    assert await _covered(one) == [1, 2, 3]


async def test_a_late_copy_of_the_own_epoch_record_fences_too(stand: NatsStand) -> None:
    """T2: a timed-out epoch record that arrives after the window is one more epoch: open a new one."""
    short = tuple(msgspec.structs.replace(spec, duplicate_window_s=1) for spec in STREAMS)
    await stand.fresh(short)
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.5)
        await append_genesis(journal, GENESIS)
        proxy.holds = Once(DECISIONS_EPOCH.encode())
        writer = await _lead(journal)
        await writer.append(_draft(writer.tip))
        late = list(proxy.held)

        async def landed() -> bool:
            proxy.held = list(late)
            await proxy.release()
            return (await journal.info(DECISIONS)).last > writer.tip.sequence

        await eventually(landed, "the window passes and the held record lands")
        with pytest.raises(Fenced):
            await writer.append(_draft(writer.tip))
        again = await _lead(journal, writer.tip)
        await again.append(_draft(again.tip))

        assert await _covered(journal) == [1, 2]


async def test_newcomers_are_not_starved(stand: NatsStand) -> None:
    """T2: three that all believe they lead fence each other, and the log stays one gapless history."""
    first = await stand.fresh()
    await append_genesis(first, GENESIS)
    led: Counter[str] = Counter()

    async def lead(name: str, journal: Journal) -> None:
        tip = START
        while tip.covers_to < 60:
            writer = await _lead(journal, tip, name)
            try:
                while writer.tip.covers_to < 60:
                    await writer.append(_draft(writer.tip))
                    led[name] += 1
            except Fenced:
                pass
            tip = writer.tip

    await asyncio.gather(lead("a", first), lead("b", await stand.journal()), lead("c", await stand.journal()))

    assert await _covered(first) == list(range(1, led.total() + 1))
    assert led.total() >= 60


async def test_a_skip_in_the_way_is_chained_over(stand: NatsStand) -> None:
    """T6: an operator's void record fences nobody: the frame is built anew on the hash after it."""
    journal = await stand.fresh()
    writer = await _begin(journal)
    for number in range(3):
        void = Void(log_id="log", generation=1, sequence=number + 1, who="operator", why="unreadable")
        assert await append_void(await stand.journal(), void) == writer.tip.sequence + 1
        await writer.append(_draft(writer.tip))

    kinds = [type(said.record).__name__ for said in await _log(journal)]
    assert kinds == ["Genesis", "Epoch", "Void", "Frame", "Void", "Frame", "Void", "Frame"]
    assert await _covered(journal) == [1, 2, 3]


async def test_an_unclear_frame_with_a_skip_after_it_is_found(stand: NatsStand) -> None:
    """T3: the tail is not ours, our frame stands before it: it landed, and the next one goes after the tail."""
    other = await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        writer = await _begin(await stand.journal(proxy.url, call_seconds=0.5))
        proxy.loses = _is_ack
        sending = asyncio.create_task(writer.append(_draft(writer.tip)))
        await eventually(lambda: _true(proxy.lost > 0), "the frame landed unheard")
        await append_void(other, Void(log_id="log", generation=1, sequence=9, who="operator", why="w"))
        proxy.loses = lambda _frame: False

        assert (await sending).message.sequence == 3
        assert (await writer.append(_draft(writer.tip))).message.sequence == 5
        assert await _covered(other) == [1, 2]


async def test_a_repeat_inside_the_window_is_not_swallowed(stand: NatsStand) -> None:
    """C38: the same decision twice within a minute is two messages, each with an id of its own."""
    journal = await stand.fresh()
    writer = await _begin(journal)
    same = Draft(1, "0", "settings", 1, 0, "digest")

    first, second = await writer.append(same), await writer.append(same)

    assert [first.message.sequence, second.message.sequence] == [3, 4]
    assert len({said.message.headers["Nats-Msg-Id"] for said in (first, second)}) == 2
    assert all(said.message.headers["Nats-Msg-Id"].startswith("log/1/2/") for said in (first, second))


class _Forgotten(JetStreamJournal):
    """A journal whose first frame stays unanswered until the server has forgotten its id."""

    unheard = 0

    @override
    async def append(
        self,
        stream: str,
        subject: str,
        body: bytes,
        *,
        message_id: str,
        expected_last: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        sequence = await super().append(
            stream, subject, body, message_id=message_id, expected_last=expected_last, headers=headers
        )
        if subject != DECISIONS_FRAME or self.unheard:
            return sequence
        self.unheard = sequence
        probe = await super().append(EVENTS, EVENTS_TICK, b"", message_id="probe")

        async def forgotten() -> bool:
            return await super(_Forgotten, self).append(EVENTS, EVENTS_TICK, b"", message_id="probe") > probe

        await eventually(forgotten, "the window passes")
        raise Unclear("no answer")


async def test_a_retry_after_the_window_is_found_to_have_landed(stand: NatsStand) -> None:
    """C38: stored, unanswered, tried again when the server no longer knows the id: still one frame."""
    await stand.fresh(tuple(msgspec.structs.replace(spec, duplicate_window_s=1) for spec in STREAMS))
    journal = _Forgotten(await stand.connect())
    writer = await _begin(journal)

    said = await writer.append(_draft(writer.tip))
    await writer.append(_draft(writer.tip))

    assert journal.unheard == said.message.sequence == 3
    assert await _covered(journal) == [1, 2]


async def test_a_thousand_frames_through_a_lossy_line(stand: NatsStand) -> None:
    """C39: one PubAck in ten is lost and a second writer leads once: every input decided once, in order."""
    other = await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.1)
        writer = await _begin(journal)
        acks = Counter[str]()

        def one_in_ten(frame: bytes) -> bool:
            acks["met"] += _is_ack(frame)
            return _is_ack(frame) and acks["met"] % 10 == 0

        proxy.loses = one_in_ten
        fenced = 0
        while writer.tip.covers_to < 1000:
            if writer.tip.covers_to == 500 and not fenced:
                second = await _lead(other, writer.tip, "b")
                await second.append(_draft(second.tip))
            try:
                await writer.append(_draft(writer.tip))
            except Fenced:
                fenced += 1
                writer = await _lead(journal, writer.tip)

        assert proxy.lost >= 100
        assert fenced == 1
        assert await _covered(other) == list(range(1, 1001))


async def test_both_codes_of_a_conflict_are_one_answer(stand: NatsStand) -> None:
    """C39: 10071 and 10164 both mean another tail; the servers answer with either."""
    journal = await stand.fresh()
    expected = {"Nats-Expected-Last-Subject-Sequence": "0"}
    results = await asyncio.gather(
        *(
            journal.append(DECISIONS, DECISIONS_FRAME, b"", message_id=f"w{number}", headers=expected)
            for number in range(8)
        ),
        return_exceptions=True,
    )

    assert [result for result in results if isinstance(result, int)] == [1]
    assert sum(isinstance(result, WrongLastSequence) for result in results) == 7
    told = [refusal(ApiError(400, code, "wrong last sequence: 7"), DECISIONS) for code in (10071, 10164)]
    assert [(type(one), getattr(one, "last", None)) for one in told] == [(WrongLastSequence, 7)] * 2


async def _grown(sequence: Callable[[], int], frames: int) -> None:
    before = sequence()
    await eventually(lambda: _true(sequence() > before + frames), "appends go on")


async def test_servers_killed_in_the_middle_cost_no_frame(stand: NatsStand) -> None:
    """T3: kill -9 of the server that leads the log, three times, under appends: each frame once, in order."""
    journal = await stand.fresh()
    writer = await _begin(journal)
    done = asyncio.Event()

    async def write() -> None:
        nonlocal writer
        while not done.is_set():
            await writer.append(_draft(writer.tip))

    writing = asyncio.create_task(write())
    for _ in range(3):
        await _grown(lambda: writer.tip.sequence, 20)
        await stand.servers.crash(DECISIONS)
    await _grown(lambda: writer.tip.sequence, 20)
    done.set()
    await writing

    assert await _covered(journal) == list(range(1, writer.tip.covers_to + 1))


async def _shortened(stand: NatsStand, journal: JetStreamJournal, kept: int, other: bytes = b"") -> None:
    """Play a server that lost the log's tail and, with `other`, stored something else in its place."""
    log = [said.message for said in await _log(journal)]
    fresh = await stand.fresh()
    for message in log[:kept]:
        await fresh.append(DECISIONS, message.subject, message.body, message_id="")
    for _ in log[kept:] if other else ():
        await fresh.append(DECISIONS, DECISIONS_FRAME, other, message_id="")


async def test_a_log_shorter_than_known_stops_its_writer(stand: NatsStand) -> None:
    """T3: the refusal comes from a tail before ours: acknowledged messages are lost, and nothing is appended."""
    journal = await stand.fresh()
    writer = await _begin(journal)
    for _ in range(3):
        await writer.append(_draft(writer.tip))
    await _shortened(stand, journal, kept=3)

    with pytest.raises(DataLoss, match="DECISIONS message 5 is gone"):
        await writer.append(_draft(writer.tip))

    assert (await journal.info(DECISIONS)).last == 3


@pytest.mark.parametrize(("other", "what"), [(b"", "is gone"), (b"{}", "is not the one that was there")])
async def test_a_reader_finds_that_its_tip_is_not_there(stand: NatsStand, other: bytes, what: str) -> None:
    """T4: a log that is shorter than a known tip, or as long and another one, is not read on."""
    journal = await stand.fresh()
    writer = await _begin(journal)
    await writer.append(_draft(writer.tip))
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
    writer = await _begin(journal)
    huge = Entry(1, (Rejected("x" * 4_000_000),))

    with pytest.raises(ValueError, match="body"):
        await writer.append(msgspec.structs.replace(_draft(writer.tip), entries=(huge,)))

    assert (await writer.append(_draft(writer.tip))).message.sequence == 3


async def test_a_writer_needs_the_newest_epoch() -> None:
    """T2: who read past another epoch's record has no business to write under its own."""
    journal = MemoryJournal()
    writer = await _begin(journal)

    with pytest.raises(ValueError, match="newest epoch is 2, not 1"):
        LogWriter(journal, writer.tip, 1)
