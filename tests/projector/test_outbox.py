"""Outcomes are stored once each, those that are ready together, whatever the journal answers (T23)."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from typing_extensions import override

from binder.journal import Unavailable, Unclear
from binder.memory_journal import MemoryJournal
from projector.outbox import OUTCOMES_PER_MESSAGE_MAX, Outbox
from schemas.events import Outcome, Outcomes, decode_event
from schemas.objects import Stamp
from schemas.streams import EVENTS, EVENTS_OUTCOME

pytestmark = pytest.mark.looptime


class MoodyJournal(MemoryJournal):
    """Answers the first appends of each message with these errors; Unclear ones have landed."""

    def __init__(self) -> None:
        super().__init__()
        self.moods: list[type[Unavailable | Unclear]] = []

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
        mood = self.moods.pop(0) if self.moods else None
        if mood is Unavailable:
            raise Unavailable("no leader")
        sequence = await super().append(stream, subject, body, message_id=message_id, expected_last=expected_last)
        if mood is Unclear:
            raise Unclear("no answer")
        return sequence


@pytest_asyncio.fixture
async def journal() -> MoodyJournal:
    """A journal that may be moody."""
    return MoodyJournal()


@pytest_asyncio.fixture
async def outbox(journal: MoodyJournal) -> AsyncIterator[Outbox]:
    """An outbox at work."""
    made = Outbox(journal)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()


async def stored(journal: MemoryJournal) -> list[list[int]]:
    """The sequences of the outcomes, message by message."""
    last = (await journal.info(EVENTS)).last
    found = []
    for sequence in range(1, last + 1):
        message = await journal.get(EVENTS, sequence)
        assert message is not None
        assert message.subject == EVENTS_OUTCOME
        event = decode_event(message.body)
        assert isinstance(event, Outcomes)
        found.append([outcome.stamp.sequence for outcome in event.outcomes])
    return found


def outcome(number: int) -> Outcome:
    """A success."""
    return Outcome("set", "a", "vm", "uid", Stamp(1, number))


async def test_ready_outcomes_go_together(journal: MoodyJournal, outbox: Outbox) -> None:
    """What is ready at once is one message, up to a limit; order is kept."""
    for number in range(OUTCOMES_PER_MESSAGE_MAX + 3):
        outbox.add(outcome(number))
    await outbox.idle()

    messages = await stored(journal)
    assert [len(message) for message in messages] == [OUTCOMES_PER_MESSAGE_MAX, 3]
    assert [number for message in messages for number in message] == list(range(OUTCOMES_PER_MESSAGE_MAX + 3))


async def test_each_outcome_is_stored_once(journal: MoodyJournal, outbox: Outbox) -> None:
    """T3: an append without an answer is repeated as the same message, and no outcome is there twice."""
    journal.moods = [Unclear, Unavailable, Unclear, Unavailable]
    outbox.add(outcome(1))
    await outbox.idle()
    outbox.add(outcome(2))
    await outbox.idle()

    assert await stored(journal) == [[1], [2]]


async def test_the_same_outcome_said_twice_is_stored_twice(journal: MoodyJournal, outbox: Outbox) -> None:
    """A true repeat, of a later try, is not taken for a duplicate."""
    for _ in range(2):
        outbox.add(outcome(1))
        await outbox.idle()

    assert await stored(journal) == [[1], [1]]
