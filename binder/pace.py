"""Beginnings kept apart: what comes in between shares the next one, and after a pause nothing waits."""

import asyncio


class Pace:
    """Of what is begun again and again, for one task. `every_s`: seconds from one beginning to the next, at least."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._free_at = 0.0

    async def begin(self) -> None:
        """Wait until the next may begin, and count it as begun."""
        loop = asyncio.get_running_loop()
        early = self._free_at - loop.time()
        if early > 0:
            await asyncio.sleep(early)
        self._free_at = loop.time() + self._every_s
