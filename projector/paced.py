"""A status that is counted from the state: written when that may be another, at most once a second."""

import asyncio
from contextlib import suppress
from typing import Final

from binder.book import Book

SECONDS_BETWEEN: Final = 1.0


class Paced:
    """What keeps such a status true. `changed()` after each step; `run(book)` beside them."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def changed(self) -> None:
        """Say that the state may count otherwise now."""
        self._news.set()

    def look_again(self) -> None:
        """Take nothing for shown that was written: it is read again, and written where it is otherwise (T12)."""
        self._news.set()

    async def run(self, book: Book) -> None:
        """Write for ever what differs from what is shown."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), self._unasked_s())
            self._news.clear()
            await self.write(book)
            await asyncio.sleep(SECONDS_BETWEEN)

    def _unasked_s(self) -> float | None:
        """Return after how long it is written without a change, None for never."""
        return None

    async def write(self, book: Book) -> None:
        """Write what differs now."""
        raise NotImplementedError
