"""One lane per key: the newest item wins, one at a time, and what failed comes again later."""

import asyncio
from collections import deque
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
_NOTHING = object()


class Pace(NamedTuple):
    """Seconds before an item is tried again: doubling between these."""

    first: float
    most: float


QUICKLY = Pace(0.1, 15.0)
SLOWLY = Pace(2.0, 300.0)


class Lanes(Generic[T]):
    """Items by key for several workers.

    `put` replaces what waits under the key. `take` hands out a key that no other worker has; its
    worker then says `done` or `again`. `overtaken` tells a worker that something newer waits.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, T] = {}
        self._ready: deque[str] = deque()
        self._listed: set[str] = set()
        self._busy: set[str] = set()
        self._delayed: dict[str, asyncio.TimerHandle] = {}
        self._refused: dict[str, bool] = {}
        self._tries: dict[str, int] = {}
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def open(self) -> int:
        """How many keys have something to do: waiting, worked on, or to come again."""
        return len(self._waiting.keys() | self._busy | self._delayed.keys())

    @property
    def refused(self) -> int:
        """How many of them come again as they were refused."""
        return len(self._refused)

    def put(self, key: str, item: T) -> None:
        """Let the item wait under the key, in the place of an older one; it starts with no failures behind it."""
        self._tries.pop(key, None)
        self._refused.pop(key, None)
        self._undelay(key)
        self._waiting[key] = item
        self._list(key)

    def overtaken(self, key: str) -> bool:
        """Say whether something newer waits under a key that is being worked on."""
        return key in self._waiting

    def withdraw(self, key: str) -> bool:
        """Take back what waits under a key that is being worked on; say whether there was anything."""
        return self._waiting.pop(key, _NOTHING) is not _NOTHING

    async def take(self) -> tuple[str, T]:
        """Return the next key and item; the key is the caller's until `done` or `again`."""
        while True:
            while not self._ready:
                self._news.clear()
                await self._news.wait()
            key = self._ready.popleft()
            self._listed.discard(key)
            if key in self._waiting:
                self._busy.add(key)
                return key, self._waiting.pop(key)

    def done(self, key: str) -> None:
        """Give the key back."""
        self._busy.discard(key)
        self._tries.pop(key, None)
        self._refused.pop(key, None)
        self._next(key)

    def was_refused(self, key: str) -> bool:
        """Say whether what is worked on under the key comes again as it was refused."""
        return key in self._refused

    def again(self, key: str, item: T, pace: Pace = QUICKLY) -> None:
        """Give the key back and have the item again after a delay, unless something newer waits."""
        self._busy.discard(key)
        if key not in self._waiting:
            tries = self._tries.get(key, 0)
            self._tries[key] = tries + 1
            delay = min(pace.first * 2 ** min(tries, 16), pace.most)
            if pace is SLOWLY:
                self._refused[key] = True
            else:
                self._refused.pop(key, None)
            self._delayed[key] = asyncio.get_running_loop().call_later(delay, self._due, key, item)
        self._next(key)

    async def idle(self) -> None:
        """Wait until nothing waits, nobody works, and only what was refused is to come again."""
        await self._idle.wait()

    def _due(self, key: str, item: T) -> None:
        del self._delayed[key]
        self._waiting[key] = item
        self._list(key)

    def _next(self, key: str) -> None:
        if key in self._waiting:
            self._list(key)
        self._rest()

    def _list(self, key: str) -> None:
        self._idle.clear()
        if key not in self._busy and key not in self._listed:
            self._listed.add(key)
            self._ready.append(key)
            self._news.set()

    def _undelay(self, key: str) -> None:
        timer = self._delayed.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _rest(self) -> None:
        if not (self._waiting or self._busy or any(key not in self._refused for key in self._delayed)):
            self._idle.set()
