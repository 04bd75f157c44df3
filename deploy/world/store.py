"""What the model of the API server remembers: objects, their history, and who watches it.

One counter gives every write its resourceVersion, as etcd does. Stored objects are never changed in
place: a write puts a new one, so that readers, histories and lists may share them.
"""

import hashlib
import uuid
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from deploy.world.history import Change, Collection, Place
from deploy.world.manifests import Obj
from schemas.kinds import Resource

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes' own: no vowels, so that no words come out


class Listener:
    """A part of the world that reacts to writes. Both calls come within the write: note and return."""

    def changed(self, change: Change) -> None:
        """Note one write."""

    def reset(self) -> None:
        """Forget what was noted: the store now holds something else."""


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
        collection.latest = change.version
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
            # The present version itself can still be read.
            collection.pages = {place: page for place, page in collection.pages.items() if place[1] == self.version}

    def bookmark(self) -> None:
        """Send a bookmark down every watch, as far as the newest write of all: what etcd's progress notes do."""
        for collection in self._collections.values():
            collection.bookmarks += 1
            collection.progress = self.version
            collection.wake()

    def cut(self) -> None:
        """End every watch, as a restarting server does."""
        for collection in self._collections.values():
            collection.cuts += 1
            collection.wake()

    def backup(self) -> Backup:
        """Return what a restore brings back."""
        return Backup(self.version, {place: dict(c.objects) for place, c in self._collections.items()})

    def restore(self, backup: Backup, *, bump: int = 0) -> None:
        """Go back to a backup: versions start again from there, watches are cut, history is gone (T12).

        `bump`: so much higher, while each object keeps the version that it had, as `etcdutl snapshot restore
        --bump-revision` does it.
        """
        self.version = backup.version + bump
        self._by_uid.clear()
        self._dependents.clear()
        for place, collection in self._collections.items():
            collection.forget(len(collection.history))
            collection.forgotten = self.version
            collection.latest = collection.progress = 0
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
