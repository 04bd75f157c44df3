"""What shares a frame: who waits for an answer goes at once, what is told beside requests goes with the next one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from binder.company import Company
from binder.follower import Follower
from binder.memory_journal import MemoryJournal
from schemas.events import Tick, encode_event
from schemas.streams import EVENTS, EVENTS_CONTINUE, EVENTS_OUTCOME, EVENTS_REQUEST, EVENTS_TICK, EVENTS_WATCH
from tests.binder.waiting import SECONDS

ASKED = f"{EVENTS_REQUEST}.vmi"
TOLD = (f"{EVENTS_WATCH}.pods", EVENTS_OUTCOME, EVENTS_TICK)
LONG_S = 10 * SECONDS
"""So long that a test which waits for it fails."""


class Inputs:
    """EVENTS as somebody fills it, and who takes its inputs frame by frame."""

    def __init__(self, journal: MemoryJournal, company: Company) -> None:
        self._journal, self._company = journal, company

    async def come(self, *subjects: str) -> None:
        """Store an input on each subject."""
        for subject in subjects:
            await self._journal.append(EVENTS, subject, encode_event(Tick()), message_id="")

    async def taken(self) -> list[str]:
        """Return the subjects of the next frame's inputs."""
        async with asyncio.timeout(SECONDS):
            return [message.subject for message in await self._company.inputs()]


@asynccontextmanager
async def inputs(close_s: float = LONG_S, most: int = 10) -> AsyncIterator[Inputs]:
    """Have a follower at the start of EVENTS, and company for what it reads there."""
    journal = MemoryJournal()
    follower = Follower(journal)
    try:
        yield Inputs(journal, Company(follower, most, close_s))
    finally:
        await follower.close()


async def test_nothing_waits_where_nobody_asked_just_now() -> None:
    """What is told goes at once, also after a request that came alone; so does a request."""
    async with inputs() as here:
        for subject in (*TOLD, ASKED, *TOLD):
            await here.come(subject)

            assert await here.taken() == [subject]


async def test_what_is_told_goes_with_the_next_request() -> None:
    """Where requests come close together, a request takes along what was told since the one before it, in order."""
    async with inputs() as here:
        for _ in range(2):
            await here.come(ASKED)
            await here.taken()
        taking = asyncio.ensure_future(here.taken())
        await here.come(*TOLD)
        for _ in range(5):
            await asyncio.sleep(0)
        waits = not taking.done()
        await here.come(ASKED)

        assert waits
        assert await taking == [*TOLD, ASKED]


async def test_who_waits_goes_at_once() -> None:
    """However close together requests come, they wait for nobody, nor does the rest of a bounded input (T5)."""
    async with inputs() as here:
        for subject in (ASKED, ASKED, ASKED, EVENTS_CONTINUE, ASKED):
            await here.come(subject)

            assert await here.taken() == [subject]


async def test_a_full_frame_waits_for_nobody() -> None:
    """As much as a frame takes goes without a request, in order, and the rest after it."""
    async with inputs(most=2) as here:
        for _ in range(2):
            await here.come(ASKED)
            await here.taken()
        await here.come(TOLD[0], TOLD[1], TOLD[2], TOLD[0])

        assert [await here.taken(), await here.taken()] == [[TOLD[0], TOLD[1]], [TOLD[2], TOLD[0]]]


async def test_company_is_waited_for_a_moment() -> None:
    """Where no further request comes, what was told goes after the time it waits at most."""
    async with inputs(close_s=0.05) as here:
        for _ in range(2):
            await here.come(ASKED)
            await here.taken()
        await here.come(TOLD[0])

        assert await here.taken() == [TOLD[0]]
