"""Following the log: torn readers, logs made anew, and records of a newer version."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from typing_extensions import override

from binder.journal import Gap, Message, Unavailable
from binder.memory_journal import MemoryJournal
from schemas.streams import DECISIONS
from tests.webhooks.given import SECONDS, Clerk, Desk, asked_over
from webhooks.answers import Answers, UnreadableLog

pytestmark = pytest.mark.looptime


class Torn(MemoryJournal):
    """A journal whose first readers of DECISIONS break off with the errors given, once `now` is set."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.now = asyncio.Event()

    @override
    async def read(self, stream: str, start: int, *, until: int | None = None) -> AsyncIterator[list[Message]]:
        if stream == DECISIONS and self.errors:
            await self.now.wait()
            raise self.errors.pop(0)
        async for run in super().read(stream, start, until=until):
            yield run


async def test_a_follower_that_stops_starts_again(desk: Desk) -> None:
    """Gaps, lost connections and whatever else end the following; answers flow again after them."""
    journal = Torn(Gap(DECISIONS, 2, 5), Unavailable("no leader"), OSError("reset"))
    journal.now.set()
    clerk = Clerk(journal)
    await clerk.open_epoch()

    assert (await asked_over(desk, journal, clerk)).allowed
    assert journal.errors == []


@pytest.mark.parametrize("error", [Unavailable("gone"), Gap(DECISIONS, 6, 1)], ids=["lost", "gap"])
async def test_a_log_that_was_made_anew_is_followed_from_its_end(error: Exception) -> None:
    """A log shorter than what was read is another one: it is followed, not waited for."""
    journal = Torn(error)
    answers = Answers(journal, pause_s=0.0)
    clerk = Clerk(journal)
    for _ in range(5):
        await clerk.open_epoch()
    following = asyncio.create_task(answers.follow())
    await answers.ready()
    stream = journal.streams[DECISIONS]
    stream.messages.clear()
    stream.last = 0
    journal.now.set()
    while journal.errors:
        await asyncio.sleep(0)

    await clerk.open_epoch()
    await answers.ready()
    await clerk.open_epoch()

    async with asyncio.timeout(SECONDS):
        while not answers.records_seen:
            await asyncio.sleep(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_an_unknown_record_stops_the_program() -> None:
    """A decision of a newer version is another history to us: stop with a sentence, never skip (T6)."""
    journal = MemoryJournal()
    await Clerk(journal).open_epoch()
    await journal.append(DECISIONS, "gpubinder.decisions.frame", b'{"type":"from-the-future"}', message_id="")
    answers = Answers(journal)

    with pytest.raises(UnreadableLog, match=r"sequence 2 can't be read by this version .* upgrade it"):
        await answers.follow()
