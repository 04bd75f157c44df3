"""One open watch: a task that reads, batches of what waits; bounded, so that a slow reader slows the server."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from binder.kube import ApiError, WatchEvent

WAITING_MAX: Final = 2000


class Reading:
    """Reads a watch until it ends, fails or is stopped; what was read by then is still handed out.

    `error` says why it ended, None where the server or `stop` ended it.
    """

    def __init__(self, events: AsyncIterator[WatchEvent]) -> None:
        self.error: ApiError | None = None
        self._waiting: deque[WatchEvent] = deque()
        self._room = asyncio.Semaphore(WAITING_MAX)
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._read(events))
        self._task.add_done_callback(lambda _: self._wake.set())

    async def _read(self, events: AsyncIterator[WatchEvent]) -> None:
        try:
            async for event in events:
                await self._room.acquire()
                self._waiting.append(event)
                self._wake.set()
        except ApiError as error:
            self.error = error
        finally:
            # A generator that is left in the middle would hold its connection until it is collected.
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def batch(self, most: int) -> list[WatchEvent]:
        """Return what waits, at most so many; none: the watch is over and all of it was handed out."""
        while not self._waiting and not self._task.done():
            self._wake.clear()
            await self._wake.wait()
        if not self._waiting and not self._task.cancelled() and (failure := self._task.exception()):
            raise failure
        batch = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        for _ in batch:
            self._room.release()
        return batch

    def stop(self) -> None:
        """End the watch; what waits can still be taken."""
        self._task.cancel()

    async def close(self) -> None:
        """End the watch and wait until its connection is given back."""
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            # Looked at here, lest asyncio complains of a failure that nobody waits for any more.
            self._task.exception()
