"""The doors to NATS and to the API server, watched: how each call ended and how long it took; they change nothing."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from prometheus_client import CollectorRegistry

from binder.journal import BatchJournal, Denied, Message, StreamInfo, Unavailable, Unclear, WrongLastSequence
from binder.kube import ApiError, Kube, ListPage, PatchKind, WatchEvent
from deploy.watching.catalogue import counter, histogram
from schemas.kinds import Resource

STORED, CONFLICT, UNCLEAR, UNAVAILABLE, DENIED, REFUSED = (
    "stored",
    "conflict",
    "unclear",
    "unavailable",
    "denied",
    "refused",
)
OUTCOMES = (STORED, CONFLICT, UNCLEAR, UNAVAILABLE, DENIED, REFUSED)
"""How an append ends. A conflict: another writer was first. Unclear: no answer, it may have landed."""

FORGOTTEN_SECONDS = 35.0
"""A message that was not tried again for so long is no longer waited for: whoever had it gave it up.

Ingest pauses longest between two tries, half a minute.
"""

_ENDS: Mapping[type[BaseException], str] = {
    WrongLastSequence: CONFLICT,
    Unclear: UNCLEAR,
    Unavailable: UNAVAILABLE,
    Denied: DENIED,
}


class Waiting:
    """Messages that were sent and are not known to be stored: when each was first and last tried."""

    def __init__(self) -> None:
        self._tried: dict[tuple[str, str], tuple[float, float]] = {}

    def tries(self, key: tuple[str, str]) -> None:
        """Note that a message is tried now."""
        now = asyncio.get_running_loop().time()
        first, _ = self._tried.get(key, (now, now))
        self._tried[key] = first, now

    def over(self, key: tuple[str, str]) -> None:
        """Note that it is stored, or never will be."""
        self._tried.pop(key, None)

    def oldest_seconds(self) -> float:
        """Return for how long the oldest of them waits, 0 where none does."""
        now = asyncio.get_running_loop().time()
        self._tried = {key: tried for key, tried in self._tried.items() if now - tried[1] < FORGOTTEN_SECONDS}
        return max((now - first for first, _ in self._tried.values()), default=0.0)


class WatchedJournal:
    """A journal whose appends are counted and timed."""

    def __init__(self, journal: BatchJournal, registry: CollectorRegistry) -> None:
        self._journal = journal
        self._ended = counter(registry, "gpubinder_appends_total")
        self._seconds = histogram(registry, "gpubinder_append_seconds")
        self.waiting = Waiting()

    async def append(
        self,
        stream: str,
        subject: str,
        body: bytes,
        *,
        message_id: str,
        expected_last: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Append as the journal does."""
        loop, key = asyncio.get_running_loop(), (stream, message_id)
        began = loop.time()
        self.waiting.tries(key)
        try:
            stored = await self._journal.append(
                stream, subject, body, message_id=message_id, expected_last=expected_last, headers=headers
            )
        except asyncio.CancelledError:
            # Whoever sent it was ended, with its lease most often: nobody waits for it any more.
            self.waiting.over(key)
            raise
        except Exception as error:
            self._ended.labels(stream, _ENDS.get(type(error), REFUSED)).inc()
            if not isinstance(error, Unclear | Unavailable):
                self.waiting.over(key)
            raise
        self.waiting.over(key)
        self._stored(stream, loop.time() - began)
        return stored

    async def append_batch(self, stream: str, parts: Sequence[tuple[str, bytes]]) -> int:
        """Append a batch as the journal does."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            stored = await self._journal.append_batch(stream, parts)
        except Exception as error:
            self._ended.labels(stream, _ENDS.get(type(error), REFUSED)).inc()
            raise
        self._stored(stream, loop.time() - began)
        return stored

    def _stored(self, stream: str, seconds: float) -> None:
        self._ended.labels(stream, STORED).inc()
        self._seconds.labels(stream).observe(seconds)

    def read(self, stream: str, start: int, *, until: int | None = None) -> AsyncIterator[list[Message]]:
        """Read as the journal does."""
        return self._journal.read(stream, start, until=until)

    async def get(self, stream: str, sequence: int) -> Message | None:
        """Get as the journal does."""
        return await self._journal.get(stream, sequence)

    async def info(self, stream: str) -> StreamInfo:
        """Describe as the journal does."""
        return await self._journal.info(stream)

    async def last(self, stream: str, subject: str) -> Message | None:
        """Find as the journal does."""
        return await self._journal.last(stream, subject)

    async def purge_below(self, stream: str, sequence: int) -> None:
        """Purge as the journal does."""
        await self._journal.purge_below(stream, sequence)


class _Asked:
    """One request of the API server: leave the block, and it is counted by how it ended."""

    def __init__(self, watched: "WatchedKube", verb: str) -> None:
        self._watched, self._verb = watched, verb
        self._began = asyncio.get_running_loop().time()

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Count, unless it was cancelled."""
        if error is None or isinstance(error, ApiError):
            seconds = asyncio.get_running_loop().time() - self._began
            self._watched.answered(self._verb, error.code if error is not None else 200, seconds)


class WatchedKube:
    """A door to the API server whose answers are counted and timed."""

    def __init__(self, kube: Kube, registry: CollectorRegistry) -> None:
        self._kube = kube
        self._answers = counter(registry, "gpubinder_api_requests_total")
        self._seconds = histogram(registry, "gpubinder_api_seconds")

    def answered(self, verb: str, code: int, seconds: float) -> None:
        """Note an answer; code 0 where none came."""
        self._answers.labels(verb, str(code)).inc()
        self._seconds.labels(verb).observe(seconds)

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """Get as the door does."""
        with _Asked(self, "get"):
            return await self._kube.get(resource, namespace, name)

    async def list_page(
        self, resource: Resource, *, namespace: str = "", limit: int = 500, continue_token: str = ""
    ) -> ListPage:
        """List as the door does."""
        with _Asked(self, "list"):
            return await self._kube.list_page(resource, namespace=namespace, limit=limit, continue_token=continue_token)

    def watch(
        self, resource: Resource, *, resource_version: str, timeout_seconds: int, namespace: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Watch as the door does; not counted, as a watch ends for many a reason: its silence is measured."""
        return self._kube.watch(
            resource, resource_version=resource_version, timeout_seconds=timeout_seconds, namespace=namespace
        )

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        """Create as the door does."""
        with _Asked(self, "create"):
            return await self._kube.create(resource, namespace, body, dry_run=dry_run)

    async def replace(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, subresource: str = ""
    ) -> bytes:
        """Replace as the door does."""
        with _Asked(self, "replace"):
            return await self._kube.replace(resource, namespace, name, body, subresource=subresource)

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
        """Patch as the door does."""
        with _Asked(self, "patch"):
            return await self._kube.patch(resource, namespace, name, body, kind=kind, subresource=subresource)

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
        """Delete as the door does."""
        with _Asked(self, "delete"):
            await self._kube.delete(
                resource, namespace, name, uid=uid, resource_version=resource_version, grace_seconds=grace_seconds
            )

    async def close(self) -> None:
        """Close as the door does."""
        await self._kube.close()
