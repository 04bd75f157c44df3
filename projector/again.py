"""What nobody watches is read again: when the API server went back to a backup, and now and then unasked (T12).

Counts and the conditions of classes are known as they were written, and by nothing else: a server that is back from
a backup shows older ones, and who wrote them last takes them for shown.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from binder.book import Book
from binder.state import State
from projector.effects import ShowLicence
from projector.paced import Paced
from projector.plan_licences import shown_licences
from schemas.objects import Stamp

AGAIN_S: Final = 300.0
"""How often what was written is read again, whatever is heard of the server."""


class Again:
    """`take(book)` after each step; `run(book)` beside it. `put`: has a class's condition looked at in its lane."""

    def __init__(self, counts: Sequence[Paced], put: Callable[[str, ShowLicence, Stamp], None]) -> None:
        self._counts = counts
        self._put = put
        self._rewound = 0

    def take(self, book: Book) -> None:
        """Look again where a kind is listed anew as its server went back."""
        if book.rewound != self._rewound:
            self._rewound = book.rewound
            self._look(book.state)

    async def run(self, book: Book) -> None:
        """Look again now and then, for ever: where enough was written since, no version tells of a backup."""
        while True:
            await asyncio.sleep(AGAIN_S)
            self._look(book.state)

    def _look(self, state: State) -> None:
        for counts in self._counts:
            counts.look_again()
        for key, effect, stamp in shown_licences(state):
            self._put(key, effect, stamp)
