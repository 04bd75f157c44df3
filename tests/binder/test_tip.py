"""The chain: whatever is changed in a log is found by reading it (T1, T2, T4)."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.journal import Message
from binder.logbook import DataLoss, Draft, LogReader, LogWriter, append_genesis, append_void, open_epoch
from binder.memory_journal import MemoryJournal
from binder.tip import START, BrokenLog, Tip, advance
from schemas.decisions import Rejected
from schemas.frames import Entry, Epoch, Frame, Genesis, Record, Void, encode_record
from schemas.streams import (
    DECISIONS,
    DECISIONS_EPOCH,
    DECISIONS_FRAME,
    DECISIONS_GENESIS,
    DECISIONS_VOID,
)

GENESIS = Genesis(log_id="log", generation=1, cluster="c", program="0")
EPOCH = Epoch(
    log_id="log", generation=1, holder="h", nonce="n", program="0", rules=1, events_last=0, message_versions=(1,)
)


def draft(tip: Tip, inputs: int = 2) -> Draft:
    """Return a frame that decides on the next `inputs` inputs, the last one with an entry."""
    last = tip.covers_to + inputs
    entries = (Entry(last, (Rejected("spec: missing"),)),) if inputs else ()
    return Draft(1, "0", "settings", tip.covers_to + 1, last, "digest", entries)


def _written(frames: int) -> tuple[list[Message], Tip]:
    """Return a whole log, written by the writer: genesis, two epochs, frames, a skip between; and its tip."""

    async def write() -> tuple[list[Message], Tip]:
        stamps = iter(range(10**18, 2 * 10**18, 10**9))
        journal = MemoryJournal(clock=lambda: next(stamps))
        reader = LogReader(journal)
        await append_genesis(journal, GENESIS)
        for turn in range(2):
            epoch = await open_epoch(journal, msgspec.structs.replace(EPOCH, nonce=f"n{turn}"))
            async for _ in reader.follow(until=epoch):
                pass
            writer = LogWriter(journal, reader.tip, epoch)
            for number in range(frames):
                if number == 1:
                    await append_void(journal, Void(log_id="log", generation=1, sequence=turn + 1, who="o", why="w"))
                await writer.append(draft(writer.tip))
        return journal.streams[DECISIONS].messages, writer.tip

    return asyncio.run(write())


WHOLE, END = _written(4)


def _replay(messages: list[Message]) -> Tip:
    """Read a log as it is stored, through the reader."""

    async def read() -> Tip:
        journal = MemoryJournal()
        held = journal.streams[DECISIONS]
        held.messages, held.last = messages, len(messages)
        reader = LogReader(journal)
        async for _ in reader.follow(until=len(messages)):
            pass
        return reader.tip

    return asyncio.run(read())


def test_a_whole_log_reads_to_the_tip_of_its_writer() -> None:
    """Reader and writer agree on hash, epoch and what was covered: the chain is one (T1)."""
    assert _replay(list(WHOLE)) == END
    assert END.covers_to == 16


def _flip(text: str, at: int) -> str:
    return text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]


@st.composite
def _flips(draw: st.DrawFn) -> tuple[int, Message]:
    """Draw a message and one changed bit of it: body, subject, header name or value, or stamp."""
    at = draw(st.integers(0, len(WHOLE) - 1))
    message = WHOLE[at]
    match draw(st.sampled_from(["body", "subject", "name", "value", "stamp"])):
        case "body":
            bit = draw(st.integers(0, len(message.body) * 8 - 1))
            body = bytearray(message.body)
            body[bit // 8] ^= 1 << bit % 8
            return at, msgspec.structs.replace(message, body=bytes(body))
        case "subject":
            place = draw(st.integers(0, len(message.subject) - 1))
            return at, msgspec.structs.replace(message, subject=_flip(message.subject, place))
        case "stamp":
            bit = draw(st.integers(0, 62))
            return at, msgspec.structs.replace(message, stamp_ns=message.stamp_ns ^ (1 << bit))
        case part:
            name = draw(st.sampled_from(sorted(message.headers)))
            text = name if part == "name" else message.headers[name]
            changed = _flip(text, draw(st.integers(0, len(text) - 1)))
            headers = {
                (changed if key == name and part == "name" else key): (
                    changed if key == name and part == "value" else value
                )
                for key, value in message.headers.items()
            }
            return at, msgspec.structs.replace(message, headers=headers)


def _found(messages: list[Message]) -> bool:
    """Whether reading finds the change: at once, or by the anchored hash where the last message was changed."""
    try:
        return _replay(messages) != END
    except (BrokenLog, DataLoss):
        return True


@given(_flips())
def test_a_flipped_bit_is_found(flip: tuple[int, Message]) -> None:
    """T1: one bit changed in body, subject, headers or stamp of any message is found."""
    at, message = flip

    assert _found([*WHOLE[:at], message, *WHOLE[at + 1 :]])


@given(st.integers(0, len(WHOLE) - 1), st.booleans())
def test_a_dropped_message_is_found(at: int, renumbered: bool) -> None:
    """T1: a message taken out is found, also when those after it are renumbered."""
    rest = [*WHOLE[:at], *WHOLE[at + 1 :]]

    assert _found(_renumbered(rest) if renumbered else rest)


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, len(WHOLE) - 1), st.booleans())
def test_swapped_messages_are_found(one: int, other: int, renumbered: bool) -> None:
    """T1: two messages that changed places are found, with their sequences or without."""
    swapped = list(WHOLE)
    swapped[one], swapped[other] = swapped[other], swapped[one]

    assert one == other or _found(_renumbered(swapped) if renumbered else swapped)


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE) - 1))
def test_an_inserted_message_is_found(at: int, copied: int) -> None:
    """T1: a copy of any message put in anywhere is found."""
    assert _found(_renumbered([*WHOLE[:at], WHOLE[copied], *WHOLE[at:]]))


def _renumbered(messages: list[Message]) -> list[Message]:
    return [msgspec.structs.replace(message, sequence=number) for number, message in enumerate(messages, 1)]


def _stored(tip: Tip, subject: str, record: Record | bytes, sequence: int = 0) -> Message:
    body = record if isinstance(record, bytes) else encode_record(record)
    return Message(sequence or tip.sequence + 1, 1, subject, {}, body)


def _begun() -> Tip:
    tip, _ = advance(START, _stored(START, DECISIONS_GENESIS, GENESIS))
    return advance(tip, _stored(tip, DECISIONS_EPOCH, EPOCH))[0]


def _frame(tip: Tip, **changes: object) -> Frame:
    whole = Frame("log", 1, tip.epoch, 1, "0", "s", 1, 3, "d", tip.hash.hex(), (Entry(2, ()), Entry(3, ())))
    return msgspec.structs.replace(whole, **changes)


def test_a_frame_of_the_newest_epoch_moves_the_tip() -> None:
    """The frame that each case below spoils is a good one."""
    tip = _begun()

    after, record = advance(tip, _stored(tip, DECISIONS_FRAME, _frame(tip)))

    assert (after.sequence, after.covers_to, after.before, after.epoch) == (3, 3, tip.hash, 2)
    assert record == _frame(tip)


SPOILED: dict[str, tuple[str, Callable[[Tip], Message]]] = {
    "an older epoch": ("frame of epoch 1", lambda t: _stored(t, DECISIONS_FRAME, _frame(t, epoch=1))),
    "another chain": ("`previous`", lambda t: _stored(t, DECISIONS_FRAME, _frame(t, previous="00" * 32))),
    "another log": ("log and generation", lambda t: _stored(t, DECISIONS_FRAME, _frame(t, log_id="other"))),
    "another generation": ("log and generation", lambda t: _stored(t, DECISIONS_FRAME, _frame(t, generation=2))),
    "inputs left out": ("due was 1", lambda t: _stored(t, DECISIONS_FRAME, _frame(t, covers_from=2))),
    "inputs backwards": ("covers EVENTS 1 to -1", lambda t: _stored(t, DECISIONS_FRAME, _frame(t, covers_to=-1))),
    "an answer to an input not covered": (
        "not covered",
        lambda t: _stored(t, DECISIONS_FRAME, _frame(t, covers_to=2)),
    ),
    "two answers to one input": (
        "out of order",
        lambda t: _stored(t, DECISIONS_FRAME, _frame(t, entries=(Entry(2, ()), Entry(2, ())))),
    ),
    "a subject of another kind": ("on the subject", lambda t: _stored(t, DECISIONS_VOID, _frame(t))),
    "a newer log version": ("log version 99", lambda t: _stored(t, DECISIONS_FRAME, _frame(t, version=99))),
    "a kind that nobody knows": ("unreadable", lambda t: _stored(t, DECISIONS_FRAME, b'{"type":"merge"}')),
    "no JSON": ("unreadable", lambda t: _stored(t, DECISIONS_FRAME, b"\xff")),
    "a sequence too far": ("follows 2", lambda t: _stored(t, DECISIONS_FRAME, _frame(t), 4)),
    "a sequence again": ("follows 2", lambda t: _stored(t, DECISIONS_EPOCH, EPOCH, 2)),
    "a second genesis": ("may begin", lambda t: _stored(t, DECISIONS_GENESIS, GENESIS)),
    "a genesis of another log": (
        "may begin",
        lambda t: _stored(t, DECISIONS_GENESIS, msgspec.structs.replace(GENESIS, log_id="other", generation=2)),
    ),
}


@pytest.mark.parametrize("case", SPOILED)
def test_what_no_writer_of_ours_writes_breaks_the_log(case: str) -> None:
    """T2, T4, T6: each thing that a good log never holds stops the reader, with the sequence and the reason."""
    why, spoil = SPOILED[case]
    tip = _begun()

    with pytest.raises(BrokenLog, match=why) as met:
        advance(tip, spoil(tip))

    assert met.value.sequence == spoil(tip).sequence


@pytest.mark.parametrize(
    ("subject", "record"),
    [
        (DECISIONS_EPOCH, EPOCH),
        (DECISIONS_FRAME, Frame("log", 1, 0, 1, "0", "s", 1, 0, "d", bytes(32).hex())),
        (DECISIONS_GENESIS, msgspec.structs.replace(GENESIS, log_id="")),
    ],
    ids=["epoch", "frame", "nameless"],
)
def test_a_log_begins_with_its_genesis(subject: str, record: Record) -> None:
    """T4: what has no identity is no log of ours."""
    with pytest.raises(BrokenLog):
        advance(START, _stored(START, subject, record))


def test_a_frame_needs_an_epoch_of_its_own_generation() -> None:
    """T4: a new generation takes frames only after a new epoch, and then from any input on."""
    tip = _begun()
    tip, _ = advance(tip, _stored(tip, DECISIONS_FRAME, _frame(tip)))
    tip, _ = advance(tip, _stored(tip, DECISIONS_GENESIS, msgspec.structs.replace(GENESIS, generation=2)))

    with pytest.raises(BrokenLog, match="frame of epoch 2"):
        advance(tip, _stored(tip, DECISIONS_FRAME, _frame(tip, generation=2, epoch=2)))

    tip, _ = advance(tip, _stored(tip, DECISIONS_EPOCH, msgspec.structs.replace(EPOCH, generation=2)))
    tip, _ = advance(tip, _stored(tip, DECISIONS_FRAME, _frame(tip, generation=2)))
    assert (tip.generation, tip.epoch, tip.covers_to) == (2, 5, 3)
