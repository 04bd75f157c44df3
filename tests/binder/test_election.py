"""Leader election by a Lease: what ends a holder's work, and what is said about it."""

import asyncio

import msgspec
import pytest
from typing_extensions import override

from binder import election
from binder.election import Election
from deploy.world.apiserver import ApiServer
from deploy.world.clock import WallClock
from schemas.kinds import LEASE, NAMESPACE, Resource
from tests.binder.waiting import SECONDS

HOME = "gpubinder"


class Unreadable(ApiServer):
    """A server whose next `spoiled` answers to writes are no Leases."""

    spoiled = 0

    @override
    async def replace(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, subresource: str = ""
    ) -> bytes:
        stored = await super().replace(resource, namespace, name, body, subresource=subresource)
        if not self.spoiled:
            return stored
        self.spoiled -= 1
        return b'{"metadata": 3}'


class Slow(ApiServer):
    """A server that stores a renewal and then is slow to say so."""

    stored = asyncio.Event()

    @override
    async def replace(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, subresource: str = ""
    ) -> bytes:
        answer = await super().replace(resource, namespace, name, body, subresource=subresource)
        if not self.stored.is_set():
            self.stored.set()
            await asyncio.Event().wait()
        return answer


async def test_a_lease_whose_renewal_was_broken_off_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The renewal landed, its answer did not: what the holder knows is old, and it frees the lease all the same."""
    monkeypatch.setattr(election, "RETRY_SECONDS", 0.01)
    api = Slow(clock=WallClock())
    api.stored = asyncio.Event()
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    await api.create(NAMESPACE, "", msgspec.json.encode(home))

    async def work() -> None:
        await asyncio.Event().wait()

    electing = asyncio.create_task(Election(api, HOME, "binder", "a").lead(work))
    await asyncio.wait_for(api.stored.wait(), SECONDS)
    electing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await electing

    lease = msgspec.json.decode(await api.get(LEASE, HOME, "binder"))
    assert not lease["spec"].get("holderIdentity")


async def test_a_renewal_that_fails_of_no_servers_answer_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops working because the renewal broke says why: the error ends the election, as the work's own does."""
    monkeypatch.setattr(election, "RETRY_SECONDS", 0.01)
    api = Unreadable(clock=WallClock())
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    await api.create(NAMESPACE, "", msgspec.json.encode(home))
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    electing = asyncio.create_task(Election(api, HOME, "binder", "a").lead(work))
    await asyncio.wait_for(began.wait(), SECONDS)
    api.spoiled = 1
    with pytest.raises(msgspec.ValidationError, match="metadata"):
        await asyncio.wait_for(electing, SECONDS)
    assert cancelled.is_set()
