"""What the next frame is made of: who waits for an answer goes at once, the rest waits a moment for company.

A frame costs its writer, NATS and everybody who reads it the same, however much is in it. Where requests come close
together, what a watch brings in between shares the frame of the next one. When nobody asked just now nothing waits.
"""

import asyncio
from math import inf

from binder.follower import Follower
from binder.journal import Message
from binder.pace import Pace
from schemas.streams import EVENTS_OUTCOME, EVENTS_TICK, EVENTS_WATCH

FRAME_EVERY_SECONDS = 0.002
"""Frames begin no closer together: what comes in between shares a write, an fsync, and a reading by everybody."""

CLOSE_SECONDS = 0.015
"""Frames with requests this close together are followed by another one soon: so long the rest waits for it at most."""

_UNASKED = (f"{EVENTS_WATCH}.", EVENTS_OUTCOME, EVENTS_TICK)
"""Subjects of what is told: nobody waits for an answer to it."""


class Company:
    """Takes inputs, frame by frame, for one leader. `close_s`: see `CLOSE_SECONDS`."""

    def __init__(self, follower: Follower, most: int, close_s: float = CLOSE_SECONDS) -> None:
        """`most`: so many inputs at a time."""
        self._follower, self._most, self._close_s = follower, most, close_s
        self._pace = Pace(FRAME_EVERY_SECONDS)
        self._asked_at = -inf
        self._expected_until = -inf

    async def inputs(self) -> list[Message]:
        """Return the next inputs, at least one, in their order."""
        loop = asyncio.get_running_loop()
        await self._pace.begin()
        await self._follower.arrived()
        while not (asked := self._is_asked()) and (left := self._expected_until - loop.time()) > 0:
            if not await self._follower.more(left):
                break
        if asked:
            self._note(loop.time())
        return self._follower.take(self._most)

    def _is_asked(self) -> bool:
        """Say whether the frame is full, or somebody waits for what it will say."""
        waiting = self._follower.waiting
        return len(waiting) >= self._most or not all(message.subject.startswith(_UNASKED) for message in waiting)

    def _note(self, now: float) -> None:
        is_close = now - self._asked_at <= self._close_s
        self._asked_at = now
        self._expected_until = now + self._close_s if is_close else -inf
