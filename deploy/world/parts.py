"""The parts of the model world that act by themselves, one step at a time.

A simulation calls `step` when it pleases; a demo lets `run` do so whenever something was written.
"""

import asyncio

from typing_extensions import override

from deploy.world.history import Change
from deploy.world.store import Listener, Store


class Part(Listener):
    """Something that acts on what is stored. Subclasses note writes in `noted` and act in `step`."""

    def __init__(self, store: Store) -> None:
        self._news = asyncio.Event()
        store.listen(self)

    async def step(self) -> bool:
        """Do one thing; False where there is nothing to do."""
        raise NotImplementedError

    async def settle(self) -> int:
        """Step until there is nothing to do; return the number of steps."""
        steps = 0
        while await self.step():
            steps += 1
        return steps

    async def run(self, *, lag_s: float = 0.0) -> None:
        """Act on every write, so many seconds of the loop's time after it, until cancelled."""
        while True:
            await self.settle()
            await self._news.wait()
            if lag_s:
                await asyncio.sleep(lag_s)
            self._news.clear()

    def noted(self, change: Change) -> None:
        """Note one write."""

    @override
    def changed(self, change: Change) -> None:
        self.noted(change)
        self._news.set()

    @override
    def reset(self) -> None:
        self._news.set()
