"""The demo's play: the real pipeline over a cluster in memory and a real nats-server, told scene by scene.

Cluster and KubeVirt are models; ingest, binder, webhooks, projector and the log are the program's own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec

from binder.anchor import Anchor
from binder.audit import Auditor, Report
from binder.book import Book
from binder.evolve import may_place
from binder.explain import Explanation, explain
from binder.follower import Follower
from binder.journal import Unavailable, Unclear
from binder.kube import Kube, PatchKind
from binder.snapshot import state_digest
from deploy.adopt import adopt_fresh
from deploy.cluster_in_memory import Cluster, running
from deploy.roles import Place, run_binder, run_ingest, run_projector
from deploy.world.dump import Loaded
from deploy.world.manifests import Obj, decode, dig, encode, key_of, meta
from schemas.admission import ACCOUNTS_GROUP
from schemas.decisions import Decision, Refused
from schemas.kinds import GPU_CLASS, NODE, VM
from schemas.names import REFERENCE_LABEL, REFERENCE_VALUE
from schemas.reasons import Wait
from schemas.streams import DECISIONS, EVENTS

NAMESPACE = "gpubinder-system"
PATIENCE_S = 300.0
QUIET_S = 1.5
"""What is not decided after so much silence was refused, or is none of ours."""

SILENCE_S = 60.0
"""What has to come is given up after so much silence."""

REST_S = 0.1


class Proof(msgspec.Struct, frozen=True):
    """The log held against itself: `live` and `replayed` are digests of the state as lived and as derived anew."""

    report: Report
    live: str
    replayed: str

    @property
    def agrees(self) -> bool:
        """Say whether log, decisions and state are one."""
        return self.report.whole and self.live == self.replayed


class Change(msgspec.Struct, frozen=True):
    """One VM is stopped so that another starts: both as (namespace, name), and how long that took."""

    stopped: tuple[str, str]
    started: tuple[str, str]
    node: str
    took_ns: int


class Demo:
    """A cluster under the program's care. Made by `staged`."""

    def __init__(self, cluster: Cluster, place: Place) -> None:
        self._cluster, self._api, self._place = cluster, cluster.api, place
        self._follower = Follower(place.journal)
        self._news = asyncio.Event()
        self._folded, self._decided = self._follower.tip, 0
        self.refused: dict[tuple[str, str], str] = {}

    @property
    def loaded(self) -> Loaded:
        """What of the dump was taken, and what was left out."""
        return self._cluster.loaded

    @property
    def book(self) -> Book:
        """The state as the log has told it so far."""
        return self._follower.book

    async def follow(self) -> None:
        """Follow the log for ever."""
        async for step in self._follower.steps():
            for _, decision in step.decided:
                self._hear(decision)
            self._folded = self._follower.tip
            self._decided += bool(step.decided)
            self._news.set()

    def _hear(self, decision: Decision) -> None:
        if isinstance(decision, Refused):
            self.refused[decision.namespace, decision.name] = decision.message

    async def until(self, reached: Callable[[], bool], *, quiet_s: float = SILENCE_S) -> bool:
        """Wait until a thing is so; False after so much silence, or when patience ends.

        Silence is counted in looks, not by the clock: a machine that stands still for seconds has looked once.
        """
        loop = asyncio.get_running_loop()
        end, silent, decided = loop.time() + PATIENCE_S, 0, self._decided
        while not reached():
            self._news.clear()
            try:
                async with asyncio.timeout(REST_S):
                    await self._news.wait()
            except TimeoutError:
                silent += not await self._is_behind()
            # That time passes is told every few seconds, and is no news.
            if decided != (decided := self._decided):
                silent = 0
            elif silent * REST_S >= quiet_s or loop.time() >= end:
                return reached()
        return True

    async def _is_behind(self) -> bool:
        """Say whether something is stored that was not decided yet; a slow disk answers late."""
        try:
            return (await self._place.journal.info(EVENTS)).last > self._folded.covers_to
        except (Unavailable, Unclear):
            return True

    async def ready(self) -> None:
        """Wait until the binder has seen everything and may place."""
        await self.until(lambda: may_place(self.book.state))

    def machines(self) -> list[Obj]:
        """Return the VMs that ask for GPUs, oldest first."""
        ours = [vm for vm in self._machines() if _label(vm) == REFERENCE_VALUE]
        return sorted(ours, key=lambda vm: (meta(vm).get("creationTimestamp") or "", key_of(vm)))

    def _machines(self) -> list[Obj]:
        return [change.object for change in self._api.store.collection(VM).objects.values()]

    def count(self) -> dict[str, int]:
        """Return how many nodes, classes and VMs there are."""
        kinds = {"nodes": NODE, "classes": GPU_CLASS}
        held = {name: len(self._api.store.collection(kind).objects) for name, kind in kinds.items()}
        vms = [*self._machines(), *self._cluster.starting]
        return held | {"vms": len(vms), "asking": sum(_label(vm) == REFERENCE_VALUE for vm in vms)}

    def told(self, vm: Obj) -> Explanation:
        """Return where the VM runs or why it waits; a refused start is told with the words its owner read."""
        namespace, name = meta(vm)["namespace"], meta(vm)["name"]
        found = explain(self.book, namespace, name)
        refusal = self.refused.get((namespace, name))
        if found.phase == "NotStarted" and refusal:
            return msgspec.structs.replace(found, phase="Refused", summary=refusal)
        return found

    async def settle(self) -> list[Explanation]:
        """Wait until each started VM runs, waits or is refused, and return what is told of each."""
        for vm in self._cluster.starting:
            self._cluster.load([vm])
            await self._settled()
        await self._settled()
        return [self.told(vm) for vm in self.machines()]

    async def _settled(self) -> None:
        def settled() -> bool:
            seen = all(self.book.state.vm(key_of(vm)) is not None for vm in self.machines())
            return seen and all(self._is_settled(vm) for vm in self.machines() if _wanted(vm))

        await self.until(settled, quiet_s=QUIET_S)

    def _is_settled(self, vm: Obj) -> bool:
        found = self.told(vm)
        return found.phase in {"Waiting", "Refused"} or (found.phase == "Placed" and found.pinned)

    async def make_room(self) -> Change | None:
        """Stop the smallest VM that keeps a waiting one out, and wait until that one has its place."""
        told = [self.told(vm) for vm in self.machines()]
        waiting = sorted((one for one in told if one.reason is Wait.NO_ROOM), key=lambda one: one.place)
        for short in waiting:
            victim = self._in_the_way(short, told)
            if victim is None:
                continue
            loop = asyncio.get_running_loop()
            began = loop.time()
            await self._halt(victim.namespace, victim.name)

            def placed(namespace: str = short.namespace, name: str = short.name) -> bool:
                found = explain(self.book, namespace, name)
                return found.phase == "Placed" and found.pinned

            if not await self.until(placed):
                return None
            took = round((loop.time() - began) * 1_000_000_000)
            node = explain(self.book, short.namespace, short.name).node
            return Change((victim.namespace, victim.name), (short.namespace, short.name), node, took)
        return None

    def _in_the_way(self, short: Explanation, told: Iterable[Explanation]) -> Explanation | None:
        """Return the smallest placed VM whose end would let the waiting one in."""
        missing = {
            verdict.node: {resource: count - verdict.free[resource] for resource, count in _units(short).items()}
            for verdict in short.nodes
            if verdict.reason is Wait.NO_ROOM
        }
        fits = [
            (sum(_units(one).values()), one.namespace, one.name, one)
            for one in told
            if one.phase == "Placed"
            and one.node in missing
            and all(_units(one).get(resource, 0) >= count for resource, count in missing[one.node].items())
        ]
        return min(fits, key=lambda fit: fit[:3])[3] if fits else None

    async def _halt(self, namespace: str, name: str) -> None:
        spec = decode(await self._api.get(VM, namespace, name))["spec"]
        stop: Obj = {"running": False} if "running" in spec else {"runStrategy": "Halted"}
        await self._api.patch(VM, namespace, name, encode({"spec": stop}), kind=PatchKind.MERGE)

    async def rest(self) -> None:
        """Wait until what was written has come back, and all that came is covered by the log."""
        covered = -1
        while covered != (covered := (await self._place.journal.info(EVENTS)).last):
            await self.until(lambda last=covered: self._folded.covers_to >= last)  # type: ignore[misc]  # a loop's own
            await asyncio.sleep(REST_S)

    async def follow_to_the_end(self) -> None:
        """Wait until all is folded that the log holds; what was on its way when its writers ended may still come."""
        end = -1
        while end != (end := (await self._place.journal.info(DECISIONS)).last):
            await self.until(lambda last=end: self._folded.sequence >= last)  # type: ignore[misc]  # a loop's own
            await asyncio.sleep(REST_S)

    async def prove(self) -> Proof:
        """Replay the log from its first message, derive each decision again, and compare with what was lived."""
        auditor = Auditor(self._place.journal)
        report = await auditor.verify(await Anchor(self._place.kube, NAMESPACE).read())
        live = state_digest(self.book.state)
        return Proof(report, live, state_digest(auditor.follower.book.state))


