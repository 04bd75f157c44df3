"""Follows the log and makes it visible: newest decision per set, sets side by side, outcomes sent back."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec
import structlog
from msgspec.structs import replace

from binder.follower import Follower
from binder.journal import Journal
from binder.kube import Kube
from binder.state import GpuSet, State
from projector.apply import Applier, wall
from projector.counts import ClassCounts
from projector.effects import AnyEffect, DropClaim
from projector.lanes import Lanes
from projector.outbox import Outbox
from projector.plan import drop, is_open, plan, undecided
from projector.usage_records import UsageRecords
from projector.verdicts import Kind, Verdict
from schemas.decisions import ClaimDropped, Decision
from schemas.events import Outcome
from schemas.objects import Stamp

SETS_AT_ONCE = 64
ACTION_SET = "set"

log = structlog.get_logger()


class _Drop(msgspec.Struct, frozen=True):
    """A claim to delete, and the decision that said so where it was seen."""

    effect: DropClaim
    stamp: Stamp = Stamp()


class _Closed(msgspec.Struct, frozen=True):
    """A set that is forgotten: in its lane, so that no write of it comes after."""


class Projector:
    """Writes what the log decided. Run one at a time: a second one is refused by the stamps, not kept away.

    `instance` names this process in Kubernetes events. `sets_at_once` bounds the sets being written.
    Without a follower: `begin(state)`, `take(...)` by hand beside a running `work()`.
    """

    def __init__(
        self,
        kube: Kube,
        journal: Journal,
        *,
        instance: str,
        clock: Callable[[], datetime] = wall,
        sets_at_once: int = SETS_AT_ONCE,
    ) -> None:
        self._applier = Applier(kube, instance=instance, clock=clock)
        self._counts = ClassCounts(kube)
        self._usage = UsageRecords(kube)
        self._outbox = Outbox(journal)
        self._lanes: Lanes[GpuSet | _Drop | _Closed] = Lanes()
        self._sets_at_once = sets_at_once

    async def run(self, follower: Follower) -> None:
        """Fold to the tail, write what is not known to have landed, then follow for ever."""
        # 1. Nothing is written before the tail is known: only the newest decision counts (T22).
        self.begin(await follower.start())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.work())
            tasks.create_task(self._counts.run(follower.book))
            tasks.create_task(self._usage.run(follower.book))
            self._counts.changed()
            # 2. Each step only says which sets changed; the newest decision of each is written.
            async for step in follower.steps():
                self.take(step.state, step.touched, step.decided)
                self._usage.take(step.state, step.touched, step.decided)
                self._counts.changed()

    def begin(self, state: State) -> None:
        """Take up every set whose writes are not known to have landed, and every claim that was told to go."""
        for uid, gpu_set in sorted(state.sets.items()):
            if is_open(gpu_set):
                self._lanes.put(uid, gpu_set)
        for effect in undecided(state):
            self._lanes.put(effect.uid, _Drop(effect))

    def take(self, state: State, touched: Iterable[str], decided: Iterable[tuple[Stamp, Decision]]) -> None:
        """Take up the sets that decisions changed."""
        for uid in touched:
            gpu_set = state.sets.get(uid)
            if gpu_set is None:
                self._lanes.put(uid, _Closed())
            elif is_open(gpu_set):
                self._lanes.put(uid, gpu_set)
        for stamp, decision in decided:
            if isinstance(decision, ClaimDropped):
                self._lanes.put(decision.uid, _Drop(drop(decision), stamp))

    async def work(self) -> None:
        """Write and report for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._outbox.run())
            for _ in range(self._sets_at_once):
                tasks.create_task(self._worker())

    async def idle(self) -> None:
        """Wait until all that was taken up is written and reported."""
        await self._lanes.idle()
        await self._outbox.idle()

    async def _worker(self) -> None:
        while True:
            key, item = await self._lanes.take()
            if await self._write(key, item):
                self._lanes.done(key)
            else:
                self._lanes.again(key, item)

    async def _write(self, key: str, item: GpuSet | _Drop | _Closed) -> bool:
        """Write one item; return whether there is no more to do about it."""
        match item:
            case GpuSet():
                return await self._project(key, item)
            case _Drop():
                return self._ended(item.effect, item.stamp, await self._applier.perform(item.effect))
            case _Closed():
                self._applier.forget(key)
                return True

    async def _project(self, uid: str, gpu_set: GpuSet) -> bool:
        """Write one set stage by stage, until a newer decision overtakes it or a stage can't land."""
        for stage in plan(gpu_set):
            effect, verdict = await self._applier.stage(stage)
            if self._lanes.overtaken(uid):
                return True
            if verdict.kind is Kind.SETTLED:
                break
            if verdict.kind is not Kind.LANDED:
                return self._ended(effect, gpu_set.stamp, verdict)
        vmi = gpu_set.vmi
        self._outbox.add(Outcome(ACTION_SET, vmi.namespace, vmi.name, vmi.uid, gpu_set.stamp))
        return True

    def _ended(self, effect: AnyEffect, stamp: Stamp, verdict: Verdict) -> bool:
        """Report how a write ended; return whether that was the end of it."""
        vmi = effect.vmi
        outcome = Outcome(effect.action, vmi.namespace, effect.name, vmi.uid, stamp)
        about = msgspec.to_builtins(outcome)
        match verdict.kind:
            case Kind.AGAIN:
                log.warning("write.unclear", **about, code=verdict.code, reason=verdict.reason)
                return False
            case Kind.BEHIND:
                log.warning("write.behind-the-log", **about)
                return True
            case Kind.LANDED | Kind.SETTLED:
                self._outbox.add(outcome)
            case Kind.REFUSED:
                outcome = replace(outcome, code=verdict.code, reason=verdict.reason, field=verdict.field)
                log.warning("write.refused", **msgspec.to_builtins(outcome))
                self._outbox.add(outcome)
        return True
