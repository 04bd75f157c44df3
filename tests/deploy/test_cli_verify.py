"""`gpubinder verify`: whoever changes the log behind everyone's back is found out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from binder.audit import Auditor, Part, Report
from binder.journal import Message
from binder.stream_setup import create_streams
from binder.tip import Tip
from schemas.frames import Frame, decode_record, encode_record
from schemas.streams import DECISIONS, EVENTS
from tests.deploy.command import gpubinder
from tests.deploy.logs import Kept, changed, served

Messages = list[Message]


def _flip(messages: Messages, at: int) -> None:
    body = bytearray(messages[at].body)
    body[len(body) // 2] ^= 1
    messages[at] = changed(messages[at], body=bytes(body))


def _drop(messages: Messages, at: int) -> None:
    """Take one out and close the gap, as if it had never been."""
    del messages[at]
    _number(messages)


def _swap(messages: Messages, at: int) -> None:
    messages[at], messages[at + 1] = messages[at + 1], messages[at]
    _number(messages)


def _insert(messages: Messages, at: int) -> None:
    messages.insert(at, messages[at])
    _number(messages)


def _stamp(messages: Messages, at: int) -> None:
    messages[at] = changed(messages[at], stamp_ns=messages[at].stamp_ns + 1)


def _header(messages: Messages, at: int) -> None:
    messages[at] = changed(messages[at], headers={**messages[at].headers, "Nats-Msg-Id": "another"})


def _subject(messages: Messages, at: int) -> None:
    messages[at] = changed(messages[at], subject=messages[at].subject + ".x")


def _hole(messages: Messages, at: int) -> None:
    """Take one out and leave the gap."""
    del messages[at]


def _number(messages: Messages) -> None:
    for place, message in enumerate(messages):
        messages[place] = changed(message, sequence=place + 1)


async def _tampered(log: Kept, stream: str, tamper: Callable[[Messages, int], None], at: int) -> Report:
    journal = log.in_memory()
    held = journal.streams[stream]
    tamper(held.messages, at)
    held.last = held.messages[-1].sequence
    return await Auditor(journal, confirm_seconds=0.05).verify()


async def test_a_log_as_it_was_written_is_whole(demo_log: Kept) -> None:
    """T1: nothing is found where nothing was done, and every decision is made again."""
    report = await Auditor(demo_log.in_memory()).verify()

    assert report.whole, report
    assert report.rederived > 20
    assert report.chain_only == 0


TAMPERINGS = (_flip, _drop, _swap, _insert, _stamp, _header, _subject, _hole)


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__[1:])
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
async def test_inputs_cannot_be_changed_unseen(
    demo_log: Kept, tamper: Callable[[Messages, int], None], place: float
) -> None:
    """T1: an input that is changed, dropped, swapped, doubled, moved in time or renamed is found."""
    count = len(demo_log.messages[EVENTS])

    report = await _tampered(demo_log, EVENTS, tamper, int(count * place))

    assert report.broken is Part.INPUTS, report
    assert "EVENTS" in report.finding


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__[1:])
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
async def test_decisions_cannot_be_changed_unseen(
    demo_log: Kept, tamper: Callable[[Messages, int], None], place: float
) -> None:
    """T1: a decision that is changed, dropped, swapped, doubled, moved in time or renamed is found."""
    count = len(demo_log.messages[DECISIONS])

    report = await _tampered(demo_log, DECISIONS, tamper, int(count * place))

    assert report.finding, report
    assert not report.whole


async def test_inputs_that_were_lost_are_noticed(demo_log: Kept) -> None:
    """T3: EVENTS that ends before what the log decided on is a finding, not an endless wait."""
    journal = demo_log.in_memory()
    held = journal.streams[EVENTS]
    del held.messages[-10:]
    held.last = held.messages[-1].sequence

    report = await Auditor(journal, confirm_seconds=0.05).verify()

    assert report.broken is Part.INPUTS
    assert "acknowledged" in report.finding


async def test_a_tail_cut_below_the_anchor_is_noticed(demo_log: Kept) -> None:
    """T4: what was cut off the end leaves a whole log behind; only the anchor tells that it was longer."""
    journal = demo_log.in_memory()
    lived = Auditor(journal)
    await lived.verify()
    anchor: Tip = lived.follower.tip
    held = journal.streams[DECISIONS]
    del held.messages[-3:]
    held.last = held.messages[-1].sequence

    unanchored, anchored = await Auditor(journal).verify(), await Auditor(journal).verify(anchor)

    assert unanchored.whole
    assert anchored.broken is Part.ANCHOR
    assert f"the anchor stands at {anchor.sequence}" in anchored.finding


async def test_a_log_rewritten_up_to_its_end_is_noticed(demo_log: Kept) -> None:
    """T1, T4: whoever writes the last frame anew, chain and all, is found by the rules and by the anchor."""
    journal = demo_log.in_memory()
    lived = Auditor(journal)
    await lived.verify()
    held = journal.streams[DECISIONS]
    at, frame = next(
        (place, record)
        for place, message in reversed(list(enumerate(held.messages)))
        if isinstance(record := decode_record(message.body), Frame) and record.entries
    )
    emptied = Frame(**{name: getattr(frame, name) for name in Frame.__struct_fields__} | {"entries": ()})
    held.messages[at] = changed(held.messages[at], body=encode_record(emptied))
    del held.messages[at + 1 :]
    held.last = held.messages[-1].sequence

    report = await Auditor(journal).verify(lived.follower.tip)

    assert report.difference is not None
    assert report.difference.sequence == frame.entries[0].cause
    assert report.difference.logged == ()
    assert report.broken is Part.ANCHOR


def test_verify_says_what_it_proved(demo_log: Kept, tmp_path: Path) -> None:
    """A whole log ends with 0, a line for each thing that was proven, and says that the anchor was not asked."""
    ran = gpubinder("verify", "--no-anchor", "--data", demo_log.copy(tmp_path / "log"))

    assert ran.code == 0, ran.err
    assert [line.split()[1] for line in ran.out.splitlines()[1:]] == ["chain", "inputs", "decisions", "anchor"]
    assert "a log that was cut short would look the same" in ran.out


def test_verify_asks_for_the_anchor_unless_told_otherwise(demo_log: Kept, tmp_path: Path) -> None:
    """T4: without a cluster to ask, the proof is refused with the way out, not weakened in silence."""
    ran = gpubinder("verify", "--data", demo_log.copy(tmp_path / "log"))

    assert ran.code == 1
    assert "--no-anchor" in ran.err
    assert not ran.out


async def test_messages_copied_into_fresh_streams_are_not_the_log(demo_log: Kept, tmp_path: Path) -> None:
    """T1: the same bodies on a real server, published again, have other stamps: verify finds it, and ends with 3."""
    again = tmp_path / "again"
    async with served(again) as journal:
        await create_streams(journal, replicas=1)
        for stream in (EVENTS, DECISIONS):
            for message in demo_log.messages[stream]:
                await journal.append(stream, message.subject, message.body, message_id=message.headers["Nats-Msg-Id"])

    ran = gpubinder("verify", "--no-anchor", "--json", "--data", again)

    assert ran.code == 3
    assert ran.json["whole"] is False
    assert ran.json["broken"] in {"chain", "inputs"}
    assert ran.json["finding"]


def test_a_byte_flipped_on_the_disk_is_found(demo_log: Kept, tmp_path: Path) -> None:
    """T1: a byte changed in the store of a stopped server is found, whatever the server makes of it."""
    data = demo_log.copy(tmp_path / "log")
    (block,) = (data / "data" / "jetstream" / "$G" / "streams" / DECISIONS / "msgs").glob("*.blk")
    stored = block.read_bytes()
    told = stored.index(b'"set-placed"')
    block.write_bytes(stored[:told] + stored[told:].replace(b"gpu-a1", b"gpu-a2", 1))

    ran = gpubinder("verify", "--no-anchor", "--data", data)

    assert ran.code == 3, ran.out + ran.err
    assert "✗" in ran.out or "gpubinder:" in ran.err
