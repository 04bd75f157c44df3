"""The history of one resource in the model server, and the watches and paged lists that read it."""

import asyncio
from bisect import bisect_right
from typing import NamedTuple

from deploy.world.manifests import Obj
from schemas.kinds import Resource

PAGED_LISTS = 16
"""How many lists per collection can be read page by page at a time; the oldest answers 410."""

Place = tuple[str, str]
"""Group and plural: what a collection is known by."""


class Change(NamedTuple):
    """One write. `before`: the object it replaced, None where there was none."""

    version: int
    type: str
    resource: Resource
    key: str
    object: Obj
    raw: bytes
    before: Obj | None


class Expired(Exception):
    """A watch asks for versions that are forgotten; `oldest` is the first that is still known."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest


class Collection:
    """The objects of one resource by `namespace/name`, and the writes that are still remembered."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.objects: dict[str, Change] = {}
        self.history: list[Change] = []
        self.first = 0  # how many writes were dropped before history[0]
        self.forgotten = 0  # the newest version among them
        self.latest = 0  # the version of the newest write
        self.progress = 0  # a version up to which there was none, as etcd told it
        self.bookmarks = 0  # how often a bookmark was asked for
        self.cuts = 0  # how often all watches were cut
        self.pages: dict[tuple[str, int], list[Change]] = {}  # lists being read page by page
        self.waiting: list[asyncio.Future[None]] = []

    def snapshot(self, namespace: str, version: int) -> list[Change]:
        """Keep what a list holds now, sorted as etcd sorts it, so that its next pages fit the first."""
        prefix = f"{namespace}/" if namespace else ""
        found = [self.objects[key] for key in sorted(self.objects) if key.startswith(prefix)]
        self.pages[namespace, version] = found
        self.progress = version
        if len(self.pages) > PAGED_LISTS:
            del self.pages[next(iter(self.pages))]
        return found

    def wake(self) -> None:
        """Let every watch look again."""
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def forget(self, count: int) -> None:
        """Drop the oldest writes of the history."""
        if count > 0:
            self.forgotten = self.history[count - 1].version
            del self.history[:count]
            self.first += count


class Cursor:
    """Where one watch stands in a collection's history."""

    def __init__(self, collection: Collection, after: int) -> None:
        if after < collection.forgotten:
            raise Expired(collection.forgotten + 1)
        self._collection = collection
        self._after = after
        self._next = collection.first + bisect_right(collection.history, after, key=lambda change: change.version)
        self._cuts = collection.cuts
        self._bookmarks = collection.bookmarks

    @property
    def cut(self) -> bool:
        """Whether the server ended this watch."""
        return self._collection.cuts != self._cuts

    def pull(self) -> list[Change]:
        """Return the writes since the last call. Raises Expired where some of them are forgotten."""
        collection = self._collection
        if self._next < collection.first:
            raise Expired(collection.forgotten + 1)
        news = collection.history[self._next - collection.first :]
        self._next += len(news)
        # After a restore versions begin below what this watch has seen: it stays silent until they pass it.
        return [change for change in news if change.version > self._after]

    def bookmark_due(self) -> bool:
        """Whether a bookmark was asked for since the last call."""
        due, self._bookmarks = self._collection.bookmarks != self._bookmarks, self._collection.bookmarks
        return due

    def mark(self) -> int | None:
        """Return the version for a bookmark; None while nothing is known beyond where the watch began.

        A real server sends none then either, so that a kind nobody writes can be silent for minutes.
        """
        version = max(self._collection.latest, self._collection.progress)
        return version if version > self._after else None

    async def wait(self, until: float) -> bool:
        """Wait for something to look at, at most until that time of the loop's clock; False when it has come."""
        future = asyncio.get_running_loop().create_future()
        self._collection.waiting.append(future)
        try:
            async with asyncio.timeout_at(until):
                await future
        except TimeoutError:
            return False
        return True
