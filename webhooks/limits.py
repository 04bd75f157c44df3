"""How much of the front desk one namespace may take at once: a flood waits behind itself (T13)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import msgspec

from webhooks.reviews import TurnedAway

LIMITED = "limited"
"""What metrics count, and the desk knows, whoever came one too many by."""


class _Queue(msgspec.Struct, eq=False):
    slots: asyncio.Semaphore
    inside: int = 0


class NamespaceLimit:
    """At most `at_once` requests of a namespace are worked on, at most `waiting` more wait for their turn."""

    def __init__(self, *, at_once: int, waiting: int) -> None:
        self._at_once, self._most = at_once, at_once + waiting
        self._queues: dict[str, _Queue] = {}

    @property
    def namespaces(self) -> int:
        """How many namespaces have requests inside."""
        return len(self._queues)

    @asynccontextmanager
    async def turn(self, namespace: str, deadline: float) -> AsyncIterator[None]:
        """Hold one of the namespace's slots. Raises `TurnedAway` where none comes free by the deadline."""
        queue = self._queues.setdefault(namespace, _Queue(asyncio.Semaphore(self._at_once)))
        if queue.inside >= self._most:
            raise _too_many(namespace, self._most)
        queue.inside += 1
        try:
            try:
                async with asyncio.timeout_at(deadline):
                    await queue.slots.acquire()
            except TimeoutError:
                raise _too_many(namespace, queue.inside) from None
            try:
                yield
            finally:
                queue.slots.release()
        finally:
            queue.inside -= 1
            if not queue.inside:
                del self._queues[namespace]


def _too_many(namespace: str, count: int) -> TurnedAway:
    return TurnedAway(
        LIMITED,
        HTTPStatus.TOO_MANY_REQUESTS,
        "TooManyRequests",
        f"{count} requests for GPUs are being admitted in namespace {namespace} at this moment: try again later",
    )
