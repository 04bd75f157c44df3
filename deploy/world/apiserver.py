"""The API server of the model world: what the real one does with a request, in memory and without chance.

It keeps the promises of `Kube`; the contract tests run against it and against a real server. Not
modelled: schemas (register a `Rule` where one matters), field ownership (an apply is a merge), RBAC,
quotas, priority and fairness.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Self

import msgspec
from typing_extensions import override

from binder.kube import ApiError, Kube, ListPage, PatchKind, WatchEvent
from deploy.world import refusals
from deploy.world.admission import Admission, Asked, Hook
from deploy.world.clock import Clock, WallClock
from deploy.world.history import Change, Cursor, Expired
from deploy.world.manifests import Obj
from deploy.world.store import Store
from deploy.world.traits import every_resource
from deploy.world.validation import Rule
from deploy.world.writes import Writes, body_of, patched
from schemas.kinds import Resource

SCALE = Resource("autoscaling", "v1", "scales", "Scale", namespaced=True)
ADMIN = "kubernetes-admin"
BOOKMARK_BEFORE_END = 2.0
TIMER_GRAIN = 0.001
"""Timers may fire a moment early; where time stands still between them, waiting for that moment would never end."""


class ApiServer(Kube):
    """`ApiServer(clock=..., seed=...)`: a model server, ready at once, with the namespaces of a fresh cluster.

    `clock` stamps objects (default: the wall's). `seed` picks uids and generated names. `resources`:
    what is served at first (default: all that `schemas.kinds` names); `serve` and `withdraw` change it.
    `history`: remembered writes per resource. `bookmark_seconds`: how often a watch gets a bookmark, on the
    event loop's clock; one more comes 2 s before its end. As on a real server a bookmark tells of writes to
    this resource only, and none comes while there were none since the watch began.

    `store` is open to the other parts of the world (`deploy.world.collector`, `deploy.world.scheduler`)
    and to tests: `store.compact()`, `cut()`, `bookmark()`, `backup()` and `restore()` are its faults.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        seed: str = "",
        resources: Iterable[Resource] | None = None,
        history: int = 10_000,
        bookmark_seconds: float = 60.0,
    ) -> None:
        self.store = Store(seed=seed, history=history)
        self._admission = Admission(self.store.new_uid)
        self.writes = Writes(self.store, self._admission, clock or WallClock())
        for resource in every_resource() if resources is None else resources:
            self.serve(resource)
        self._bookmark_seconds = bookmark_seconds
        self.be(ADMIN, ("system:masters",))
        for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
            self.writes.seed_namespace(name)

    def as_user(self, name: str, *groups: str) -> Self:
        """Return the same server as this user sees it: who asks shows in admission reviews."""
        door = copy.copy(self)
        door.be(name, groups)
        return door

    def be(self, name: str, groups: tuple[str, ...]) -> None:
        """Ask as this user from now on."""
        self._user = name
        self._groups = (*groups, "system:authenticated")

    def serve(self, resource: Resource) -> None:
        """Serve a resource from now on; what it held before is there again."""
        self.writes.served[resource.group, resource.plural] = resource

    def withdraw(self, resource: Resource) -> None:
        """Answer 404 for a resource from now on and end its watches, as when its CRD goes."""
        self.writes.served.pop((resource.group, resource.plural), None)
        collection = self.store.collection(resource)
        collection.cuts += 1
        collection.wake()

    def admit(self, hook: Hook) -> None:
        """Register an admission hook."""
        self._admission.register(hook)

    def unadmit(self, name: str) -> None:
        """Take an admission hook away."""
        self._admission.withdraw(name)

    def rule(self, resource: Resource, rule: Rule) -> None:
        """Refuse writes of this resource that the rule finds something wrong with: what a CRD's schema does."""
        self.writes.rules.setdefault(resource.kind, []).append(rule)

    def default(self, resource: Resource, fill: Callable[[Obj], Obj]) -> None:
        """Pass every written object of this resource through `fill`: what a CRD's defaults do."""
        self.writes.defaults.setdefault(resource.kind, []).append(fill)

    @override
    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        return self.writes.found(resource, namespace, name).raw

    @override
    async def list_page(
        self, resource: Resource, *, namespace: str = "", limit: int = 500, continue_token: str = ""
    ) -> ListPage:
        self.writes.check_served(resource)
        collection = self.store.collection(resource)
        if continue_token:
            version, start = _token(continue_token)
            if (namespace, version) not in collection.pages:
                raise refusals.list_expired()
            found = collection.pages[namespace, version]
        else:
            version, start = self.store.version, 0
            found = collection.snapshot(namespace, version)
        found = [change for change in found if _carries(resource, change.object)]
        end = start + limit if limit > 0 else len(found)
        following = f"{version}.{end}" if end < len(found) else ""
        custom = self.writes.traits(resource).custom
        items = tuple(_item(change, custom=custom) for change in found[start:end])
        return ListPage(items, str(version), following)

    @override
    async def watch(
        self, resource: Resource, *, resource_version: str, timeout_seconds: int, namespace: str = ""
    ) -> AsyncIterator[WatchEvent]:
        self.writes.check_served(resource)
        collection = self.store.collection(resource)
        prefix = f"{namespace}/" if namespace else ""
        after = _version(resource_version)
        if not after:  # from anywhere: what there is comes first
            after = self.store.version
            for change in collection.snapshot(namespace, after):
                if not _carries(resource, change.object):
                    continue
                yield WatchEvent("ADDED", msgspec.Raw(change.raw))
        try:
            cursor = Cursor(collection, after)
            async for news in self._follow(cursor, asyncio.get_running_loop().time() + timeout_seconds):
                if isinstance(news, int):
                    yield WatchEvent("BOOKMARK", _bookmark(resource, news))
                elif news.key.startswith(prefix) and (kind := _shown_as(resource, news)):
                    yield WatchEvent(kind, msgspec.Raw(news.raw))
        except Expired as expired:
            raise refusals.expired(after, expired.oldest) from expired

    async def _follow(self, cursor: Cursor, end: float) -> AsyncIterator[Change | int]:
        """Yield writes as they come, and versions for bookmarks: when asked for, now and then, just before the end."""
        loop = asyncio.get_running_loop()
        last_mark = end - BOOKMARK_BEFORE_END
        due = min(loop.time() + self._bookmark_seconds, last_mark)
        while not cursor.cut:
            news = cursor.pull()
            for change in news:
                yield change
            if news or cursor.cut:
                continue  # something may have been written while the consumer had the last one
            now = loop.time() + TIMER_GRAIN
            if now >= end:
                return
            if cursor.bookmark_due() or now >= due:
                due = min(now + self._bookmark_seconds, last_mark) if now < last_mark else end
                if (mark := cursor.mark()) is not None:
                    yield mark
                    continue
            await cursor.wait(min(end, due))

    @override
    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        new = body_of(resource, body)
        asked = self._asked("CREATE", resource, namespace, new["metadata"].get("name", ""), dry_run=dry_run)
        return await self.writes.create(asked, new)

    @override
    async def replace(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, subresource: str = ""
    ) -> bytes:
        new = body_of(SCALE if subresource == "scale" else resource, body)
        asked = self._asked("UPDATE", resource, namespace, name, subresource=subresource)
        return await self.writes.update(asked, lambda _old: new)

    @override
    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        kind: PatchKind,
        subresource: str = "",
    ) -> bytes:
        asked = self._asked("UPDATE", resource, namespace, name, subresource=subresource)
        if kind is PatchKind.APPLY and not subresource:
            try:
                self.writes.found(resource, namespace, name)
            except ApiError as error:
                if error.code != 404:
                    raise
                new = body_of(resource, body)
                return await self.writes.create(self._asked("CREATE", resource, namespace, name), new)
        return await self.writes.update(asked, lambda old: patched(old, body, kind), patch=True)

    @override
    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        asked = self._asked("DELETE", resource, namespace, name)
        await self.writes.delete(asked, uid=uid, version=resource_version, grace=grace_seconds)

    @override
    async def close(self) -> None:
        """Do nothing: the model has no connections."""

    def _asked(
        self,
        operation: str,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Asked:
        return Asked(operation, resource, namespace, name, self._user, self._groups, subresource, dry_run)


def _carries(resource: Resource, obj: Obj | None) -> bool:
    labelled = resource.labelled
    return obj is not None and (not labelled or labelled in (obj["metadata"].get("labels") or {}))


def _shown_as(resource: Resource, change: Change) -> str:
    """Return how a watch of labelled objects shows a write, '' where it shows nothing."""
    before, after = _carries(resource, change.before), _carries(resource, change.object)
    if not resource.labelled or change.type == "DELETED":
        return change.type if after or before else ""
    if not after:
        return "DELETED" if before else ""
    return "MODIFIED" if before else "ADDED"


def _item(change: Change, *, custom: bool) -> msgspec.Raw:
    """Return the object as an item of a list: there the built-in kinds don't repeat what they are."""
    if custom:
        return msgspec.Raw(change.raw)
    head = msgspec.json.encode({"apiVersion": change.resource.api_version, "kind": change.resource.kind})
    return msgspec.Raw(b"{" + change.raw[len(head) :])


def _bookmark(resource: Resource, version: int) -> msgspec.Raw:
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return msgspec.Raw(msgspec.json.encode(head | {"metadata": {"resourceVersion": str(version)}}))


def _token(text: str) -> tuple[int, int]:
    version, dot, start = text.partition(".")
    if not dot or not version.isdigit() or not start.isdigit():
        raise refusals.bad_request("invalid continue token")
    return int(version), int(start)


def _version(text: str) -> int:
    if text and not text.isdigit():
        raise ApiError(500, "InternalError", "resourceVersion: Invalid value")
    return int(text or "0")
