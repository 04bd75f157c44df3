"""Counters stay in bounds: how much is written, refused and ticked for what was decided."""

from collections.abc import Iterator

from typing_extensions import override

from binder.service import TICK_SECONDS
from schemas import decisions as d
from schemas.events import Outcomes, Tick, decode_event
from schemas.frames import Frame, Genesis, decode_record
from schemas.objects import Stamp
from schemas.reasons import Release
from schemas.streams import DECISIONS, EVENTS
from tests.simulation.laws.law import Law
from tests.simulation.picture import Picture
from tests.simulation.world import World

WRITES_PER_DECISION = 4
REFUSED_PER_EPOCH = 2
PAUSE_NS = 2 * 1_000_000_000
KINDS = ("gpuclaims", "pods", "events")
WRITTEN = (
    d.SetPlaced, d.SetWaits, d.SetOpened, d.SetReleased, d.SetClosed, d.NodeSkipped, d.VmiGivenUp, d.ClaimDropped,
    d.HeldPlaced, d.HeldLost, d.HeldWaits, d.HeldFreed, d.ClassGuarded, d.ClassFreed,
)  # fmt: skip


class Measure(Law):
    """Writes per decision, refused appends per epoch and ticks per time are bounded, troubles aside."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._decided = 0
        self._wide = 1

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        if isinstance(decision, WRITTEN):
            self._decided += 1
        if isinstance(decision, d.SetOpened):
            self._wide = max(self._wide, len(decision.claims) + len(decision.held))

    @override
    def step(self) -> Iterator[str]:
        counts, lives = self.world.counts, self.world.lives
        born = sum(life for name, life in lives.items() if name.startswith("binder"))
        epochs = self.picture.epochs
        # Each leader may meet a fence once for each that followed it, and once for what it left on the way.
        allowed = REFUSED_PER_EPOCH * (epochs + born) + counts.unclear["binder"]
        if counts.refused["binder"] > allowed:
            yield f"{counts.refused['binder']} refused appends in {epochs} epochs"
        ticks = sum(1 for event in self._inputs() if isinstance(event, Tick))
        if ticks > self.world.now / TICK_SECONDS * max(1, self.world.setting.binders) + epochs:
            yield f"{ticks} ticks in {self.world.now:.0f} s"

    @override
    def rest(self) -> Iterator[str]:
        writes = sum(
            n for (role, _, plural), n in self.world.counts.writes.items() if role == "projector" and plural in KINDS
        )
        lives = sum(life for name, life in self.world.lives.items() if name.startswith("projector"))
        allowed = WRITES_PER_DECISION * self._wide * (self._decided + 1)
        if self.world.calm and writes > allowed:
            yield f"{writes} writes for {self._decided} decisions by {lives} projectors"
        outcomes = sum(1 for event in self._inputs() if isinstance(event, Outcomes))
        if self.world.calm and outcomes > 2 * self._decided + 2:
            yield f"{outcomes} messages of outcomes for {self._decided} decisions"
        yield from self._idle_frames()

    def _idle_frames(self) -> Iterator[str]:
        """A frame covers at least one input more than those before it, in each generation by itself: nobody spins."""
        covered = 0
        for message in self.world.journal.streams[DECISIONS].messages:
            record = decode_record(message.body)
            if isinstance(record, Genesis):
                covered = record.events_last
            elif isinstance(record, Frame):
                if record.covers_to <= covered:
                    yield f"frame {message.sequence} covers up to {record.covers_to}, and {covered} was covered before"
                covered = record.covers_to

    def _inputs(self) -> Iterator[object]:
        for message in self.world.journal.streams[EVENTS].messages:
            yield decode_event(message.body)


class Patient(Law):
    """A pin that was refused is not tried again at the speed of the stream (T23)."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._refused: dict[str, int] = {}

    @override
    def anew(self) -> None:
        self._refused.clear()

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        if isinstance(decision, d.SetReleased) and decision.reason is Release.PIN_REFUSED:
            self._refused[decision.vmi.uid] = self.picture.now_ns
        if isinstance(decision, d.SetPlaced):
            since_ns = self._refused.pop(decision.vmi.uid, None)
            if since_ns is not None and self.picture.now_ns - since_ns < PAUSE_NS:
                self.found.append(
                    f"{stamp}: {decision.vmi.name} is placed {self.picture.now_ns - since_ns} ns after a refusal"
                )
