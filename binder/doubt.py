"""Doubt in a server that is connected and of no use: it hears no leader of the streams, others may.

A member of a cluster that is cut off from its peers keeps its clients and answers none of their questions.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from binder.journal import Full, Unavailable, Unclear

DOUBT_SECONDS = 10.0
"""How long no question may have been answered before another server is tried: an election takes less."""


class Doubt:
    """Judges a server by what becomes of the questions put to it; `leave` goes to another one."""

    def __init__(self, leave: Callable[[], Awaitable[None]], seconds: float = DOUBT_SECONDS) -> None:
        self._leave = leave
        self._seconds = seconds
        self._since: float | None = None

    @asynccontextmanager
    async def judged(self) -> AsyncIterator[None]:
        """Put a question in this block: what it raises tells whether it was answered."""
        try:
            yield
        except Full:
            self._since = None
            raise
        except (Unclear, Unavailable):
            await self._unanswered()
            raise
        except Exception:
            self._since = None
            raise
        self._since = None

    async def _unanswered(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
        if now - self._since >= self._seconds:
            self._since = now
            await self._leave()
