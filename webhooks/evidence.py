"""What a decision leans on, read fresh from the API server for each request, never from a cache (A8, T15).

Requests that ask at the same moment share one read, which began after all of them asked.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from binder.deep import deeply
from binder.kube import ApiError, Kube, find
from binder.rules.gpu_sets import MODE_VGPU
from schemas import names
from schemas.entries import ClaimEntry, ClassEntry, MalformedEntries, is_object_name, parse_entries
from schemas.events import Writable
from schemas.kinds import CONFIGMAP, GPU_CLAIM, GPU_CLASS, KUBEVIRT, NAMESPACE, Resource
from schemas.objects import ClaimView, ClassView, Foreseen, Gone, KubeVirtView, NamespaceView
from webhooks.reviews import UNREADABLE, TurnedAway
from webhooks.shared_reads import SharedRead

PAGES_MAX = 20
KEPT_MAX = 256
"""Reads that others may share, by name; more are kept while somebody waits for them."""


class Readers(msgspec.Struct, frozen=True):
    """How objects become views: the same functions that ingest reads them with, so that both see alike (T15).

    Each may raise `ValueError` or what a decoder raises. `declaring`: of what declares units, by plural; `Gone` where
    an object does not refer to GPUs.
    """

    gpu_class: Callable[[msgspec.Raw | bytes], ClassView]
    kubevirt: Callable[[msgspec.Raw | bytes], KubeVirtView]
    gpu_claim: Callable[[msgspec.Raw | bytes], ClaimView]
    start: Callable[[msgspec.Raw | bytes], Foreseen]
    namespace: Callable[[msgspec.Raw | bytes], NamespaceView]
    declaring: dict[str, Callable[[msgspec.Raw | bytes], Writable | Gone]]


class Named(msgspec.Struct, frozen=True):
    """The classes and the held claims that an annotation names, in its order."""

    classes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True):
    """What was read, in the order asked for, and the names that do not exist; KubeVirt's own resource, if any.

    `classes`: those named, those of the claims named, those of other resources. `home`: the namespace itself, where
    one of the classes is of vGPUs: nothing else is asked of it (A5).
    """

    classes: tuple[ClassView, ...] = ()
    missing: tuple[str, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    missing_claims: tuple[str, ...] = ()
    kubevirt: KubeVirtView | None = None
    home: NamespaceView | None = None


def named_in(gpus: str) -> Named:
    """Return what the annotation names: nothing where it can't be read, which a rule will say."""
    try:
        entries = parse_entries(gpus)
    except MalformedEntries:
        return Named()
    return Named(
        tuple(entry.class_name for entry in entries if isinstance(entry, ClassEntry)),
        tuple(entry.claim_name for entry in entries if isinstance(entry, ClaimEntry)),
    )


