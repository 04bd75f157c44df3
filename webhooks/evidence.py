"""What a decision leans on, read fresh from the API server for each request, never from a cache (A8, T15).

Requests that ask at the same moment share one read, which began after all of them asked.
"""

import asyncio
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TypeVar

import msgspec

from binder.kube import ApiError, Kube
from schemas.entries import ClaimEntry, ClassEntry, MalformedEntries, parse_entries
from schemas.kinds import GPU_CLAIM, GPU_CLASS, KUBEVIRT, Resource
from schemas.objects import ClaimView, ClassView, KubeVirtView
from webhooks.reviews import UNREADABLE, TurnedAway
from webhooks.shared_reads import SharedRead

PAGES_MAX = 20


class Readers(msgspec.Struct, frozen=True):
    """How objects become views: the same functions that ingest reads them with, so that both see alike (T15).

    Each may raise `ValueError` or what a decoder raises.
    """

    gpu_class: Callable[[msgspec.Raw | bytes], ClassView]
    kubevirt: Callable[[msgspec.Raw | bytes], KubeVirtView]
    gpu_claim: Callable[[msgspec.Raw | bytes], ClaimView]


class Named(msgspec.Struct, frozen=True):
    """The classes and the held claims that an annotation names, in its order."""

    classes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True):
    """What was read, in the order asked for, and the names that do not exist; KubeVirt's own resource, if any.

    `classes`: those named, those of the claims named, those of other resources.
    """

    classes: tuple[ClassView, ...] = ()
    missing: tuple[str, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    missing_claims: tuple[str, ...] = ()
    kubevirt: KubeVirtView | None = None


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
        self._home: tuple[str, str] | None = None
        self._all_classes = SharedRead(lambda: self._list(GPU_CLASS))
        self._classes: dict[str, SharedRead[ClassView | None]] = {}

    async def read(self, namespace: str, named: Named, resources: tuple[str, ...], deadline: float) -> Evidence:
        """Read what is named and KubeVirt's resource side by side; `deadline` is in the loop's time.

        Claims are looked for in `namespace`. Where a request names `resources` of its own, all classes are
        listed to see whose they are.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout_at(min(deadline, began + self._timeout_s)):
                (classes, claims), kubevirt, rivals = await asyncio.gather(
                    self._entries(namespace, named), self._kubevirts.get(), self._owners(resources)
                )
        except TimeoutError:
            raise _unread("the API server did not answer in time") from None
        except ApiError as error:
            why = f"{error.code} {error.reason}" if error.code else "it could not be reached"
            raise _unread(f"the API server did not give them out ({why})") from None
        self._took(loop.time() - began)
        there = tuple(view for view in classes.values() if view is not None)
        return Evidence(
            classes=there + tuple(view for view in rivals if view.name not in classes),
            missing=tuple(name for name, view in classes.items() if view is None),
            claims=tuple(view for view in claims.values() if view is not None),
            missing_claims=tuple(name for name, view in claims.items() if view is None),
            kubevirt=kubevirt,
        )

    async def _entries(
        self, namespace: str, named: Named
    ) -> tuple[dict[str, ClassView | None], dict[str, ClaimView | None]]:
        """Read classes and claims side by side, then the claims' own classes; None stands for what does not exist."""
        classes, found = await asyncio.gather(
            self._by_name(named.classes), asyncio.gather(*(self._claim(namespace, name) for name in named.claims))
        )
        claims = dict(zip(named.claims, found, strict=True))
        theirs = dict.fromkeys(claim.class_name for claim in found if claim is not None)
        return classes | await self._by_name([name for name in theirs if name not in classes]), claims

    async def _by_name(self, classes: Iterable[str]) -> dict[str, ClassView | None]:
        named = list(classes)
        found = await asyncio.gather(*(self._shared_class(name).get() for name in named))
        return dict(zip(named, found, strict=True))

    def _shared_class(self, name: str) -> SharedRead[ClassView | None]:
        if name not in self._classes:
            # Names come from tenants: what nobody waits for is not kept.
            self._classes = {known: shared for known, shared in self._classes.items() if not shared.idle}
            self._classes[name] = SharedRead(lambda: self._class(name))
        return self._classes[name]

    async def _class(self, name: str) -> ClassView | None:
        body = await self._found(GPU_CLASS, "", name)
        return _view(self._readers.gpu_class, body, f"GPUClass {name}") if body is not None else None

    async def _claim(self, namespace: str, name: str) -> ClaimView | None:
        body = await self._found(GPU_CLAIM, namespace, name)
        return _view(self._readers.gpu_claim, body, f"GPUClaim {namespace}/{name}") if body is not None else None

    async def _found(self, resource: Resource, namespace: str, name: str) -> bytes | None:
        try:
            return await self._kube.get(resource, namespace, name)
        except ApiError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def _owners(self, resources: tuple[str, ...]) -> tuple[ClassView, ...]:
        if not resources:
            return ()
        items = await self._all_classes.get()
        views = [_view(self._readers.gpu_class, item, "a GPUClass") for item in items]
        return tuple(sorted((v for v in views if v.resource in resources), key=lambda v: v.name))

    async def _kubevirt(self) -> KubeVirtView | None:
        """Read the resource that was found last, and look for another where it is gone, or going.

        Both are reads of this moment. One object comes straight from etcd; a list waits until the API server's cache
        is as new as that, and has every watch told how far it is (measured: 45 ms at the median for a quiet kind, and
        most of the processor time of an admission).
        """
        if self._home is not None:
            body = await self._here(*self._home)
            view = _view(self._readers.kubevirt, body, "the KubeVirt resource") if body is not None else None
            if view is not None and not view.deleting:
                return view
        found = await self._found_kubevirt()
        self._home = (found.namespace, found.name) if found is not None else None
        return found

    async def _here(self, namespace: str, name: str) -> bytes | None:
        """Return the resource of this name; None also where we may list alone: then the list tells."""
        try:
            return await self._found(KUBEVIRT, namespace, name)
        except ApiError as error:
            if error.code == HTTPStatus.FORBIDDEN:
                return None
            raise

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


_V = TypeVar("_V", ClassView, ClaimView, KubeVirtView)


def _view(read: Callable[[msgspec.Raw | bytes], _V], body: msgspec.Raw | bytes, what: str) -> _V:
    try:
        return read(body)
    except (ValueError, *UNREADABLE) as error:
        raise _unread(f"{what} can't be read: {error}") from None


def _unread(why: str) -> TurnedAway:
    return TurnedAway(
        "unanswered",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "EvidenceUnavailable",
        f"the GPU classes, claims and the KubeVirt resource that decide on this could not be read, {why}: try again",
    )
