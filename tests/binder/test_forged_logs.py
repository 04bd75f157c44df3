"""Logs and slices that no program of ours wrote: every reader ends in a finding, never in an error of its own."""

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binder.audit import Auditor
from binder.book import Book
from binder.journal import Message
from binder.logbook import Draft
from binder.memory_journal import MemoryJournal
from binder.settings import settings_digest
from binder.slices import NotASlice, cut, load
from binder.state import empty_state
from binder.step import RULES_VERSION, apply, step
from binder.subjects import about_event
from binder.telling import told_event
from binder.tip import START, BrokenLog, advance, canonical
from schemas import decisions as d
from schemas.chain import EventsDigest
from schemas.decisions import VmiId
from schemas.events import Tick, encode_event
from schemas.frames import Genesis, encode_record
from schemas.objects import NodeSelectorTerm, Requirement
from schemas.reasons import Release, Wait
from schemas.streams import DECISIONS_GENESIS, EVENTS, EVENTS_TICK
from tests.binder.leading import begin
from tests.binder.scene import Scene

NOBODY = VmiId("t", "vm", "nobody-knows-this-uid")
DEEP = 100_000


@pytest.mark.parametrize(
    "decision",
    [
        d.SetPlaced(NOBODY, "no-node", "p", "u", (NodeSelectorTerm((Requirement("k", "In", ("v",)),)),)),
        d.SetReleased(NOBODY, "no-node", Release.LAUNCHER_GONE),
        d.SetWaits(NOBODY, Wait.NO_ROOM, "why"),
        d.SetClosed(NOBODY),
        d.ClaimDropped("t", "claim", "u"),
        d.PodAdmitted("r", NOBODY, gate=True),
    ],
    ids=lambda one: type(one).__name__,
)
def test_decisions_about_a_set_that_was_never_opened_are_folded(decision: d.Decision) -> None:
    """T7: the fold is total, so an auditor of a log under other rules reports it, whatever stands there."""
    book = Book(Scene().book.state)
    apply(book, book.state.events_seq + 1, book.state.stamp_ns, encode_event(Tick()), (decision,))
    step(book, book.state.events_seq + 1, book.state.stamp_ns, encode_event(Tick()))


def test_a_record_nested_too_deeply_is_a_finding() -> None:
    """T6: a field that nobody knows, thousands of lists deep, breaks the log and not its reader."""
    body = encode_record(Genesis("log", 1, "c", "0"))
    forged = body[:-1] + b',"x":' + b"[" * DEEP + b"]" * DEEP + b"}"
    with pytest.raises(BrokenLog, match="unreadable"):
        advance(START, Message(1, 1, DECISIONS_GENESIS, {}, forged))


def test_an_input_nested_too_deeply_is_told() -> None:
    """T6: whoever shows the log to people shows such an input as unreadable."""
    forged = b'{"type":"tick","x":' + b"[" * DEEP + b"]" * DEEP + b"}"
    assert told_event(forged).startswith("unreadable")
    assert about_event(forged) == frozenset()


async def a_slice(path: Path) -> bytes:
    """Cut a slice of a log of one input; return its lines."""
    journal = MemoryJournal()
    writer = await begin(journal)
    await journal.append(EVENTS, EVENTS_TICK, encode_event(Tick()), message_id="one")
    message = await journal.get(EVENTS, 1)
    assert message is not None
    digest = EventsDigest()
    digest.add(canonical(message))
    await writer.append(Draft(RULES_VERSION, "0", settings_digest(empty_state()), 1, 1, digest.hex()))
    await cut(journal, 1, 1, path)
    return gzip.decompress(path.read_bytes())


async def rerun(path: Path) -> bool:
    """Say whether a slice file is one, and is whole."""
    try:
        found = load(path)
    except NotASlice:
        return False
    return (await Auditor(found.journal, found.state, found.head.tip, confirm_seconds=0.01).verify()).whole


WRONG = (b"-1", b"9" * 30, b'"\\ud800"', b"null", b"[]", b"{}", b'"x"', b"0", b"[" * 5_000)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(place=st.integers(0, 10**6), wrong=st.sampled_from(WRONG), at=st.integers(0, 10**6), bit=st.integers(0, 7))
async def test_a_spoiled_slice_is_no_slice_or_a_finding(
    tmp_path: Path, place: int, wrong: bytes, at: int, bit: int
) -> None:
    """R2: whatever stands at the place of one value, or of one byte of the packed file, the reader says so itself."""
    path = tmp_path / "one.slice"
    plain = await a_slice(path)
    packed = bytearray(path.read_bytes())
    assert await rerun(path)
    values = [match.span() for match in re.finditer(rb'(?<=:)(-?\d+|"[^"]*")', plain)]
    begins, ends = values[place % len(values)]
    path.write_bytes(gzip.compress(plain[:begins] + wrong + plain[ends:]))
    await rerun(path)
    packed[at % len(packed)] ^= 1 << bit
    path.write_bytes(packed)
    await rerun(path)
