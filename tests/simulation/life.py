"""One world lived to its end: acts, laws after each of them, then healing, rest, and the laws of rest."""

import gc
import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from binder.memory_journal import MemoryJournal
from binder.tip import canonical
from deploy.world.manifests import dig, key_of, meta
from schemas.kinds import CONFIGMAP, GPU_CLASS, NODE, POD, PVC, VM
from schemas.names import SETTING_PAUSED, SETTINGS_CONFIGMAP
from schemas.reasons import Order
from schemas.streams import DECISIONS, EVENTS
from tests.simulation.acts.act import Step
from tests.simulation.acts.holders import CreateNamespace, EditClass, Say
from tests.simulation.acts.machines import AddNode, NodeUp, PluginBack, Refuses, Untaint
from tests.simulation.acts.strangers import LetGo, Pause, Ungate
from tests.simulation.acts.tenants import CreateClass, create_disk, has_own_disk
from tests.simulation.acts.writers import Bar
from tests.simulation.cluster import Setting, node_name
from tests.simulation.labels import CARD, CLASSES, SYSTEM, TENANTS
from tests.simulation.lanes import NeverRests
from tests.simulation.laws.budgets import Budgeted, BudgetShown, Woken
from tests.simulation.laws.classes import Counted, Elder, Named, Tolerated
from tests.simulation.laws.desk import Desk
from tests.simulation.laws.endings import Gone, Served
from tests.simulation.laws.health import Health
from tests.simulation.laws.holdings import Holds, Together
from tests.simulation.laws.law import Broken, Law
from tests.simulation.laws.licences import Licensed
from tests.simulation.laws.log import Promises, Proven
from tests.simulation.laws.measure import Measure, Patient
from tests.simulation.laws.orders import Ordered
from tests.simulation.laws.pins import OneStart, Pins
from tests.simulation.laws.records import Recorded
from tests.simulation.laws.room import Kept, Room
from tests.simulation.laws.seen import Seen
from tests.simulation.laws.sets import Shown, Told, Whole
from tests.simulation.laws.skips import Spared
from tests.simulation.laws.takeovers import TakenOver
from tests.simulation.laws.writes import Answered, OnPaper
from tests.simulation.picture import Picture
from tests.simulation.script import VMS
from tests.simulation.story import spelled
from tests.simulation.world import World, worlds_own_chance

LAWS: tuple[type[Law], ...] = (
    Budgeted, BudgetShown, Woken, TakenOver, Named, Tolerated, Elder, Licensed, Room, Kept, Pins, OneStart, Whole,
    Holds, Together, Told, Shown, Gone, Served, Ordered, Recorded, Promises, Proven, Measure, Patient, Spared, Seen,
    Counted, Answered, OnPaper, Desk, Health,
)  # fmt: skip
STEPS = 32
"""Acts of a world, unless told otherwise."""

REST_MAX_S = 1500.0
"""After all troubles are over, everyone is served within so much time: a skipped node is tried again after ten
minutes, and KubeVirt's own back-off is five."""

OUTLAST_S = 330.0
"""Longer than the grace of a node that can't keep what is booked on it."""

LOOK_S = 1.0
COLLECT_EVERY = 8
"""Of so many worlds one is begun with the garbage of those before it collected."""

QUIET_S = 8.0
FIRST_S = 5.0


class Lived(msgspec.Struct):
    """What became of a world. `broken` None: all laws held."""

    broken: Broken | None
    at_s: float
    steps: int
    inputs: int
    frames: int
    digest: str


