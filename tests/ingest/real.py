"""Ingest at work on a real API server, with a leader that folds and covers; what the server holds, as tables."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from msgspec.structs import replace

from binder.kube import ApiError, Kube
from binder.kube_client import KubeClient
from binder.memory_journal import MemoryJournal
from binder.state import FOREIGN_KINDS
from ingest.service import Ingest
from ingest.sources import Source
from schemas.kinds import NAMESPACE
from schemas.objects import AnyView, Gone
from tests.ingest.following import SETTINGS_NAMESPACE, Leader


@asynccontextmanager
async def following(kube: Kube) -> AsyncIterator[tuple[Ingest, Leader]]:
    """Run ingest against a server, with a leader that folds and covers."""
    await _home(kube)
    journal = MemoryJournal()
    leader = Leader(journal)
    await leader.begin()
    ingest = Ingest(kube, journal, SETTINGS_NAMESPACE, unserved_s=0.5)
    tasks = [asyncio.create_task(leader.run()), asyncio.create_task(ingest.run())]
    try:
        yield ingest, leader
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert [task.exception() for task in tasks if not task.cancelled()] == []


async def _home(kube: Kube) -> None:
    """Have the namespace of the settings, in which the key for digests is made."""
    try:
        await kube.create(NAMESPACE, "", msgspec.json.encode({"metadata": {"name": SETTINGS_NAMESPACE}}))
    except ApiError as error:
        if error.code != 409:
            raise


async def world(client: KubeClient, source: Source) -> dict[str, AnyView]:
    """Return what the server holds of a kind as the table should show it, versions left out; of no kind, nothing."""
    views: list[AnyView | Gone] = []
    token = ""
    if source.kind in FOREIGN_KINDS and not await _is_served(client, source):
        return {}
    while True:
        page = await client.list_page(source.resource, namespace=source.namespace, continue_token=token)
        views += [source.view(item) for item in page.items]
        token = page.continue_token
        if not token:
            return {view.key: replace(view, rv="") for view in views if not isinstance(view, Gone)}


async def settled(client: KubeClient, ingest: Ingest, leader: Leader, seconds: float = 120.0) -> None:
    """Wait until every table shows what the server holds."""
    deadline = asyncio.get_running_loop().time() + seconds
    for kind, watching in ingest.watching.items():
        while leader.folded()[kind] != (shown := await world(client, watching.source)) or not synced(leader, kind):
            late = asyncio.get_running_loop().time() > deadline
            assert not late, f"{kind}: folded {leader.folded()[kind]}, the server holds {shown}"
            await asyncio.sleep(0.1)


async def _is_served(client: KubeClient, source: Source) -> bool:
    try:
        await client.list_page(source.resource, limit=1)
    except ApiError as error:
        if error.code != 404:
            raise
        return False
    return True


def synced(leader: Leader, kind: str) -> bool:
    """Say whether the kind's newest session has its list complete, or knows that there is none to be had."""
    session = leader.book.state.sessions.get(kind)
    return session is not None and (session.synced or (kind in FOREIGN_KINDS and not session.served))
