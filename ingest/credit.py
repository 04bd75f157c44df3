"""Credit: how many chunks may wait for the binder, so that an admission request never waits behind a relist (T13)."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

IN_FLIGHT_MAX: Final = 8
"""Chunks of all kinds together that were published and are not yet covered by a decision frame."""


class Credit:
    """Lends places for chunks, first come first served; a frame that covers a chunk gives its place back.

    `taken`: places of chunks that are being published, or are and no frame covers them yet.
    """

    def __init__(self, limit: int = IN_FLIGHT_MAX) -> None:
        self._places = asyncio.Semaphore(limit)
        self._in_flight: list[int] = []
        self._covered = 0
        self.taken = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator["Place"]:
        """Wait for a place and lend it; it stays taken after the block if a chunk was stored in it."""
        await self._places.acquire()
        self.taken += 1
        place = Place()
        try:
            yield place
        finally:
            if place.sequence > self._covered:
                heapq.heappush(self._in_flight, place.sequence)
            else:
                self._give_back()

    def cover(self, sequence: int) -> None:
        """Note that the log covers EVENTS up to `sequence`."""
        self._covered = max(self._covered, sequence)
        while self._in_flight and self._in_flight[0] <= self._covered:
            heapq.heappop(self._in_flight)
            self._give_back()

    def _give_back(self) -> None:
        self.taken -= 1
        self._places.release()


class Place:
    """One place: `sequence` is that of the chunk stored in it, 0 while there is none."""

    def __init__(self) -> None:
        self.sequence = 0
