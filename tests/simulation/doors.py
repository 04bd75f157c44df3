"""The doors of one process: its API server and its journal, where calls take time, get lost and go wrong."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from binder.journal import Message, StreamInfo, Unavailable, Unclear, WrongLastSequence
from binder.kube import ApiError, Kube
from binder.memory_journal import MemoryJournal
from deploy.world.faults import Call, Fault, FaultyKube
from schemas.kinds import KUBEVIRT
from schemas.streams import DECISIONS
from tests.simulation.lanes import Lane
from tests.simulation.questions import Bus, Questions
from tests.simulation.weather import LAST_WORDS, Weather

WRITES = frozenset({"create", "replace", "patch", "delete"})
PUBLISH_TIMEOUT_S = 1.5
"""After so long without an answer a publish is unclear."""


class Counts:
    """What the processes did: `writes` by (role, verb, plural), `appends` and `refused` by role."""

    def __init__(self) -> None:
        self.writes: Counter[tuple[str, str, str]] = Counter()
        self.appends: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[str] = Counter()
        self.unclear: Counter[str] = Counter()


class Doors:
    """The doors of the process `name` on `lane`. Once shut, nothing goes through any more."""

    def __init__(
        self,
        name: str,
        lane: Lane,
        world: Lane,
        kube: Kube,
        journal: MemoryJournal,
        bus: Bus,
        weather: Weather,
        counts: Counts,
    ) -> None:
        self.name, self.lane, self.world = name, lane, world
        self.weather, self.counts = weather, counts
        self.role = name.rpartition("-")[0]
        self.shut = False
        self._on_their_way: dict[asyncio.Task[None], None] = {}
        self.kube = FaultyKube(kube, self._plan)
        self.journal = DoorJournal(self, journal)
        self.questions = Questions(
            bus, lane, lambda: self.shut or self.weather.strikes("journal away", name) is not None
        )

    async def _plan(self, call: Call) -> Fault | None:
        self.check_api()
        seconds = self.weather.delay("watch" if call.verb == "event" else "api", self.name)
        if seconds:
            await asyncio.sleep(seconds)
            self.check_api()
        if call.resource.group == KUBEVIRT.group and self.weather.strikes("not served", self.name):
            return Fault(ApiError(404, "NotFound", "the server could not find the requested resource"))
        if call.verb in WRITES:
            self.counts.writes[self.role, call.verb, call.resource.plural] += 1
        refusal = self.weather.refusal(self.name)
        if refusal is None:
            return None
        error, lands = refusal
        if call.verb in {"watch", "event"} and error.code in {409, 422}:
            return None
        return Fault(error, lands=lands)

    def do(self, deed: Coroutine[Any, Any, None]) -> None:
        """Let something go on without the process."""
        task = self.world.create_task(deed)
        self._on_their_way[task] = None
        task.add_done_callback(self._on_their_way.pop)

    def check_api(self) -> None:
        """Raise where nobody is behind the door."""
        if self.shut or self.weather.strikes("api away", self.name):
            raise ApiError(0, "Unreachable", "nobody there")

    async def travel(self) -> None:
        """Let a call to the journal take its time. Raises `Unavailable` where nobody is behind the door."""
        if self.shut or self.weather.strikes("journal away", self.name):
            self.counts.unclear[self.role] += 1
            raise Unavailable("no stream leader")
        seconds = self.weather.delay("journal", self.name)
        if seconds:
            await asyncio.sleep(seconds)
            if self.shut:
                raise Unavailable("nobody there")


class DoorJournal:
    """The journal as a process sees it: publishes get lost, land late, or land and their answers are lost (T3)."""

    def __init__(self, doors: Doors, journal: MemoryJournal) -> None:
        self._doors = doors
        self._journal = journal

    async def read(self, stream: str, start: int, *, until: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield runs of messages; while the journal is away, nothing comes."""
        async for run in self._journal.read(stream, start, until=until):
            while not self._doors.shut and self._doors.weather.strikes("journal away", self._doors.name):
                await asyncio.sleep(0.5)
            seconds = self._doors.weather.delay("journal", self._doors.name)
            if seconds:
                await asyncio.sleep(seconds)
            if self._doors.shut:
                raise Unavailable("nobody there")
            yield run

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
        """Store one message, or lose it, or its answer, or let it come late."""
        doors = self._doors

        async def land() -> int:
            return await self._journal.append(
                stream, subject, body, message_id=message_id, expected_last=expected_last, headers=headers
            )

        await doors.travel()
        doors.counts.appends[doors.role, stream] += 1
        if (spell := doors.weather.strikes(LAST_WORDS, doors.name)) is not None:
            # Dead at its next await; what it said arrives all the same.
            doors.world.call_later(spell.seconds, lambda: doors.do(arrive(land)))
            doors.lane.crash_after = doors.lane.handled + 1
            await asyncio.sleep(PUBLISH_TIMEOUT_S)
        for kind in ("lost", "lost answer", "late"):
            spell = doors.weather.strikes(f"publish {kind}", doors.name)
            if spell is not None:
                await self._goes_wrong(kind, land, spell.seconds)
        try:
            sequence = await land()
        except WrongLastSequence:
            if stream == DECISIONS:
                doors.counts.refused[doors.role] += 1
            await self._back()
            raise
        await self._back()
        return sequence

    async def _goes_wrong(self, kind: str, land: Callable[[], Awaitable[int]], seconds: float) -> None:
        if kind == "late":
            self._doors.world.call_later(seconds, lambda: self._doors.do(arrive(land)))
        if kind == "lost answer":
            await arrive(land)
        self._doors.counts.unclear[self._doors.role] += 1
        await asyncio.sleep(PUBLISH_TIMEOUT_S)
        raise Unclear("no answer in time")

    async def _back(self) -> None:
        seconds = self._doors.weather.delay("journal", self._doors.name)
        if seconds:
            await asyncio.sleep(seconds)

    async def append_batch(self, stream: str, parts: Sequence[tuple[str, bytes]]) -> int:
        """Store all parts or none."""
        await self._doors.travel()
        return await self._journal.append_batch(stream, parts)

    async def get(self, stream: str, sequence: int) -> Message | None:
        """Return one stored message."""
        await self._doors.travel()
        return await self._journal.get(stream, sequence)

    async def last(self, stream: str, subject: str) -> Message | None:
        """Return the newest message on a subject."""
        await self._doors.travel()
        return await self._journal.last(stream, subject)

    async def purge_below(self, stream: str, sequence: int) -> None:
        """Forget older messages."""
        await self._doors.travel()
        await self._journal.purge_below(stream, sequence)

    async def info(self, stream: str) -> StreamInfo:
        """Return the stream's bounds."""
        await self._doors.travel()
        return await self._journal.info(stream)


async def arrive(land: Callable[[], Awaitable[int]]) -> None:
    """Let a publish arrive whose answer nobody hears."""
    try:
        await land()
    except WrongLastSequence:
        return
