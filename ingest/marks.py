"""How far each kind's watch has come, told in one message for all kinds, seldom unless asked (T11)."""

import asyncio
from typing import Final

from ingest.outlet import Outlet

EVERY_S: Final = 5.0
"""How long an unasked mark waits for others: bookmarks come about each minute, those of all kinds close together."""

GATHER_S: Final = 0.1
"""How long an asked mark waits for those of other kinds, which come at nearly the same time."""


class Marks:
    """The newest mark of each kind that was not told yet."""

    def __init__(self, outlet: Outlet, every_s: float = EVERY_S) -> None:
        self._outlet = outlet
        self._every_s = every_s
        self._untold: dict[str, tuple[int, str]] = {}
        self._asked = asyncio.Event()
        self._noted = asyncio.Event()

    def note(self, kind: str, session: int, rv: str, *, asked: bool = False) -> None:
        """Note that the kind's watch has seen everything up to `rv`, and that this was published."""
        self._untold[kind] = (session, rv)
        self._noted.set()
        if asked:
            self._asked.set()

    def forget(self, kind: str) -> None:
        """Drop what was noted for a session that is over."""
        self._untold.pop(kind, None)

    def drop(self) -> None:
        """Drop all: a new epoch asks for marks newer than itself."""
        self._untold.clear()

    async def tell(self) -> None:
        """Publish marks for ever."""
        while True:
            await self._noted.wait()
            try:
                async with asyncio.timeout(self._every_s):
                    await self._asked.wait()
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(GATHER_S)
            self._asked.clear()
            self._noted.clear()
            untold, self._untold = self._untold, {}
            if untold:
                await self._outlet.progress([(kind, *untold[kind]) for kind in sorted(untold)])
