"""Ingest at work in a test: on a model API server, with a stand-in for the leader that folds and covers.

The fold is the binder's own: what it makes of the published messages is compared with the world.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from binder.book import Book
from binder.evolve import evolve, evolve_epoch
from binder.journal import Message, Unavailable, Unclear
from binder.kube import Kube
from binder.memory_journal import MemoryJournal
from binder.state import empty_state
from deploy.world.apiserver import ApiServer
from ingest.credit import IN_FLIGHT_MAX
from ingest.last_known import Recalling
from ingest.service import Ingest
from schemas.events import AnyEvent, decode_event
from schemas.frames import Epoch, Frame, encode_record
from schemas.objects import AnyView, Gone
from schemas.streams import DECISIONS, DECISIONS_EPOCH, DECISIONS_FRAME, EVENTS

SETTINGS_NAMESPACE = "gpubinder"
Tables = dict[str, dict[str, AnyView]]


class Leader:
    """Folds EVENTS and covers what it folded with frames, while `covering`; `begin` starts an epoch."""

    def __init__(self, journal: Recalling) -> None:
        self.journal = journal
        self.book = Book(empty_state())
        self.events: list[tuple[Message, AnyEvent]] = []
        self.covering = asyncio.Event()
        self.covering.set()
        self._epoch = 0
        self._appended = 0
        self._name = f"leader-{secrets.token_hex(4)}"

    async def begin(self, *versions: int) -> int:
        """Append an epoch record; return the EVENTS tail it saw."""
        tail = (await self.journal.info(EVENTS)).last
        epoch = Epoch("log", 1, "holder", f"nonce-{tail}-{self._epoch}", "1", 1, tail, versions or (1,))
        self._epoch = await self._append(DECISIONS_EPOCH, encode_record(epoch))
        evolve_epoch(self.book, self._epoch, epoch)
        return tail

    async def _append(self, subject: str, body: bytes) -> int:
        self._appended += 1
        while True:
            try:
                return await self.journal.append(DECISIONS, subject, body, message_id=f"{self._name}/{self._appended}")
            except (Unclear, Unavailable):
                await asyncio.sleep(0.1)

    async def run(self) -> None:
        """Fold for ever."""
        async for run in self.journal.read(EVENTS, self.book.state.events_seq + 1):
            await self.covering.wait()
            for message in run:
                event = decode_event(message.body)
                self.events.append((message, event))
                evolve(self.book, message.sequence, message.stamp_ns, event)
            await self._append(DECISIONS_FRAME, encode_record(self._frame(run[0].sequence, run[-1].sequence)))

    def _frame(self, first: int, last: int) -> Frame:
        return Frame("log", 1, self._epoch, 1, "1", "", first, last, "", "")

    def folded(self) -> Tables:
        """Return the tables as folded, versions left out."""
        return {kind: _without_versions(table) for kind, table in self.book.state.objects.items()}

    def published(self, kind: type[AnyEvent]) -> list[Any]:
        """Return the events of one kind in order."""
        return [event for _, event in self.events if isinstance(event, kind)]


async def settled(server: ApiServer, leader: Leader, ingest: Ingest) -> None:
    """Wait until the fold shows the world; kinds that are not served stay as they were known (D12)."""

    def agrees() -> bool:
        folded, shown, sessions = leader.folded(), world(server, ingest), leader.book.state.sessions
        served = [kind for kind in shown if _served(server, ingest, kind)]
        return all(kind in sessions and sessions[kind].synced and folded[kind] == shown[kind] for kind in served)

    await until(agrees, "the fold is the world")


def _served(server: ApiServer, ingest: Ingest, kind: str) -> bool:
    resource = ingest.watching[kind].source.resource
    return (resource.group, resource.plural) in server.writes.served


def world(server: ApiServer, ingest: Ingest) -> Tables:
    """Return what the API server holds as the tables should show it, versions left out."""
    shown: Tables = {}
    for kind, watching in ingest.watching.items():
        source = watching.source
        objects = server.store.collection(source.resource).snapshot(source.namespace, server.store.version)
        label = source.resource.labelled
        carry = [one for one in objects if not label or label in (one.object["metadata"].get("labels") or {})]
        views = [source.read(change.raw) for change in carry]
        shown[kind] = _without_versions({view.key: view for view in views if not isinstance(view, Gone)})
    return shown


def _without_versions(table: dict[str, AnyView]) -> dict[str, AnyView]:
    return {key: replace(view, rv="") for key, view in table.items()}


async def until(holds: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Wait until something holds, on the loop's clock."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(0.25)


async def time_passes(seconds: float) -> None:
    """Let nothing happen for a while, on the loop's clock."""
    await asyncio.sleep(seconds)


@asynccontextmanager
async def following(
    server: ApiServer, *, kube: Kube | None = None, journal: Recalling | None = None, in_flight: int = IN_FLIGHT_MAX
) -> AsyncIterator[tuple[Ingest, Leader]]:
    """Run ingest and a leader, an epoch begun; end both afterwards. `kube`: how ingest sees the server."""
    server.writes.seed_namespace(SETTINGS_NAMESPACE)
    journal = journal or MemoryJournal()
    leader = Leader(journal)
    await leader.begin()
    ingest = Ingest(kube or server, journal, SETTINGS_NAMESPACE, in_flight=in_flight)
    tasks = [asyncio.create_task(leader.run()), asyncio.create_task(ingest.run())]
    try:
        yield ingest, leader
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        failures = [task.exception() for task in tasks if not task.cancelled()]
        assert failures == []
