"""Deletions that wait while NATS is away: only the binder may let go of claims and classes, and it hears nothing then.

While there is a connection the log says what is deleted, and nothing is asked here.
"""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from binder.kube import ApiError, Kube
from deploy.watching.catalogue import gauge
from schemas.kinds import GPU_CLAIM, GPU_CLASS, Resource
from schemas.names import CLAIM_FINALIZER, CLASS_FINALIZER

LOOK_SECONDS = 15.0
PAGE = 500
GUARDED: tuple[tuple[Resource, str], ...] = ((GPU_CLAIM, CLAIM_FINALIZER), (GPU_CLASS, CLASS_FINALIZER))


class _Metadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class _Object(msgspec.Struct):
    metadata: _Metadata


class Deletions(Collector):
    """Counts, while NATS is away, what is being deleted and waits for us."""

    def __init__(self, kube: Kube, connected: Callable[[], bool]) -> None:
        self._kube = kube
        self._connected = connected
        self.waiting: dict[str, int] = {resource.plural: 0 for resource, _ in GUARDED}

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once; what the API server does not answer stays as it was seen last."""
        if self._connected():
            self.waiting = dict.fromkeys(self.waiting, 0)
            return
        for resource, finalizer in GUARDED:
            try:
                self.waiting[resource.plural] = await self._count(resource, finalizer)
            except ApiError:
                # That the API server does not answer is counted where it is asked.
                continue

    async def _count(self, resource: Resource, finalizer: str) -> int:
        count, token = 0, ""
        while True:
            page = await self._kube.list_page(resource, limit=PAGE, continue_token=token)
            for raw in page.items:
                seen = msgspec.json.decode(raw, type=_Object).metadata
                count += seen.deletion_timestamp is not None and finalizer in seen.finalizers
            token = page.continue_token
            if not token:
                return count

    @override
    def collect(self) -> Iterable[Metric]:
        yield gauge("gpubinder_deletions_waiting", [((kind,), float(many)) for kind, many in self.waiting.items()])
