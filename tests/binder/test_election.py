"""Leader election by a Lease: what ends a holder's work, and what is said about it."""

import asyncio

import msgspec
import pytest
from typing_extensions import override

from binder import election
from binder.election import Election
from deploy.world.apiserver import ApiServer
from deploy.world.clock import WallClock
from schemas.kinds import NAMESPACE, Resource

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
    await asyncio.wait_for(began.wait(), 10)
    api.spoiled = 1
    with pytest.raises(msgspec.ValidationError, match="metadata"):
        await asyncio.wait_for(electing, 10)
    assert cancelled.is_set()
