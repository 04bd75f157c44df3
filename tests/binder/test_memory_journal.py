"""The journal in memory: its clock, and the two orders in which servers look at an append (T3)."""

import pytest

from binder.journal import WrongLastSequence
from binder.memory_journal import MemoryJournal
from schemas.streams import DECISIONS, DECISIONS_FRAME, EVENTS, EVENTS_TICK, STREAMS


async def test_the_memory_window_follows_its_clock() -> None:
    """C38: in memory too a known id is forgotten after the window, by the clock that was given."""
    now = [0]
    journal = MemoryJournal(clock=lambda: now[0])
    window_ns = next(spec.duplicate_window_s for spec in STREAMS if spec.name == EVENTS) * 1_000_000_000
    await journal.append(EVENTS, EVENTS_TICK, b"", message_id="a")

    now[0] = window_ns - 1
    assert await journal.append(EVENTS, EVENTS_TICK, b"", message_id="a") == 1
    now[0] = window_ns
    assert await journal.append(EVENTS, EVENTS_TICK, b"", message_id="a") == 2
    assert [m.stamp_ns for m in journal.streams[EVENTS].messages] == [0, window_ns]


@pytest.mark.parametrize("replicated", [False, True], ids=["one", "three"])
async def test_memory_answers_a_retry_as_one_server_or_as_three(replicated: bool) -> None:
    """T3: of a landed append tried again, one server says that the tail moved on, a cluster that it landed."""
    journal = MemoryJournal(replicated=replicated)
    await journal.append(DECISIONS, DECISIONS_FRAME, b"", message_id="f", expected_last=0)

    again = journal.append(DECISIONS, DECISIONS_FRAME, b"", message_id="f", expected_last=0)

    if replicated:
        assert await again == 1
    else:
        with pytest.raises(WrongLastSequence):
            await again
