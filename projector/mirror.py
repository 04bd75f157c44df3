"""What stands in the API server of one kind, as small views: listed, then watched, and listed again when lost.

For counts and records, which are no decisions and stay off the streams; what the binder decides by comes
through ingest alone. A kind that is not served is looked for; what was known of it stays until it is listed.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from binder.kube import ApiError, Kube
from schemas.kinds import Resource
from schemas.objects import rv_after

WATCH_S: Final = (240, 300)
AGAIN_S: Final = (0.5, 30.0)
UNSERVED_S: Final = 5.0
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_GONE: Final = 410

log = structlog.get_logger()


class Mirrored(msgspec.Struct, frozen=True, kw_only=True):
    """What every view here has."""

    name: str
    namespace: str
    uid: str
    rv: str
    deleting: bool = False


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of every object's metadata."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str] | None = None


V = TypeVar("V", bound=Mirrored)
Read = Callable[[msgspec.Raw | bytes], V | None]
"""Reads an object; None for one that does not matter here. Raises `msgspec.DecodeError`, ValueError."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Bare(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_bare = msgspec.json.Decoder(_Bare)


class Mirror(Generic[V]):
    """The objects of one kind as last seen.

    `changed(before, after)` is called within each change, None where it was or is not; `synced` tells that
    everything was listed and the kind is served now, `absent` that it was found not to be served. `on_synced` is
    called after each list, and when the kind is found to be absent.
    """

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        read: Read[V],
        changed: Callable[[V | None, V | None], None],
        on_synced: Callable[[], None] = lambda: None,
    ) -> None:
        self.resource = resource
        self.synced = False
        self.absent = False
        self._kube = kube
        self._read = read
        self._changed = changed
        self._on_synced = on_synced
        self._objects: dict[str, dict[str, V]] = {}
        self._version = ""
        self._failures = 0
        self._complaint = ""

    def get(self, namespace: str, name: str) -> V | None:
        """Return the object as last seen."""
        return self._objects.get(namespace, {}).get(name)

    def within(self, namespace: str) -> list[V]:
        """Return the objects of a namespace, in no order."""
        return list(self._objects.get(namespace, {}).values())

    def everything(self) -> list[V]:
        """Return all objects, in no order."""
        return [view for views in self._objects.values() for view in views.values()]

    def put(self, raw: msgspec.Raw | bytes) -> None:
        """Take in an object: a watch's, or the answer to our own write. An older version changes nothing."""
        bare = _bare.decode(raw).metadata
        known = self.get(bare.namespace, bare.name)
        if known is not None and not rv_after(bare.resource_version, known.rv):
            return
        try:
            view = self._read(raw)
        except (msgspec.DecodeError, ValueError) as error:
            where = f"{self.resource.kind} {bare.namespace}/{bare.name}"
            log.warning("an object can't be read", object=where, problem=str(error), remedy="correct that field")
            view = known if known is not None and known.uid == bare.uid else None
        self._store(bare.namespace, bare.name, view)

    def drop(self, namespace: str, name: str, version: str) -> None:
        """Take an object out that was gone at this version; one that was made after that stays."""
        known = self.get(namespace, name)
        if known is not None and not rv_after(known.rv, version):
            self._store(namespace, name, None)

    def _store(self, namespace: str, name: str, view: V | None) -> None:
        before = self.get(namespace, name)
        if view is not None:
            self._objects.setdefault(namespace, {})[name] = view
        elif before is not None:
            del self._objects[namespace][name]
            if not self._objects[namespace]:
                del self._objects[namespace]
        if before is not view:
            self._changed(before, view)

    async def run(self) -> None:
        """Follow the kind for ever."""
        while True:
            try:
                await self._list()
                while True:
                    await self._watch()
            except ApiError as error:
                await self._pause(error)

    async def _pause(self, error: ApiError) -> None:
        if error.code == _NOT_FOUND:
            # Not served (yet): what is known is no proof of what is gone.
            self.synced, seconds = False, UNSERVED_S
            if not self.absent:
                self.absent = True
                self._on_synced()
        elif error.code == _GONE:
            seconds = AGAIN_S[0]
        else:
            self._failures += 1
            seconds = min(AGAIN_S[0] * 2 ** min(self._failures, 16), AGAIN_S[1])
            # One that broke once is none, and what was said is not said again.
            if self._failures > 1 and str(error) != self._complaint:
                self._complaint = str(error)
                remedy = "grant list and watch on this resource" if error.code == _FORBIDDEN else "trying again"
                log.warning("the API server refused", kind=self.resource.plural, why=str(error), remedy=remedy)
        await asyncio.sleep(seconds * random.uniform(0.5, 1))  # noqa: S311 - spreads load

    async def _list(self) -> None:
        token, version = "", ""
        named: set[tuple[str, str]] = set()
        while not version or token:
            page = await self._kube.list_page(self.resource, continue_token=token)
            version = version or page.resource_version
            token = page.continue_token
            if self._version and rv_after(self._version, version):
                # A restored server counts from below: every object is older than what is known, and yet news.
                self._forget()
            for item in page.items:
                bare = _bare.decode(item).metadata
                named.add((bare.namespace, bare.name))
                known = self.get(bare.namespace, bare.name)
                if known is not None and rv_after(known.rv, bare.resource_version):
                    # Restored with bumped revisions: the list is newer than what is known, and its object older.
                    self.drop(bare.namespace, bare.name, version)
                self.put(item)
        for view in self.everything():
            if (view.namespace, view.name) not in named:
                self.drop(view.namespace, view.name, version)
        self._version = version
        self.synced, self.absent = True, False
        self._on_synced()

    def _forget(self) -> None:
        self._version, self.synced = "", False
        for view in self.everything():
            self._store(view.namespace, view.name, None)

    async def _watch(self) -> None:
        """Hold one watch to its end, then see that the server did not go back behind it. Raises `ApiError`."""
        seconds = random.randint(*WATCH_S)  # noqa: S311 - spreads load
        async for event in self._kube.watch(self.resource, resource_version=self._version, timeout_seconds=seconds):
            bare = _bare.decode(event.object).metadata
            if event.type == "DELETED":
                self.drop(bare.namespace, bare.name, bare.resource_version)
            elif event.type != "BOOKMARK":
                self.put(event.object)
            self._version = bare.resource_version or self._version
            self._follows()
        if rv_after(self._version, (await self._kube.list_page(self.resource, limit=1)).resource_version):
            raise ApiError(_GONE, "Expired", "the API server's versions went back")
        self._follows()
        await asyncio.sleep(AGAIN_S[0])

    def _follows(self) -> None:
        """Take the kind for followed again. That it can be listed is not enough: a watch may be what is refused."""
        self._failures, self._complaint = 0, ""