def _label(vm: Obj) -> object:
    return (dig(vm, "spec", "template", "metadata", "labels") or {}).get(REFERENCE_LABEL)


def _wanted(vm: Obj) -> bool:
    strategy = dig(vm, "spec", "runStrategy")
    return bool(dig(vm, "spec", "running")) if strategy is None else strategy not in {"Halted", "Manual"}


def _units(told: Explanation) -> dict[str, int]:
    units: dict[str, int] = {}
    for claim in told.claims:
        units[claim.resource] = units.get(claim.resource, 0) + claim.count
    return units


@asynccontextmanager
async def staged(objects: Iterable[Obj], place: Callable[[Kube], Place]) -> AsyncIterator[Demo]:
    """Load a cluster, begin a log and run everything on it; after the block all parts have come to rest."""
    cluster = Cluster(objects)
    cluster.api.writes.seed_namespace(NAMESPACE)
    here = place(cluster.api.as_user(f"system:serviceaccount:{NAMESPACE}:gpubinder", f"{ACCOUNTS_GROUP}{NAMESPACE}"))
    await adopt_fresh(here.kube, here.journal, NAMESPACE, here.program)
    webhooks = here.webhooks()
    cluster.register(webhooks, NAMESPACE)
    demo = Demo(cluster, here)
    parts = (run_binder(here, here.binder()), run_ingest(here), run_projector(here), webhooks.run())
    async with running(demo.follow()):
        async with running(*parts) as also:
            await demo.ready()
            for part in cluster.parts():
                also(part)
            yield demo
        # Whoever compares what was lived with the log has to have lived all of it.
        await demo.follow_to_the_end()
