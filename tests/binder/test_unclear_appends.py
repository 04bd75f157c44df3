"""Lost answers, late publishes and killed servers: each frame stands in the log once, in order (T3).

On one server and on a cluster of three: a retry of what landed is refused by the one and confirmed
by the other.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping

import msgspec
import pytest
from typing_extensions import override

from binder.journal import Unclear, WrongLastSequence
from binder.logbook import (
    Fenced,
    append_genesis,
    append_void,
)
from binder.stream_api import ApiError, refusal
from binder.stream_journal import JetStreamJournal
from schemas.frames import Frame, Void
from schemas.streams import DECISIONS, DECISIONS_EPOCH, DECISIONS_FRAME, EVENTS, EVENTS_TICK, STREAMS
from tests.binder.conftest import NatsStand
from tests.binder.leading import GENESIS, begin, covered, draft, lead, log
from tests.binder.waiting import eventually, true
from tests.nats_proxy import NatsProxy


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


async def test_a_lost_acknowledgement_does_not_store_a_frame_twice(stand: NatsStand) -> None:
    """T3: the frame landed, its PubAck did not arrive: the retry finds it in the log and goes on."""
    await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.5)
        writer = await begin(journal)
        proxy.loses = lambda frame: proxy.lost == 0 and _is_ack(frame)

        first = await writer.append(draft(writer.tip))
        second = await writer.append(draft(writer.tip))

        assert proxy.lost == 1
        assert [first.message.sequence, second.message.sequence] == [3, 4]
        assert await covered(journal) == [1, 2]


async def test_a_delayed_publish_that_arrives_late_is_refused(stand: NatsStand) -> None:
    """T2: a frame that was held up, and was tried again meanwhile, changes nothing when it arrives."""
    await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.5)
        writer = await begin(journal)
        proxy.holds = Once(DECISIONS_FRAME.encode())

        await writer.append(draft(writer.tip))
        assert len(proxy.held) == 1
        await proxy.release()
        await writer.append(draft(writer.tip))

        assert await covered(journal) == [1, 2]


async def test_a_delayed_publish_of_a_former_leader_is_refused(stand: NatsStand) -> None:
    """C39: what a leader sent before it stopped arrives after another leads: it is not in the log."""
    journal = await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        former = await begin(await stand.journal(proxy.url, call_seconds=0.5))
        await former.append(draft(former.tip))
        proxy.holds = lambda subject, _frame: subject == DECISIONS_FRAME.encode()
        sending = asyncio.create_task(former.append(draft(former.tip)))
        await eventually(lambda: true(bool(proxy.held)), "a frame is held")
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

        writer = await lead(journal, holder="b")
        await writer.append(draft(writer.tip))
        await proxy.release()
        proxy.holds = lambda _subject, _frame: False
        await writer.append(draft(writer.tip))

        assert await covered(journal) == [1, 2, 3]
        epochs = [s.record.epoch for s in await log(journal) if isinstance(s.record, Frame)]
        assert epochs == [2, writer.tip.epoch, writer.tip.epoch]


async def test_a_cancelled_append_ends_its_writer(stand: NatsStand) -> None:
    """T3: an append that was given up may still land, so only a new epoch goes on; it reads which it was."""
    await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.5)
        writer = await begin(journal)
        proxy.loses = _is_ack
        sending = asyncio.create_task(writer.append(draft(writer.tip)))
        await eventually(lambda: true(proxy.lost > 0), "the frame landed unheard")
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        proxy.loses = lambda _frame: False

        with pytest.raises(RuntimeError, match="open a new epoch"):
            await writer.append(draft(writer.tip))
        after = await lead(journal, writer.tip)

        assert after.tip.covers_to == 1
        assert (await after.append(draft(after.tip))).tip.covers_to == 2


async def test_a_late_copy_of_the_own_epoch_record_fences_too(stand: NatsStand) -> None:
    """T2: a timed-out epoch record that arrives after the window is one more epoch: open a new one."""
    short = tuple(msgspec.structs.replace(spec, duplicate_window_s=1) for spec in STREAMS)
    await stand.fresh(short)
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.5)
        await append_genesis(journal, GENESIS)
        proxy.holds = Once(DECISIONS_EPOCH.encode())
        writer = await lead(journal)
        await writer.append(draft(writer.tip))
        late = list(proxy.held)

        async def landed() -> bool:
            proxy.held = list(late)
            await proxy.release()
            return (await journal.info(DECISIONS)).last > writer.tip.sequence

        await eventually(landed, "the window passes and the held record lands")
        with pytest.raises(Fenced):
            await writer.append(draft(writer.tip))
        again = await lead(journal, writer.tip)
        await again.append(draft(again.tip))

        assert await covered(journal) == [1, 2]


async def test_an_unclear_frame_with_a_skip_after_it_is_found(stand: NatsStand) -> None:
    """T3: the tail is not ours, our frame stands before it: it landed, and the next one goes after the tail."""
    other = await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        writer = await begin(await stand.journal(proxy.url, call_seconds=0.5))
        proxy.loses = _is_ack
        sending = asyncio.create_task(writer.append(draft(writer.tip)))
        await eventually(lambda: true(proxy.lost > 0), "the frame landed unheard")
        await append_void(other, Void(log_id="log", generation=1, sequence=9, who="operator", why="w"))
        proxy.loses = lambda _frame: False

        assert (await sending).message.sequence == 3
        assert (await writer.append(draft(writer.tip))).message.sequence == 5
        assert await covered(other) == [1, 2]


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
    writer = await begin(journal)

    said = await writer.append(draft(writer.tip))
    await writer.append(draft(writer.tip))

    assert journal.unheard == said.message.sequence == 3
    assert await covered(journal) == [1, 2]


async def test_a_thousand_frames_through_a_lossy_line(stand: NatsStand) -> None:
    """C39: one PubAck in ten is lost and a second writer leads once: every input decided once, in order."""
    other = await stand.fresh()
    async with NatsProxy(stand.servers.port) as proxy:
        journal = await stand.journal(proxy.url, call_seconds=0.1)
        writer = await begin(journal)
        acks = Counter[str]()

        def one_in_ten(frame: bytes) -> bool:
            acks["met"] += _is_ack(frame)
            return _is_ack(frame) and acks["met"] % 10 == 0

        proxy.loses = one_in_ten
        fenced = 0
        while writer.tip.covers_to < 1000:
            if writer.tip.covers_to == 500 and not fenced:
                second = await lead(other, writer.tip, "b")
                await second.append(draft(second.tip))
            try:
                await writer.append(draft(writer.tip))
            except Fenced:
                fenced += 1
                writer = await lead(journal, writer.tip)

        assert proxy.lost >= 100
        assert fenced == 1
        assert await covered(other) == list(range(1, 1001))


async def test_both_codes_of_a_conflict_are_one_answer(stand: NatsStand) -> None:
    """C39: 10071 and 10164 both mean another tail; the servers answer with either."""
    journal = await stand.fresh(call_seconds=120.0)
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
