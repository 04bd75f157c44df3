"""Looks at keys when something about them changed: several at once, and after a write not again for a second.

Whoever undoes our writes as fast as we make them (another controller, say) is met once a second, no faster.
"""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum, auto

from projector.lanes import Lanes

SECONDS_BETWEEN = 1.0
AT_ONCE = 16


class Looked(Enum):
    """What a look at a key came to."""

    DONE = auto()
    WROTE = auto()
    AGAIN = auto()


class Rounds:
    """`put` a key that changed; `look` is called with it, as often as it says AGAIN, later each time."""

    def __init__(self, look: Callable[[str], Awaitable[Looked]], *, at_once: int = AT_ONCE) -> None:
        self._look = look
        self._at_once = at_once
        self._lanes: Lanes[None] = Lanes()
        self._resting: dict[str, bool] = {}

    def put(self, key: str) -> None:
        """Have the key looked at; one that rests after a write is looked at when it has rested."""
        if key in self._resting:
            self._resting[key] = True
        else:
            self._lanes.put(key, None)

    def later(self, key: str, seconds: float) -> None:
        """Have the key looked at after a while."""
        asyncio.get_running_loop().call_later(seconds, self.put, key)

    async def run(self) -> None:
        """Look for ever."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._at_once):
                tasks.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            key, _ = await self._lanes.take()
            looked = await self._look(key)
            # Looks that find nothing to do never wait: a first round over everything must not hold up the rest.
            await asyncio.sleep(0)
            if looked is Looked.AGAIN:
                self._lanes.again(key, None)
                continue
            if looked is Looked.WROTE:
                # What changed while it was written is in the lane already, and waits as well.
                self._resting[key] = self._lanes.withdraw(key)
                asyncio.get_running_loop().call_later(SECONDS_BETWEEN, self._rested, key)
            self._lanes.done(key)

    def _rested(self, key: str) -> None:
        if self._resting.pop(key):
            self._lanes.put(key, None)
