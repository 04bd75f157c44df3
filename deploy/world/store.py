"""What the model of the API server remembers: objects, their history, and who watches it.

One counter gives every write its resourceVersion, as etcd does. Stored objects are never changed in
place: a write puts a new one, so that readers, histories and lists may share them.
"""

import asyncio
import hashlib
import uuid
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from deploy.world.manifests import Obj
from schemas.kinds import Resource

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes' own: no vowels, so that no words come out

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


class Listener:
    """A part of the world that reacts to writes. Both calls come within the write: note and return."""

    def changed(self, change: Change) -> None:
        """Note one write."""

    def reset(self) -> None:
        """Forget what was noted: the store now holds something else."""


class Collection:
    """The objects of one resource by `namespace/name`, and the writes that are still remembered."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.objects: dict[str, Change] = {}
        self.history: list[Change] = []
        self.first = 0  # how many writes were dropped before history[0]
        self.forgotten = 0  # the newest version among them
        self.bookmarks = 0  # how often a bookmark was asked for
        self.cuts = 0  # how often all watches were cut
        self.pages: dict[tuple[str, int], list[Change]] = {}  # lists being read page by page
        self.waiting: list[asyncio.Future[None]] = []

    def snapshot(self, namespace: str, version: int) -> list[Change]:
        """Keep what a list holds now, sorted as etcd sorts it, so that its next pages fit the first."""
        prefix = f"{namespace}/" if namespace else ""
        found = [self.objects[key] for key in sorted(self.objects) if key.startswith(prefix)]
        self.pages[namespace, version] = found
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


class Backup(NamedTuple):
    """What a backup of etcd holds."""

    version: int
    objects: dict[Place, dict[str, Change]]


class Store:
    """All collections under one counter. `history`: remembered writes per collection. `seed`: of uids and suffixes."""

    def __init__(self, *, seed: str = "", history: int = 10_000) -> None:
        self.version = 1
        self._seed = seed
        self._drawn = 0
        self._most = history
        self._collections: dict[Place, Collection] = {}
        self._listeners: list[Listener] = []
        self._by_uid: dict[str, tuple[Resource, str]] = {}
        self._dependents: dict[str, dict[tuple[Place, str], Resource]] = {}

    def collection(self, resource: Resource) -> Collection:
        """Return a resource's collection, made when first asked for."""
        place = (resource.group, resource.plural)
        if place not in self._collections:
            self._collections[place] = Collection(resource)
        return self._collections[place]

    def listen(self, listener: Listener) -> None:
        """Tell the listener of every write from now on."""
        self._listeners.append(listener)

    def get(self, resource: Resource, key: str) -> Change | None:
        """Return the object's newest write, or None where it isn't."""
        return self.collection(resource).objects.get(key)

    def everything(self) -> Iterator[Change]:
        """Walk over every object, collection by collection."""
        for collection in list(self._collections.values()):
            yield from list(collection.objects.values())

    def by_uid(self, uid: str) -> tuple[Resource, str] | None:
        """Return where the object with that uid is."""
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[tuple[Resource, str]]:
        """Return the objects that name this uid as an owner, in the order they did."""
        return [(resource, key) for (_, key), resource in self._dependents.get(uid, {}).items()]

    def put(self, resource: Resource, key: str, obj: Obj) -> Change:
        """Store an object under the next version, which is written into it."""
        old = self.get(resource, key)
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        # Kind first: lists of built-in kinds leave these two out, and cut them off the front.
        whole = {"apiVersion": resource.api_version, "kind": resource.kind} | obj
        change = Change(
            self.version,
            "MODIFIED" if old else "ADDED",
            resource,
            key,
            whole,
            msgspec.json.encode(whole),
            old.object if old else None,
        )
        if old is not None:
            self._unindex(old)
        self.collection(resource).objects[key] = change
        self._index(change)
        self._record(change)
        return change

    def remove(self, resource: Resource, key: str) -> Change:
        """Take an object out; watches get its last state under the version of its removal."""
        old = self.collection(resource).objects.pop(key)
        self._unindex(old)
        self.version += 1
        last = old.object | {"metadata": old.object["metadata"] | {"resourceVersion": str(self.version)}}
        change = Change(self.version, "DELETED", resource, key, last, msgspec.json.encode(last), old.object)
        self._record(change)
        return change

    def _record(self, change: Change) -> None:
        collection = self.collection(change.resource)
        collection.history.append(change)
        if len(collection.history) > 2 * self._most:
            collection.forget(len(collection.history) - self._most)
        for listener in self._listeners:
            listener.changed(change)
        collection.wake()

    def _index(self, change: Change) -> None:
        meta = change.object["metadata"]
        self._by_uid[meta["uid"]] = (change.resource, change.key)
        place = (change.resource.group, change.resource.plural)
        for owner in meta.get("ownerReferences") or ():
            self._dependents.setdefault(owner["uid"], {})[place, change.key] = change.resource

    def _unindex(self, change: Change) -> None:
        meta = change.object["metadata"]
        self._by_uid.pop(meta["uid"], None)
        place = (change.resource.group, change.resource.plural)
        for owner in meta.get("ownerReferences") or ():
            named = self._dependents.get(owner["uid"], {})
            named.pop((place, change.key), None)
            if not named:
                self._dependents.pop(owner["uid"], None)

    def compact(self) -> None:
        """Forget every write: watches and continued lists from older versions are answered 410 from now on."""
        for collection in self._collections.values():
            collection.forget(len(collection.history))
            collection.forgotten = self.version
            collection.pages.clear()

    def bookmark(self) -> None:
        """Send a bookmark down every watch."""
        for collection in self._collections.values():
            collection.bookmarks += 1
            collection.wake()

    def cut(self) -> None:
        """End every watch, as a restarting server does."""
        for collection in self._collections.values():
            collection.cuts += 1
            collection.wake()

    def backup(self) -> Backup:
        """Return what a restore brings back."""
        return Backup(self.version, {place: dict(c.objects) for place, c in self._collections.items()})

    def restore(self, backup: Backup) -> None:
        """Go back to a backup: versions start again from there, watches are cut, history is gone (T12)."""
        self.version = backup.version
        self._by_uid.clear()
        self._dependents.clear()
        for place, collection in self._collections.items():
            collection.forget(len(collection.history))
            collection.forgotten = backup.version
            collection.pages.clear()
            collection.objects = dict(backup.objects.get(place, {}))
            for change in collection.objects.values():
                self._index(change)
        for listener in self._listeners:
            listener.reset()
        self.cut()

    def new_uid(self) -> str:
        """Return the next uid: of the form of a random one, but a function of the seed and its place in line."""
        return str(uuid.UUID(bytes=self._draw()[:16], version=4))

    def new_suffix(self) -> str:
        """Return the next five letters for a generated name."""
        return "".join(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in self._draw()[:5])

    def _draw(self) -> bytes:
        # A restore does not take the count back: nothing gets a uid that once was somebody else's.
        self._drawn += 1
        return hashlib.sha256(f"{self._seed}/{self._drawn}".encode()).digest()
