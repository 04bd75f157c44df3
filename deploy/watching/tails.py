"""Where the streams end, looked at every few seconds, and how far behind that each stage is, in messages and in time.

How old the oldest message is that a stage has not read is known without reading it: a message that stood there at one
look and is not read at a later one is at least as old as the time between.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from prometheus_client.core import Metric

from binder.journal import BatchJournal, Denied, Message, StreamInfo, Unavailable, Unclear
from deploy.watching.catalogue import gauge
from schemas.streams import DECISIONS, EVENTS, SNAPSHOT_MANIFEST, SNAPSHOTS

LOOK_SECONDS = 5.0
LOOKS_KEPT = 720
"""An hour of looks: what was not read for longer shows as an hour."""


class _Covered(msgspec.Struct):
    covers_to: int = 0


class _Manifest(msgspec.Struct):
    tip: _Covered


class Snapshot(msgspec.Struct, frozen=True):
    """The newest snapshot: when it was stored, and the last input that it covers."""

    at: datetime
    covered: int

    def age_seconds(self) -> float:
        """Return its age by the wall's clock."""
        return max((datetime.now(UTC) - self.at).total_seconds(), 0.0)


def snapshot_in(manifest: Message) -> Snapshot | None:
    """Read the manifest of a snapshot; None where it is not one of ours."""
    try:
        covered = msgspec.json.decode(manifest.body, type=_Manifest).tip.covers_to
    except msgspec.DecodeError:
        return None
    return Snapshot(datetime.fromtimestamp(manifest.stamp_ns / 1e9, UTC), covered)


class Tail:
    """Where one stream ended, look by look."""

    def __init__(self) -> None:
        self.last = 0
        self._looks: deque[tuple[float, int]] = deque(maxlen=LOOKS_KEPT)

    def seen(self, last: int, now: float) -> None:
        """Note where the stream ends now."""
        if last < self.last:
            # Another log stands there: its numbers say nothing about what was seen before.
            self._looks.clear()
        if last != self.last or not self._looks:
            self._looks.append((now, last))
        self.last = last

    def behind(self, position: int, now: float) -> tuple[int, float]:
        """Return how many messages stand behind a position, and for how long the oldest of them stands at least."""
        oldest = next((at for at, last in self._looks if last > position), now)
        return max(self.last - position, 0), now - oldest


class Tails:
    """Looks at the streams for ever; what can't be asked now keeps what was seen last."""

    def __init__(self, journal: BatchJournal, *, snapshots: bool) -> None:
        """`snapshots`: also look how old the newest snapshot is."""
        self._journal = journal
        self._snapshots = snapshots
        self._denied: set[str] = set()
        self.tails = {stream: Tail() for stream in (EVENTS, DECISIONS)}
        self.infos: dict[str, StreamInfo] = {}
        self.snapshot: Snapshot | None = None

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once. Raises nothing that passes."""
        for stream in (EVENTS, DECISIONS, SNAPSHOTS):
            if stream not in self._denied:
                await self._look_at(stream)

    async def _look_at(self, stream: str) -> None:
        try:
            info = await self._journal.info(stream)
            if stream in self.tails:
                self.tails[stream].seen(info.last, asyncio.get_running_loop().time())
            elif self._snapshots:
                await self._look_at_snapshot()
            self.infos[stream] = info
        except Denied:
            self._denied.add(stream)
        except (Unavailable, Unclear, LookupError, TimeoutError, OSError):
            return

    async def _look_at_snapshot(self) -> None:
        message = await self._journal.last(SNAPSHOTS, SNAPSHOT_MANIFEST)
        if message is not None:
            self.snapshot = snapshot_in(message)

    def collect(self) -> Iterable[Metric]:
        """Yield what was seen of the streams."""
        seen = sorted(self.infos.items())
        yield gauge("gpubinder_stream_last_sequence", [((name,), info.last) for name, info in seen])
        yield gauge("gpubinder_stream_bytes", [((name,), info.bytes) for name, info in seen])
        limited = [((name,), info.bytes_max) for name, info in seen if info.bytes_max]
        yield gauge("gpubinder_stream_max_bytes", limited)
