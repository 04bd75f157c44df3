"""Sends outcomes to EVENTS: those that are ready go together, each message until it is stored (T23)."""

import asyncio
import secrets
from collections import deque

import structlog

from binder.journal import Journal, Unavailable, Unclear
from schemas.events import Outcome, Outcomes, encode_event
from schemas.streams import EVENTS, EVENTS_OUTCOME

OUTCOMES_PER_MESSAGE_MAX = 200
_DELAY_FIRST = 0.05
_DELAY_MOST = 5.0

log = structlog.get_logger()


class Outbox:
    """Outcomes on their way. While one message is being stored, the next one gathers."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waiting: deque[Outcome] = deque()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._name = secrets.token_hex(8)
        self._sent = 0

    def add(self, outcome: Outcome) -> None:
        """Take an outcome along."""
        self._waiting.append(outcome)
        self._idle.clear()
        self._news.set()

    async def run(self) -> None:
        """Send for ever."""
        while True:
            await self._news.wait()
            # All that this turn of the loop still adds goes along.
            await asyncio.sleep(0)
            batch = tuple(self._waiting.popleft() for _ in range(min(len(self._waiting), OUTCOMES_PER_MESSAGE_MAX)))
            if not self._waiting:
                self._news.clear()
            if batch:
                await self._store(batch)
            if not self._waiting:
                self._idle.set()

    async def idle(self) -> None:
        """Wait until every outcome is stored."""
        await self._idle.wait()

    async def _store(self, batch: tuple[Outcome, ...]) -> None:
        """Repeat the same message under the same id: one that had landed unseen is not stored twice."""
        self._sent += 1
        body, message_id = encode_event(Outcomes(batch)), f"outcomes-{self._name}-{self._sent}"
        delay = _DELAY_FIRST
        while True:
            try:
                await self._journal.append(EVENTS, EVENTS_OUTCOME, body, message_id=message_id)
                return
            except (Unclear, Unavailable) as error:
                log.warning("outcomes.not-stored", error=repr(error), outcomes=len(batch), again_seconds=delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _DELAY_MOST)