class FreshReads:
    """Reads evidence within `timeout_s` seconds. Raises `TurnedAway` where the API server can't be asked.

    `took` is told how many seconds each reading took.
    """

    def __init__(self, kube: Kube, readers: Readers, *, timeout_s: float, took: Callable[[float], None]) -> None:
        self._kube, self._readers, self._timeout_s, self._took = kube, readers, timeout_s, took
        self._kubevirts = SharedRead(self._kubevirt)
        self._kubevirt_at: tuple[str, str] | None = None
        self._lists_alone = False
        self._all_classes = SharedRead(lambda: self._list(GPU_CLASS))
        self._classes: dict[str, SharedRead[ClassView | None]] = {}
        self._homes: dict[str, SharedRead[NamespaceView | None]] = {}

    async def read(
        self, namespace: str, named: Named, resources: tuple[str, ...], deadline: float, *, entitled: bool = True
    ) -> Evidence:
        """Read what is named and KubeVirt's resource side by side; `deadline` is in the loop's time.

        Claims are looked for in `namespace`. Where a request names `resources` of its own, all classes are
        listed to see whose they are. `entitled`: read the namespace too where it must be allowed to have vGPUs.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with self._in_time(deadline):
            kubevirts, every = self._kubevirts.asked(), self._all_classes.asked() if resources else None
            try:
                (classes, claims), home = await self._asked(namespace, named, entitled=entitled)
                kubevirt, rivals = await kubevirts, self._owners(resources, await every if every is not None else [])
            finally:
                _leave(kubevirts, every)
        self._took(loop.time() - began)
        there = tuple(view for view in classes.values() if view is not None)
        return Evidence(
            classes=there + tuple(view for view in rivals if view.name not in classes),
            missing=tuple(name for name, view in classes.items() if view is None),
            claims=tuple(view for view in claims.values() if view is not None),
            missing_claims=tuple(name for name, view in claims.items() if view is None),
            kubevirt=kubevirt,
            home=home,
        )

    def foreseen(self, vmi: msgspec.Raw) -> Foreseen:
        """Return what a VMI says of its launcher. Raises `TurnedAway` where it can't be read."""
        return _view(self._readers.start, vmi, "the VirtualMachineInstance")

    async def owner(self, resource: Resource, namespace: str, name: str, deadline: float) -> Writable | Gone | None:
        """Read what declares units, as it stands: the owner of a Scale; None where it is not there (T20)."""
        async with self._in_time(deadline):
            body = await find(self._kube, resource, namespace, name)
        return self.declared(resource.plural, body) if body is not None else None

    def declared(self, plural: str, body: msgspec.Raw | bytes) -> Writable | Gone:
        """Read what declares units from an object under review. Raises `TurnedAway`."""
        return _view(self._readers.declaring[plural], body, f"the object of the kind {plural}")

    async def settings(self, namespace: str, deadline: float) -> dict[str, str]:
        """Read the settings that policies take as their parameter; none where there are none."""
        async with self._in_time(deadline):
            body = await find(self._kube, CONFIGMAP, namespace, names.SETTINGS_CONFIGMAP)
        return _view(_settings.decode, body, "the settings").data or {} if body is not None else {}

    @asynccontextmanager
    async def _in_time(self, deadline: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(min(deadline, asyncio.get_running_loop().time() + self._timeout_s)):
                yield
        except TimeoutError:
            raise _unread("the API server did not answer in time") from None
        except ApiError as error:
            why = f"{error.code} {error.reason}" if error.code else "it could not be reached"
            raise _unread(f"the API server did not give them out ({why})") from None

    async def _asked(
        self, namespace: str, named: Named, *, entitled: bool
    ) -> tuple[tuple[dict[str, ClassView | None], dict[str, ClaimView | None]], NamespaceView | None]:
        """Read what is named, then the namespace if a class of vGPUs is among it: no other class asks for it."""
        entries = await self._entries(namespace, named)
        if not entitled or all(view is None or view.mode != MODE_VGPU for view in entries[0].values()):
            return entries, None
        return entries, await _shared(self._homes, namespace, self._home).get()

    async def _home(self, namespace: str) -> NamespaceView | None:
        """Read the namespace itself, for what it may have (A5)."""
        body = await find(self._kube, NAMESPACE, "", namespace)
        return _view(self._readers.namespace, body, f"namespace {namespace}") if body is not None else None

    async def _entries(
        self, namespace: str, named: Named
    ) -> tuple[dict[str, ClassView | None], dict[str, ClaimView | None]]:
        """Read classes and claims side by side, then the claims' own classes; None stands for what does not exist."""
        if not named.claims:
            return await self._by_name(named.classes), {}
        classes, found = await asyncio.gather(
            self._by_name(named.classes), asyncio.gather(*(self._claim(namespace, name) for name in named.claims))
        )
        claims = dict(zip(named.claims, found, strict=True))
        theirs = dict.fromkeys(claim.class_name for claim in found if claim is not None)
        return classes | await self._by_name([name for name in theirs if name not in classes]), claims

    async def _by_name(self, classes: Iterable[str]) -> dict[str, ClassView | None]:
        found: dict[str, ClassView | None] = dict.fromkeys(classes)
        # Claims are the tenants': what can't be a name is looked for nowhere, and is part of no path.
        named = [name for name in found if is_object_name(name)]
        views = await asyncio.gather(*(_shared(self._classes, name, self._class).asked() for name in named))
        return found | dict(zip(named, views, strict=True))

    async def _class(self, name: str) -> ClassView | None:
        body = await find(self._kube, GPU_CLASS, "", name)
        return _view(self._readers.gpu_class, body, f"GPUClass {name}") if body is not None else None

    async def _claim(self, namespace: str, name: str) -> ClaimView | None:
        body = await find(self._kube, GPU_CLAIM, namespace, name)
        return _view(self._readers.gpu_claim, body, f"GPUClaim {namespace}/{name}") if body is not None else None

    def _owners(self, resources: tuple[str, ...], items: Iterable[msgspec.Raw]) -> tuple[ClassView, ...]:
        views = [_view(self._readers.gpu_class, item, "a GPUClass") for item in items]
        return tuple(sorted((v for v in views if v.resource in resources), key=lambda v: v.name))

    async def _kubevirt(self) -> KubeVirtView | None:
        """Read the resource that was found last, and look for another where it is gone, or going.

        Both are reads of this moment. One object comes straight from etcd; a list may wait until the API server's cache
        is known to be as new as that (measured on a busy machine, once each: 45 ms at the median for the list, 5 for
        the object).
        """
        if self._kubevirt_at is not None and not self._lists_alone:
            body = await self._here(*self._kubevirt_at)
            view = _view(self._readers.kubevirt, body, "the KubeVirt resource") if body is not None else None
            if view is not None and not view.deleting:
                return view
        found = await self._found_kubevirt()
        self._kubevirt_at = (found.namespace, found.name) if found is not None else None
        return found

    async def _here(self, namespace: str, name: str) -> bytes | None:
        """Return the resource of this name; None from now on where we may list alone."""
        try:
            return await find(self._kube, KUBEVIRT, namespace, name)
        except ApiError as error:
            if error.code != HTTPStatus.FORBIDDEN:
                raise
            self._lists_alone = True
            return None

    async def _found_kubevirt(self) -> KubeVirtView | None:
        views = [_view(self._readers.kubevirt, item, "the KubeVirt resource") for item in await self._list(KUBEVIRT)]
        # KubeVirt's operator serves one only; of several it takes none into account but the first.
        return min(views, key=lambda view: (view.deleting, view.namespace, view.name), default=None)

    async def _list(self, resource: Resource) -> list[msgspec.Raw]:
        items: list[msgspec.Raw] = []
        token = ""
        for _ in range(PAGES_MAX):
            try:
                page = await self._kube.list_page(resource, continue_token=token)
            except ApiError as error:
                if error.code == HTTPStatus.NOT_FOUND and not token:
                    return []
                raise
            items.extend(page.items)
            token = page.continue_token
            if not token:
                return items
        raise _unread(f"there are too many objects of the kind {resource.kind}")


class _Settings(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


_settings = msgspec.json.Decoder(_Settings)
_V = TypeVar("_V")


def _shared(kept: dict[str, SharedRead[_V]], name: str, read: Callable[[str], Awaitable[_V]]) -> SharedRead[_V]:
    """Return the read of that name which others may share."""
    if name not in kept:
        # Names come from tenants: of what nobody waits for, little is kept. Not nothing: who asks for several at once
        # has asked for none of them yet when the next one is looked up here.
        idle = [known for known, shared in kept.items() if shared.idle] if len(kept) >= KEPT_MAX else []
        for known in idle[: len(kept) - KEPT_MAX + 1]:
            del kept[known]
        kept[name] = SharedRead(lambda: read(name))
    return kept[name]


def _view(read: Callable[[msgspec.Raw | bytes], _V], body: msgspec.Raw | bytes, what: str) -> _V:
    try:
        return deeply(read, body)
    except (ValueError, *UNREADABLE) as error:
        raise _unread(f"{what} can't be read: {error}") from None


def _leave(*asked: asyncio.Future[Any] | None) -> None:
    """Wait for these no longer; what they may have ended of is looked at, so that it is not reported as forgotten."""
    for one in asked:
        if one is not None and not one.cancel() and not one.cancelled():
            one.exception()


def _unread(why: str) -> TurnedAway:
    return TurnedAway(
        "unanswered",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "EvidenceUnavailable",
        f"the GPU classes, claims and the KubeVirt resource that decide on this could not be read, {why}: try again",
    )