class Life:
    """A world under its laws."""

    def __init__(
        self,
        seed: int,
        setting: Setting,
        tell: Callable[[World, str], None] = lambda _, __: None,
        laws: Sequence[type[Law]] = LAWS,
    ) -> None:
        self.world = World(seed, setting)
        self.picture = Picture(self.world.journal)
        self.laws = [law(self.world, self.picture) for law in laws]
        self.picture.listeners += [law.decided for law in self.laws]
        self.world.on_new_log.append(self._begin_anew)
        self._tell = tell

    def _begin_anew(self, journal: MemoryJournal) -> None:
        self.picture.follow(journal)
        for law in self.laws:
            law.anew()

    def run(self, steps: Sequence[Step]) -> None:
        """Live through the acts. Raises `Broken`."""
        world = self.world
        world.calm = not any(step.act.troubles for step in steps)
        world.begin()
        world.director.run_for(FIRST_S)
        for step in steps:
            self._tell(world, spelled(step.act))
            step.act.begin(world)
            world.director.run_for(step.wait_s)
            self.hold()
        self.rest()

    def hold(self) -> None:
        """Ask every law. Raises `Broken`."""
        self.world.look()
        self.picture.catch_up()
        for law in self.laws:
            self._ask(law, law.step())

    def _ask(self, law: Law, said: Iterator[str]) -> None:
        found = [*law.found, *said]
        law.found.clear()
        if found:
            raise Broken(law.name, "; ".join(found))

    def rest(self) -> None:
        """Heal everything, wait until all are served and nothing happens any more, and ask the laws of rest."""
        self._tell(self.world, "all troubles are over")
        heal(self.world)
        director, setting = self.world.director, self.world.setting
        quiet_s = QUIET_S + setting.schedule_s + setting.start_s + setting.boot_s + setting.stop_s
        if setting.scarred is not None:
            # What stands there outlasts every grace: held claims leave, what runs is left alone.
            director.run_for(OUTLAST_S)
        end_s = self.world.now + REST_MAX_S
        while True:
            director.run_until(self._is_as_must_be, end_s - self.world.now, every_s=LOOK_S)
            self.hold()
            # Who was served a moment ago may be on the move; what was written last comes back, and is covered.
            director.run_for(quiet_s)
            if self._is_as_must_be() or self.world.now >= end_s:
                break
        for _ in range(3):
            director.run_until(self._is_quiet, QUIET_S, every_s=0.05)
        self.hold()
        for law in self.laws:
            self._ask(law, law.rest())

    def _is_as_must_be(self) -> bool:
        self.picture.catch_up()
        return not any(said for law in self.laws for said in law.pending())

    def _is_quiet(self) -> bool:
        """Say whether every input is covered, and every binder has folded it."""
        self.picture.catch_up()
        events = self.world.journal.streams[EVENTS].last
        for process in self.world.processes.values():
            follower = process.binder.follower if process.binder is not None else None
            if follower is not None and follower.book.state.events_seq != events:
                return False
        return self.picture.sequence == events

    def digest(self) -> str:
        """Return a digest over all that both streams hold."""
        told = hashlib.sha256()
        for stream in (EVENTS, DECISIONS):
            for message in self.world.journal.streams[stream].messages:
                told.update(canonical(message))
        return told.hexdigest()


def heal(world: World) -> None:
    """End all troubles: everyone is back, but for a node that bears a scar; nobody stands in the way."""
    world.weather.clear()
    for process in world.processes.values():
        process.lane.thaw()
    for number in range(len(world.setting.cards)):
        Refuses(number).begin(world)
        if number == world.setting.scarred:
            continue
        if world.cluster.find(NODE, node_name(number)) is None:
            AddNode(number).begin(world)
        for act in (NodeUp(number), PluginBack(number), Untaint(number)):
            act.begin(world)
    for pod in world.cluster.objects(POD):
        name = meta(pod)["name"]
        if name.startswith("grab-"):
            LetGo(int(name.removeprefix("grab-"))).begin(world)
    for vm in world.cluster.objects(VM):
        # A backup may hold the VM and not yet its disk.
        if has_own_disk(vm) and world.cluster.find(PVC, key_of(vm)) is None:
            create_disk(world, meta(vm)["namespace"], meta(vm)["name"])
    for name in CLASSES:
        if world.cluster.find(GPU_CLASS, name) is None:
            CreateClass(name).begin(world)
    if dig(world.cluster.find(GPU_CLASS, "card") or {}, "spec", "resourceName") != CARD:
        EditClass("card", CARD).begin(world)
    for number in range(VMS):
        Ungate(number).begin(world)
        Bar(number, bars=False).begin(world)
    # Nobody is woken by a change that changes nothing: who was not woken before shows.
    if dig(world.cluster.find(CONFIGMAP, f"{SYSTEM}/{SETTINGS_CONFIGMAP}") or {}, "data", SETTING_PAUSED) == "true":
        Pause(paused=False).begin(world)
    if world.halted:
        Say(Order.RESUME).begin(world)
    for tenant in range(len(TENANTS)):
        CreateNamespace(tenant).begin(world)


def lived(
    seed: int,
    setting: Setting,
    steps: Sequence[Step],
    tell: Callable[[World, str], None] = lambda _, __: None,
    laws: Sequence[type[Law]] = LAWS,
) -> Lived:
    """Live a world under laws and tell what became of it."""
    life = Life(seed, setting, tell, laws)
    world, broken = life.world, None
    # What the collector finds, and when, must not depend on the worlds before this one.
    if seed % COLLECT_EVERY == 0:
        gc.collect()
    gc.disable()
    with worlds_own_chance(world):
        try:
            life.run(steps)
        except Broken as crime:
            broken = crime
        except NeverRests as restless:
            broken = Broken("Rest", str(restless))
        finally:
            at_s = world.now
            world.end()
            gc.enable()
    return Lived(broken, at_s, len(steps), world.journal.streams[EVENTS].last, life.picture.frames, life.digest())
