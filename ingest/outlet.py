"""The way onto EVENTS: each message stored once and in order per kind, whatever the server answers (T3, T13)."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from binder.journal import Unavailable, Unclear
from ingest.backoff import Backoff
from ingest.chunks import chunks
from ingest.credit import Credit
from ingest.last_known import Recalling, version_in
from ingest.leader import Leader
from schemas.events import AnyEvent, NotServed, Progress, SessionOpened, SessionSynced, encode_event
from schemas.objects import AnyView, Gone
from schemas.streams import EVENTS, EVENTS_WATCH

PROGRESS: Final = "progress"

log = structlog.get_logger()


class Outlet:
    """Publishes for all kinds. `process` names this process, so that no two share a message id.

    Each method returns once its messages are stored. A publish without a clear answer is repeated
    under its own id until one comes: the server drops what it has already (for an hour; after that
    a repeat is folded twice, to the same state).
    """

    def __init__(self, journal: Recalling, credit: Credit, leader: Leader, process: str) -> None:
        self._journal = journal
        self._credit = credit
        self._leader = leader
        self._process = process
        self._published = 0
        self._announcing = asyncio.Lock()
        self._since = 0
        self.messages = 0

    async def open(self, kind: str, *, rewound: bool) -> int:
        """Open a session; its number is the message's own sequence."""
        since = await self._announced()
        return await self._publish(kind, self._process, SessionOpened(kind, rewound=rewound, process=since))

    async def _announced(self) -> int:
        """Announce this process, once, and return the sequence of that: of two processes the later one's is higher."""
        async with self._announcing:
            if not self._since:
                self._since = await self._publish(PROGRESS, self._process, Progress(()))
            return self._since

    async def changes(self, kind: str, session: int, changes: Sequence[AnyView | Gone]) -> None:
        """Publish changes in chunks, each as soon as there is credit for it."""
        for body in chunks(kind, session, changes):
            async with self._credit.place() as place:
                place.sequence = await self._store(kind, self._name(str(session)), body)

    async def synced(self, kind: str, session: int, rv: str) -> None:
        """End the session's list."""
        await self._publish(kind, str(session), SessionSynced(kind, session, rv))

    async def not_served(self, kind: str, session: int) -> None:
        """Say that the kind is not served now."""
        await self._publish(kind, str(session), NotServed(kind, session))

    async def progress(self, marks: Sequence[tuple[str, int, str]]) -> None:
        """Say how far the watches have come."""
        await self._publish(PROGRESS, self._process, Progress(tuple(marks)))

    async def last_known(self, kind: str) -> str:
        """Return the resourceVersion of the kind that the log knows as its newest, '' where it has none.

        By it a program that starts after the API server came back from a backup sees that (T12).
        """
        found = [await self._journal.last(EVENTS, f"{EVENTS_WATCH}.{token}") for token in (kind, PROGRESS)]
        for message in sorted(filter(None, found), key=lambda message: -message.sequence):
            if version := version_in(message.body, kind):
                return version
        return ""

    async def _publish(self, token: str, scope: str, event: AnyEvent) -> int:
        return await self._store(token, self._name(scope), encode_event(event))

    def _name(self, scope: str) -> str:
        """Return a message id that nobody used: counted within this process, under its session or its name."""
        self._published += 1
        return f"{scope}/{self._published}"

    async def _store(self, token: str, message_id: str, body: bytes) -> int:
        backoff = Backoff()
        while True:
            await self._leader.reads_ours()
            try:
                sequence = await self._journal.append(EVENTS, f"{EVENTS_WATCH}.{token}", body, message_id=message_id)
            except (Unclear, Unavailable) as error:
                if backoff.failures == 0:
                    log.warning("a message was not stored yet; trying again", message_id=message_id, why=str(error))
                await asyncio.sleep(backoff.next())
                continue
            self.messages += 1
            log.debug("an input was stored", kind=token, events_seq=sequence, message_id=message_id)
            return sequence
