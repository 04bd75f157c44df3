"""Troubles of the program's own: crashes at any await, freezes, refusals, lost and late messages, a server restored."""

from typing_extensions import override

from schemas.kinds import KUBEVIRT, VM, VMI
from tests.simulation.acts.act import Act
from tests.simulation.takeover import Loss, go_back, lose
from tests.simulation.weather import LAST_WORDS, Spell
from tests.simulation.world import World, leader

_SECOND_NS = 1_000_000_000
LEADER = "leader"
LAST_WORDS_S = 20.0
"""How long it is waited for a process to say something."""


def _named(world: World, name: str) -> str:
    """Return the process that is meant; the leader's name is whoever leads now."""
    if name != LEADER:
        return name
    found = leader(world)
    return found.name if found is not None else "binder-1"


class Crash(Act, frozen=True):
    """A process dies after so many more steps of its own loop: at any await."""

    name: str
    after: int = 1

    @override
    def begin(self, world: World) -> None:
        """Let it run into its end."""
        process = world.process(_named(world, self.name))
        if process is not None:
            process.lane.crash_after = process.lane.handled + self.after


class Freeze(Act, frozen=True):
    """A process stands still at some await for a while, its timers too, and then goes on as if nothing was."""

    name: str
    seconds: float
    after: int = 1

    @override
    def begin(self, world: World) -> None:
        """Let its lane run into its standstill."""
        process = world.process(_named(world, self.name))
        if process is not None:
            process.lane.freeze_after(self.after, self.seconds)


class ApiRefuses(Act, frozen=True):
    """The API server answers a share of a role's calls with a code; 0 and 500 may have landed nevertheless."""

    code: int
    share: float
    seconds: float
    who: str = ""

    @override
    def begin(self, world: World) -> None:
        """Begin the spell."""
        world.weather.begin(Spell("api", world.now + self.seconds, self.share, self.who, self.code))


class ApiAway(Act, frozen=True):
    """The API server can't be reached by a role, or by none."""

    seconds: float
    who: str = ""

    @override
    def begin(self, world: World) -> None:
        """Begin the spell."""
        world.weather.begin(Spell("api away", world.now + self.seconds, 1, self.who))


class JournalAway(Act, frozen=True):
    """The journal has no leader, or a role can't reach it."""

    seconds: float
    who: str = ""

    @override
    def begin(self, world: World) -> None:
        """Begin the spell."""
        world.weather.begin(Spell("journal away", world.now + self.seconds, 1, self.who))


class Slow(Act, frozen=True):
    """Calls one way (api, watch, journal) take up to `most_s`."""

    way: str
    most_s: float
    seconds: float
    who: str = ""

    @override
    def begin(self, world: World) -> None:
        """Begin the spell."""
        world.weather.begin(Spell(f"slow {self.way}", world.now + self.seconds, 1, self.who, seconds=self.most_s))


class Publishes(Act, frozen=True):
    """A share of a role's publishes is `lost`, its answer is (`lost answer`), or it lands `late`, after `late_s`."""

    kind: str
    share: float
    seconds: float
    who: str = ""
    late_s: float = 3.0

    @override
    def begin(self, world: World) -> None:
        """Begin the spell."""
        until = world.now + self.seconds
        world.weather.begin(Spell(f"publish {self.kind}", until, self.share, self.who, seconds=self.late_s))


class LastWords(Act, frozen=True):
    """A process dies over its next publish, which lands `late_s` later all the same (T2, T11)."""

    name: str
    late_s: float = 3.0

    @override
    def begin(self, world: World) -> None:
        """Wait for it to say something."""
        who = _named(world, self.name)
        world.weather.begin(Spell(LAST_WORDS, world.now + LAST_WORDS_S, 1, who, seconds=self.late_s, once=True))


class CutWatches(Act, frozen=True):
    """Every watch ends; with `forget` their versions are forgotten too, so that they must list again."""

    forget: bool = False

    @override
    def begin(self, world: World) -> None:
        """End them."""
        if self.forget:
            world.cluster.api.store.compact()
        world.cluster.api.store.cut()


class Backup(Act, frozen=True):
    """Somebody takes a backup of the API server's store."""

    @override
    def begin(self, world: World) -> None:
        """Keep it."""
        world.backup = world.cluster.api.store.backup()


class Restore(Act, frozen=True):
    """The API server comes back from that backup, with versions so much higher where they are bumped (T12)."""

    bump: int = 0

    @override
    def begin(self, world: World) -> None:
        """Go back in time."""
        if world.backup is not None:
            go_back(world, world.backup, bump=self.bump)


class KubeVirtAway(Act, frozen=True):
    """KubeVirt's kinds are not served to the program for a while: their CRDs went, and come back as they were (C61)."""

    seconds: float

    @override
    def begin(self, world: World) -> None:
        """Begin the spell, and end the watches of these kinds."""
        world.weather.begin(Spell("not served", world.now + self.seconds, 1))
        for resource in (KUBEVIRT, VM, VMI):
            collection = world.cluster.api.store.collection(resource)
            collection.cuts += 1
            collection.wake()


class LogLost(Act, frozen=True):
    """NATS loses the log, or its tail; the anchor is there or not. Somebody stops every process and takes over (T4)."""

    loss: Loss = Loss()

    @override
    def begin(self, world: World) -> None:
        """Lose it."""
        lose(world, self.loss)


class StampJump(Act, frozen=True):
    """Another server leads the stream, whose clock is off by so much (T9)."""

    seconds: float

    @override
    def begin(self, world: World) -> None:
        """Jump, forward or back."""
        world.weather.offset_ns += int(self.seconds * _SECOND_NS)
