"""A controller's cache of one kind: list once, follow the watch, list again when it is lost.

Answers to our own writes go in at once (`put`), so that a controller reads what it wrote; an older
watch event that comes after them changes nothing.
"""

from collections.abc import Callable, Iterator

import structlog

from binder.kube import ApiError, Kube
from deploy.world.clock import Clock
from deploy.world.manifests import Obj, controller_of, decode, key_of, meta
from schemas.kinds import Resource
from schemas.objects import rv_after

WATCH_S = 300
AGAIN_S = 0.5
GONE_REMEMBERED = 10_000

_log = structlog.get_logger(__name__)

Listener = Callable[[Obj | None, Obj | None], None]
"""Told the object before and after: None where it did not exist or is gone."""


class Informer:
    """The objects of one kind as last seen. `optional`: a kind that is not served is simply empty."""

    def __init__(
        self, kube: Kube, resource: Resource, clock: Clock, *, namespace: str = "", optional: bool = False
    ) -> None:
        self.resource = resource
        self._kube = kube
        self._clock = clock
        self._namespace = namespace
        self._optional = optional
        self._objects: dict[str, Obj] = {}
        self._owned: dict[str, dict[str, None]] = {}
        self._gone: dict[str, None] = {}
        self._listeners: list[Listener] = []
        self._newest = ""
        self._started_anew = False

    def start_anew(self) -> None:
        """Forget at the next list what is known, as a controller that was restarted: the server may have gone back."""
        self._started_anew = True

    def listen(self, listener: Listener) -> None:
        """Have the listener told of every change from now on."""
        self._listeners.append(listener)

    def get(self, namespace: str, name: str) -> Obj | None:
        """Return the object as last seen. It is shared: copy it before changing it."""
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def at(self, key: str) -> Obj | None:
        """Return the object under its key, as `get`."""
        return self._objects.get(key)

    def __iter__(self) -> Iterator[Obj]:
        return iter(list(self._objects.values()))

    def owned(self, uid: str) -> list[Obj]:
        """Return the objects controlled by the owner with that uid."""
        return [self._objects[key] for key in self._owned.get(uid, ())]

    def put(self, obj: Obj) -> None:
        """Take in an object: a watch event's, or the answer to our own write."""
        uid = meta(obj).get("uid", "")
        key = key_of(obj)
        old = self._objects.get(key)
        if uid in self._gone or (old is not None and not rv_after(_version(obj), _version(old))):
            return
        if old is not None:
            self._disown(old)
        self._objects[key] = obj
        owner = controller_of(obj)
        if owner is not None:
            self._owned.setdefault(owner["uid"], {})[key] = None
        self._tell(old, obj)

    def drop(self, obj: Obj) -> None:
        """Take an object out: the watch said so, or a list no longer shows it."""
        key = key_of(obj)
        self._gone[meta(obj)["uid"]] = None
        if len(self._gone) > GONE_REMEMBERED:
            self._gone.pop(next(iter(self._gone)))
        old = self._objects.get(key)
        if old is None or meta(old)["uid"] != meta(obj)["uid"]:
            return
        self._disown(old)
        del self._objects[key]
        self._tell(obj, None)

    def _disown(self, obj: Obj) -> None:
        owner = controller_of(obj)
        if owner is None:
            return
        keys = self._owned.get(owner["uid"], {})
        keys.pop(key_of(obj), None)
        if not keys:
            self._owned.pop(owner["uid"], None)

    def _tell(self, old: Obj | None, new: Obj | None) -> None:
        for listener in self._listeners:
            listener(old, new)

    async def sync(self) -> str:
        """List everything and return the list's version; '' where the kind is not served."""
        listed: dict[str, Obj] = {}
        token = ""
        while True:
            try:
                page = await self._kube.list_page(self.resource, namespace=self._namespace, continue_token=token)
            except ApiError as error:
                if self._optional and error.code == 404:
                    return ""
                raise
            for raw in page.items:
                obj = decode(raw)
                # Items of a list of built-in objects carry no kind of their own.
                obj.setdefault("apiVersion", self.resource.api_version)
                obj.setdefault("kind", self.resource.kind)
                listed[key_of(obj)] = obj
            token = page.continue_token
            if not token:
                break
        if self._started_anew or rv_after(self._newest, page.resource_version):
            self._started_anew = False
            # The server came back from a backup: its versions begin anew, and what we knew is of another time.
            gone, self._objects, self._owned, self._gone = self._objects, {}, {}, {}
            for key in [key for key in gone if key not in listed]:
                self._tell(gone[key], None)
        self._newest = page.resource_version
        for obj in listed.values():
            self.put(obj)
        for key in [key for key in self._objects if key not in listed]:
            if not rv_after(_version(self._objects[key]), page.resource_version):
                self.drop(self._objects[key])
        return page.resource_version

    async def run(self, version: str) -> None:
        """Follow the watch from a version on, for ever; what can't be followed is listed again."""
        while True:
            try:
                version = version or await self.sync()
                if version:
                    async for event in self._kube.watch(
                        self.resource, resource_version=version, timeout_seconds=WATCH_S, namespace=self._namespace
                    ):
                        obj = decode(event.object)
                        self._newest = version = _version(obj)
                        if event.type == "DELETED":
                            self.drop(obj)
                        elif event.type != "BOOKMARK":
                            self.put(obj)
                    # A server back from a backup keeps silent about versions below: look whether they are.
                    head = await self._kube.list_page(self.resource, namespace=self._namespace, limit=1)
                    went_back = self._started_anew or rv_after(version, head.resource_version)
                    version = "" if went_back else version
                    continue
            except ApiError as error:
                _log.debug("world.watch_lost", kind=self.resource.kind, code=error.code, namespace=self._namespace)
                version = ""
            await self._clock.sleep(AGAIN_S)


def _version(obj: Obj) -> str:
    return str(meta(obj).get("resourceVersion", ""))
