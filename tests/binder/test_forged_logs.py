"""Logs that no program of ours wrote: every reader of them ends in a finding, never in an error of its own."""

import pytest

from binder.book import Book
from binder.journal import Message
from binder.step import apply, step
from binder.telling import about_event, told_event
from binder.tip import START, BrokenLog, advance
from schemas import decisions as d
from schemas.decisions import VmiId
from schemas.events import Tick, encode_event
from schemas.frames import Genesis, encode_record
from schemas.objects import NodeSelectorTerm, Requirement
from schemas.reasons import Release, Wait
from schemas.streams import DECISIONS_GENESIS
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
