"""A world: the cluster, the journal, the program's processes and the weather between them, all out of one seed."""

import asyncio
import logging
import random
import secrets
from collections.abc import Callable, Coroutine, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from binder import service
from binder.memory_journal import MemoryJournal
from deploy.adopt import adopt_fresh
from deploy.world.manifests import encode
from deploy.world.store import Backup
from schemas.admission import ACCOUNTS_GROUP
from schemas.kinds import CONFIGMAP
from schemas.names import SETTING_POLICY, SETTINGS_CONFIGMAP
from tests.simulation.chance import Chance
from tests.simulation.cluster import BORN_S, Cluster, Setting, finish
from tests.simulation.doors import Counts, Doors
from tests.simulation.hardware import Hardware
from tests.simulation.labels import SYSTEM
from tests.simulation.lanes import Director, Lane
from tests.simulation.processes import PROGRAM, FrontDesk, Process
from tests.simulation.questions import Bus
from tests.simulation.weather import Weather

_SECOND_NS = 1_000_000_000
BACK_S = 2.0
"""How long after its death a process is started again, at most."""

_log = structlog.get_logger(__name__)


class World:
    """Everything there is. `shouts`: what the program logged as an error.

    `halted`: the operator paused placing. `tampered`: when a tenant last wrote to a Secret. `stopped`: no process runs,
    as somebody takes the cluster over; whoever is in `on_new_log` hears of the log after that,
    whoever is in `on_ask` of each review's path as it begins, and whoever is in `on_review` of it, its answer (None:
    there was none) and its path. `born`: when each process was started last.
    """

    def __init__(self, seed: int, setting: Setting) -> None:
        self.seed, self.setting = seed, setting
        self.chance = Chance(seed)
        self.director = Director()
        self.director.on_crash = lambda lane: self.kill(lane.name.partition(".")[0])
        self.weather = Weather(self.director.moment, self.chance)
        self.counts = Counts()
        self.lane = self.director.lane("cluster")
        self.cluster = Cluster(self.lane, setting, self.chance)
        self.hardware = Hardware(self.cluster, setting)
        self.journal = MemoryJournal(clock=self.stamp, replicated=True)
        self.processes: dict[str, Process] = {}
        self.lives: dict[str, int] = {}
        self.born: dict[str, float] = {}
        self.failures: list[tuple[str, BaseException]] = []
        self.shouts: list[str] = []
        self.backup: Backup | None = None
        self.restored = 0
        self.calm = True
        self.stopped = False
        self.halted = False
        self.tampered: dict[str, float] = {}
        self.on_new_log: list[Callable[[MemoryJournal], None]] = []
        self.on_ask: list[Callable[[bytes], None]] = []
        self.on_review: list[Callable[[bytes, bytes | None, str], None]] = []
        self._bus = Bus(self.chance)
        self._deeds: dict[asyncio.Task[None], None] = {}
        FrontDesk(self.cluster, self.weather, self._desk, self._asked, self._reviewed)

    @property
    def now(self) -> float:
        """Seconds since the world began."""
        return self.director.now

    def stamp(self) -> int:
        """Return the stamp that the stream's leader puts on a message now."""
        return int((BORN_S + self.now) * _SECOND_NS) + self.weather.offset_ns

    def begin(self) -> None:
        """Begin the log and start every process."""
        finish(adopt_fresh(self.cluster.api, self.journal, SYSTEM, PROGRAM), self.lane)
        if self.setting.policy:
            head = {"apiVersion": CONFIGMAP.api_version, "kind": CONFIGMAP.kind}
            settings = {"metadata": {"name": SETTINGS_CONFIGMAP}, "data": {SETTING_POLICY: self.setting.policy}}
            finish(self.cluster.api.create(CONFIGMAP, SYSTEM, encode(head | settings)), self.lane)
        for name in self.names():
            self.start(name)

    def names(self) -> list[str]:
        """Name the processes that are to run."""
        setting = self.setting
        numbered = {
            "binder": setting.binders,
            "ingest": setting.ingests,
            "projector": setting.projectors,
            "webhooks": setting.webhooks,
        }
        return [f"{role}-{number}" for role, count in numbered.items() for number in range(1, count + 1)]

    def start(self, name: str) -> None:
        """Start a process that does not run, unless all were stopped."""
        if self.stopped or name in self.processes:
            return
        self.born[name] = self.now
        life = self.lives[name] = self.lives.get(name, 0) + 1
        lane = self.director.lane(f"{name}.{life}")
        user = self.cluster.api.as_user(f"system:serviceaccount:{SYSTEM}:gpubinder", f"{ACCOUNTS_GROUP}{SYSTEM}")
        doors = Doors(name, lane, self.lane, user, self.journal, self._bus, self.weather, self.counts)
        self.processes[name] = Process(name, doors)

    def kill(self, name: str) -> None:
        """Let a process die where it stands; it is started again a little later, with nothing kept."""
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.doors.shut = True
        self._look_at(process)
        self.director.kill(process.lane)
        self.lane.call_later(self.chance.draw(f"back {name}") * BACK_S, self.start, name)

    def _look_at(self, process: Process) -> None:
        if process.failure is not None:
            self.failures.append((process.name, process.failure))
        self.failures += [
            (process.name, complaint.get("exception") or RuntimeError(complaint["message"]))
            for complaint in process.lane.complaints
        ]
        process.lane.complaints.clear()

    def look(self) -> None:
        """Note what processes, and the cluster itself, failed of; one that ended by itself is started again."""
        for process in list(self.processes.values()):
            self._look_at(process)
            if process.failure is not None:
                self.kill(process.name)
        for part in self.cluster.parts:
            if part.done():
                raise AssertionError(f"the model cluster ended: {part.exception()!r}") from part.exception()
        if self.lane.complaints:
            raise AssertionError(f"the model cluster complains: {self.lane.complaints}")

    def do(self, deed: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Let something be done on the cluster's lane, by somebody who waits for nobody."""
        task = self.lane.create_task(deed)
        self._deeds[task] = None
        task.add_done_callback(self._deeds.pop)
        return task

    def process(self, name: str) -> Process | None:
        """Return the process of that name, None while it is dead."""
        return self.processes.get(name)

    def _desk(self, path: str) -> Process | None:
        """Pick a webhook that runs."""
        running = [process for process in self.processes.values() if process.role == "webhooks"]
        return running[int(self.chance.draw(f"desk {path}") * len(running))] if running else None

    def _asked(self, asked: bytes) -> None:
        for heard in self.on_ask:
            heard(asked)

    def _reviewed(self, asked: bytes, answer: bytes | None, path: str) -> None:
        for heard in self.on_review:
            heard(asked, answer, path)

    def end(self) -> None:
        """Let everything stop."""
        for process in list(self.processes.values()):
            process.doors.shut = True
            self.director.kill(process.lane)
        self.processes.clear()
        for lane in list(self.director.lanes):
            self.director.kill(lane)


@contextmanager
def worlds_own_chance(world: World) -> Iterator[None]:
    """Draw what the program draws at random from the world's seed, and hear what it logs as an error."""
    token_hex, state = secrets.token_hex, random.getstate()
    config = structlog.get_config()

    def heard(_logger: object, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        world.shouts.append(f"{method}: {event}")
        raise structlog.DropEvent

    def token(nbytes: int | None = None) -> str:
        return world.chance.token("token", nbytes or 16)

    every, service.SNAPSHOT_EVERY_INPUTS = service.SNAPSHOT_EVERY_INPUTS, world.setting.snapshot_every
    secrets.token_hex = token
    random.seed(world.seed)
    structlog.configure(
        processors=[heard],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        service.SNAPSHOT_EVERY_INPUTS = every
        secrets.token_hex = token_hex
        random.setstate(state)
        structlog.configure(**config)


def leader(world: World) -> Process | None:
    """Return the process whose binder leads, None while none does."""
    for process in world.processes.values():
        if process.binder is not None and process.binder.leading:
            return process
    return None


def lane_of(world: World, name: str) -> Lane | None:
    """Return the machine a process runs on."""
    process = world.process(name)
    return process.lane if process is not None else None
