"""A controller's work queue: each key once, by one worker at a time, with a back-off per key.

The rules are client-go's: a key added while it is worked on is worked on again afterwards; a failed
key comes back after 5 ms, doubled with each failure up to 1000 s, until it succeeds.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import structlog

from binder.kube import ApiError
from deploy.world.clock import Clock

BACKOFF_FIRST_S = 0.005
BACKOFF_MOST_S = 1000.0

_log = structlog.get_logger(__name__)


class Retry(Exception):
    """The key could not be finished and comes back after its back-off; `reason` is for the log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkQueue:
    """Keys that want work, in the order they came."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: deque[str] = deque()
        self._dirty: set[str] = set()
        self._busy: set[str] = set()
        self._failures: dict[str, int] = {}
        self._some = asyncio.Event()
        self._timers: set[asyncio.Task[None]] = set()

    def add(self, key: str) -> None:
        """Ask for work on the key; asked twice before it starts is asked once."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._busy:
            self._waiting.append(key)
            self._some.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Ask for work on the key when so many seconds have passed."""
        timer = asyncio.ensure_future(self._later(key, seconds))
        self._timers.add(timer)
        timer.add_done_callback(self._timers.discard)

    async def _later(self, key: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self.add(key)

    async def take(self) -> str:
        """Wait for the next key and hold it until `done`."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
        key = self._waiting.popleft()
        self._dirty.discard(key)
        self._busy.add(key)
        return key

    def done(self, key: str, *, failed: bool) -> None:
        """Let go of the key: a failed one comes back after its back-off."""
        self._busy.discard(key)
        if failed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            self.add_after(key, min(BACKOFF_FIRST_S * 2.0 ** min(failures, 30), BACKOFF_MOST_S))
        else:
            self._failures.pop(key, None)
        if key in self._dirty:
            self._waiting.append(key)
            self._some.set()

    @property
    def idle(self) -> bool:
        """Say whether nothing waits and nobody works; back-offs and timers do not count."""
        return not self._waiting and not self._busy

    def close(self) -> None:
        """Forget the timers."""
        for timer in self._timers:
            timer.cancel()


async def work(queue: WorkQueue, reconcile: Callable[[str], Awaitable[None]]) -> None:
    """Reconcile key after key, for ever. An API refusal is retried; any other error ends the worker."""
    while True:
        key = await queue.take()
        failed = False
        try:
            await reconcile(key)
        except Retry as error:
            failed = True
            _log.debug("world.retry", key=key, reason=error.reason)
        except ApiError as error:
            failed = True
            _log.debug("world.refused", key=key, code=error.code, reason=error.reason)
        finally:
            queue.done(key, failed=failed)
