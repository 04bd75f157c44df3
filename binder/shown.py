"""What objects of ours show of the log: one that has not come so far is led by nobody (T4, T22).

The anchor stands within a second of the log's end. Where less than that is lost, the stamps alone tell.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from binder.anchor import NotOurs
from binder.journal import Journal
from binder.kube import ApiError, Kube
from binder.tip import Tip
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, GPU_CLASS, WORKLOAD, Resource
from schemas.licences import COPY
from schemas.names import STAMP_ANNOTATION
from schemas.objects import Stamp
from schemas.stamping import read_stamp, stamp_text
from schemas.streams import DECISIONS

IN_STATUS: Final = (GPU_CLAIM, GPU_CLASS, GPU_BUDGET)
"""Kinds whose status carries the stamp: under a rule that lets nobody take it back, and no tenant write it."""

IN_ANNOTATIONS: Final = (COPY, WORKLOAD)
"""Kinds that carry it as an annotation, which others may have written: they tell a generation, and stop nobody."""

GENERATIONS_MAX: Final = 1 << 31
"""No log begins so often: an annotation that says so was written by somebody else."""

_FORBIDDEN, _NOT_FOUND = 403, 404
_AGAIN_S = 0.05


class Shown(msgspec.Struct, frozen=True, order=True):
    """The newest stamp that was found, and which object shows it; '' where none does."""

    stamp: Stamp = Stamp()
    where: str = ""

    def beyond(self, tip: Tip) -> bool:
        """Say whether a log that ends at `tip` never decided this."""
        return (self.stamp.generation, self.stamp.sequence) > (tip.generation, tip.covers_to) and bool(self.where)


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    annotations: dict[str, str] | None = None


class _Status(msgspec.Struct, frozen=True):
    stamp: Stamp | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata
    status: _Status | None = None


class _Noted(msgspec.Struct, frozen=True):
    metadata: _Metadata


async def in_status(kube: Kube) -> Shown:
    """Return the newest stamp in the status of objects of ours. Raises `ApiError`."""
    newest = Shown()
    for resource in IN_STATUS:
        async for raw in listed(kube, resource):
            found = msgspec.json.decode(raw, type=_Object)
            stamp = found.status.stamp if found.status is not None else None
            if stamp is not None:
                newest = max(newest, Shown(stamp, _where(resource, found.metadata)))
    return newest


async def in_annotations(kube: Kube) -> Shown:
    """Return the newest stamp that an annotation tells, on licence copies and usage records. Raises `ApiError`.

    Kinds that may not be listed are passed over: without licences nobody is given a right to Secrets.
    """
    newest = Shown()
    for resource in IN_ANNOTATIONS:
        try:
            async for raw in listed(kube, resource):
                # Nothing but metadata is read of a Secret (T16).
                found = msgspec.json.decode(raw, type=_Noted).metadata
                stamp = read_stamp((found.annotations or {}).get(STAMP_ANNOTATION, ""))
                if stamp is not None and stamp.generation < GENERATIONS_MAX:
                    newest = max(newest, Shown(stamp, _where(resource, found)))
        except ApiError as error:
            # Where an installation has no licences nobody may list Secrets, and there are no copies.
            if (error.code, resource) != (_FORBIDDEN, COPY):
                raise
    return newest


async def anywhere(kube: Kube) -> Shown:
    """Return the newest stamp of all. Raises `ApiError`."""
    return max(await in_status(kube), await in_annotations(kube))


async def prove_stamps(shown: Shown, tip_of: Callable[[], Tip], journal: Journal) -> None:
    """Hold the log against what objects show. Raises `NotOurs` where it never decided that, and says what to do.

    `tip_of`: how far it is folded. Who led before us may have decided it while the objects were read.
    """
    while shown.beyond(tip := tip_of()):
        if tip.sequence >= (await journal.info(DECISIONS)).last:
            raise _lost(shown, tip)
        await asyncio.sleep(_AGAIN_S)


def _lost(shown: Shown, tip: Tip) -> NotOurs:
    return NotOurs(
        f"{shown.where} shows the decision {stamp_text(shown.stamp)}, the log ends at "
        f"{tip.generation}.{tip.covers_to}: acknowledged decisions are lost, or another log served this cluster; "
        f"restore the store from the archive, or run `gpubinder adopt` for a new generation"
    )


def _where(resource: Resource, metadata: _Metadata) -> str:
    place = f"{metadata.namespace}/" if metadata.namespace else ""
    return f"{resource.kind} {place}{metadata.name}"


async def listed(kube: Kube, resource: Resource, namespace: str = "") -> AsyncIterator[msgspec.Raw]:
    """Yield every object of a kind, of one namespace where that is said; none where it is not served."""
    token = ""
    while True:
        try:
            page = await kube.list_page(resource, namespace=namespace, continue_token=token)
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return
            raise
        for raw in page.items:
            yield raw
        token = page.continue_token
        if not token:
            return
