"""Follows the log and makes it visible: newest decision per set, sets side by side, outcomes sent back."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec
import structlog
from msgspec.structs import replace
from structlog.contextvars import bind_contextvars, clear_contextvars

from binder.follower import Follower
from binder.journal import Journal
from binder.kube import Kube
from binder.state import GpuSet, Holding, State
from projector.again import Again
from projector.apply import Applier
from projector.budget_counts import BudgetCounts
from projector.clock import wall
from projector.counts import ClassCounts
from projector.effects import AnyEffect, Stage
from projector.lanes import QUICKLY, SLOWLY, Lanes, Pace
from projector.outbox import Outbox
from projector.plan import Single, guards_told, is_open, plan, single, undecided
from projector.plan_held import held_by, is_open_held, plan_held
from projector.plan_licences import LicenceEffect, licence_effect, open_licences
from projector.positions import QueuePositions
from projector.tally import Tally, log_keys
from projector.tenant_budgets import TenantBudgets
from projector.usage_records import UsageRecords
from projector.verdicts import Kind, Verdict
from schemas import decisions as d
from schemas.events import Outcome
from schemas.objects import Stamp

SETS_AT_ONCE = 64
ACTION_SET = "set"
ACTION_HELD = "held"

log = structlog.get_logger()


class _One(msgspec.Struct, frozen=True):
    """An object to write or to delete, and the decision that said so where it was seen. `again`: it landed before."""

    effect: Single | LicenceEffect
    stamp: Stamp = Stamp()
    again: bool = False


class _Set(msgspec.Struct, frozen=True):
    """A set with the held claims that its VMI holds."""

    gpu_set: GpuSet
    held: tuple[Holding, ...] = ()


class _Closed(msgspec.Struct, frozen=True):
    """A set that is forgotten, or a claim that goes with a set from now on: in its lane, so that no write comes after.

    What is under way there has an older stamp than what follows elsewhere, and the API server holds it to that (T22).
    """


class Projector:
    """Writes what the log decided. Run one at a time: a second one is refused by the stamps, not kept away.

    `instance` names this process in Kubernetes events. `home`: the namespace of settings and of the key for digests.
    `sets_at_once` bounds the sets being written.
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
        home: str = "",
    ) -> None:
        self._applier = Applier(kube, instance=instance, home=home, clock=clock)
        self.class_counts, self.budget_counts = ClassCounts(kube, clock), BudgetCounts(kube)
        self._counts = (self.class_counts, self.budget_counts, TenantBudgets(kube), QueuePositions(kube))
        self._usage = UsageRecords(kube)
        self._outbox = Outbox(journal)
        self._lanes: Lanes[_Set | Holding | _One | _Closed] = Lanes()
        self._again = Again(self._counts, lambda *said: self._lanes.put(said[0], _One(said[1], said[2], again=True)))
        self._holders: dict[str, tuple[str, ...]] = {}
        self._sets_at_once = sets_at_once
        self.tally = Tally(self._lanes)

    async def run(self, follower: Follower) -> None:
        """Fold to the tail, write what is not known to have landed, then follow for ever."""
        # 1. Nothing is written before the tail is known: only the newest decision counts (T22).
        self.begin(await follower.start())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.work())
            for counts in self._counts:
                tasks.create_task(counts.run(follower.book))
                counts.changed()
            tasks.create_task(self._usage.run(follower.book))
            tasks.create_task(self._again.run(follower.book))
            # 2. Each step only says which sets changed; the newest decision of each is written.
            async for step in follower.steps():
                self.take(step.state, step.touched, step.decided)
                self._usage.take(step.state, step.touched, step.decided)
                self._again.take(follower.book)
                for counts in self._counts:
                    counts.changed()

    def begin(self, state: State) -> None:
        """Take up every set and claim whose writes are not known to have landed, and what was told to go."""
        for uid, gpu_set in sorted(state.sets.items()):
            self._hold(state, uid, gpu_set)
            held = held_by(state, gpu_set)
            if is_open(gpu_set, held):
                self._lanes.put(uid, _Set(gpu_set, held))
        for _, holding in sorted(state.holdings.items()):
            if holding.attached is None and is_open_held(holding):
                self._lanes.put(holding.claim.uid, holding)
        for stray in undecided(state):
            self._lanes.put(stray.uid, _One(stray))
        for guard, stamp in guards_told(state):
            self._lanes.put(guard.uid, _One(guard, stamp))
        for key, effect, stamp in open_licences(state):
            self._lanes.put(key, _One(effect, stamp))

    def take(self, state: State, touched: Iterable[str], decided: Iterable[tuple[Stamp, d.Decision]]) -> None:
        """Take up the sets that decisions changed, the held claims that they speak of, and single objects."""
        for uid in touched:
            self._take_set(state, uid)
        for stamp, decision in decided:
            match decision:
                case d.HeldPlaced() | d.HeldLost() | d.HeldWaits() | d.HeldAdopted():
                    for claim in decision.claims:
                        self._take_held(state, f"{decision.namespace}/{claim.name}")
                case d.HeldFreed():
                    self._take_held(state, f"{decision.namespace}/{decision.name}")
                case d.ClaimDropped() | d.ClassGuarded() | d.ClassFreed():
                    self._lanes.put(decision.uid, _One(single(decision), stamp))
                case d.LicenceCopied() | d.LicenceDropped() | d.LicenceBlocked() | d.LicenceMissing():
                    key, effect = licence_effect(decision, stamp)
                    self._lanes.put(key, _One(effect, stamp))
                case _:
                    pass

    def _take_set(self, state: State, uid: str) -> None:
        gpu_set = state.sets.get(uid)
        if gpu_set is None:
            self._lanes.put(uid, _Closed())
        else:
            held = held_by(state, gpu_set)
            if is_open(gpu_set, held):
                self._lanes.put(uid, _Set(gpu_set, held))
        for key in self._hold(state, uid, gpu_set):
            self._take_held(state, key)

    def _hold(self, state: State, uid: str, gpu_set: GpuSet | None) -> list[str]:
        """Note which claims a set's VMI holds; return those that it holds no more."""
        before = self._holders.pop(uid, ())
        held = held_by(state, gpu_set) if gpu_set is not None else ()
        keys = tuple(f"{one.namespace}/{one.claim.name}" for one in held)
        if keys:
            self._holders[uid] = keys
        for one, key in zip(held, keys, strict=True):
            if key not in before:
                self._lanes.put(one.claim.uid, _Closed())
        return [key for key in before if key not in keys]

    def _take_held(self, state: State, key: str) -> None:
        """Take up a held claim: with its set where a VMI holds it, else by itself."""
        holding = state.holdings.get(key)
        gpu_set = state.sets.get(holding.attached.uid) if holding is not None and holding.attached is not None else None
        if gpu_set is not None:
            self._lanes.put(gpu_set.vmi.uid, _Set(gpu_set, held_by(state, gpu_set)))
        elif holding is not None and is_open_held(holding):
            self._lanes.put(holding.claim.uid, holding)

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
            pace = await self._write(key, item)
            if pace is None:
                self._lanes.done(key)
            else:
                self._lanes.again(key, item, pace)

    async def _write(self, key: str, item: _Set | Holding | _One | _Closed) -> Pace | None:
        """Write one item; return how soon to do it again, None where there is no more to do about it."""
        clear_contextvars()
        match item:
            case _Set():
                return await self._project_set(key, item)
            case Holding():
                outcome = _outcome_of(item)
                return await self._project(key, outcome, plan_held(item), lambda effect: _of(outcome, effect))
            case _One():
                effect = item.effect
                outcome = Outcome(effect.action, effect.vmi.namespace, effect.name, "", item.stamp)
                verdict = await self._applier.perform(effect)
                # What was reported once is not reported at each look.
                done = item.again and verdict.kind in {Kind.LANDED, Kind.SETTLED}
                return None if done else self._ended(key, outcome, verdict)
            case _Closed():
                self._applier.forget(key)
                return None

    async def _project_set(self, uid: str, item: _Set) -> Pace | None:
        vmi, stamp = item.gpu_set.vmi, item.gpu_set.stamp
        bind_contextvars(vm=vmi.name)
        outcome = Outcome(ACTION_SET, vmi.namespace, vmi.name, uid, stamp)
        stages = plan(item.gpu_set, item.held)
        # What was decided on a claim alone, since its VMI's set was last decided on, is reported for itself.
        news = tuple(_outcome_of(one) for one in item.held if one.stamp > stamp)
        return await self._project(
            uid,
            outcome,
            stages,
            lambda effect: replace(_of(outcome, effect), name=effect.name),
            news,
            anew=bool(item.gpu_set.pod_uid) and not item.gpu_set.pinned,
        )

    async def _project(
        self,
        key: str,
        outcome: Outcome,
        stages: tuple[Stage, ...],
        about: Callable[[AnyEffect], Outcome],
        news: tuple[Outcome, ...] = (),
        *,
        anew: bool = False,
    ) -> Pace | None:
        """Write stage by stage, until a newer decision overtakes it or a stage can't land.

        `outcome`: of all of it, `about`: of one effect, `news`: what else has landed then. `anew`: a refusal is
        decided upon by the binder, which has units to give back.
        """
        for stage in stages:
            effect, verdict = await self._applier.stage(stage)
            if self._lanes.overtaken(key):
                return None
            if verdict.kind is Kind.SETTLED:
                break
            if verdict.kind is not Kind.LANDED:
                return self._ended(key, about(effect), verdict, anew=anew)
        for landed in (outcome, *news):
            self.tally.count(landed, Kind.LANDED)
            self._outbox.add(landed)
        return None

    def _ended(self, key: str, outcome: Outcome, verdict: Verdict, *, anew: bool = False) -> Pace | None:
        """Report how a write ended; return how soon it is tried again, None where that was the end of it.

        What nobody decides anew would never be shown: a refusal is reported once, and tried again ever more slowly.
        """
        said = log_keys(outcome)
        self.tally.count(outcome, verdict.kind)
        match verdict.kind:
            case Kind.AGAIN:
                log.warning("write.unclear", **said, code=verdict.code, reason=verdict.reason)
                return QUICKLY
            case Kind.BEHIND:
                log.warning("write.behind-the-log", **said)
            case Kind.LANDED | Kind.SETTLED:
                self._outbox.add(outcome)
            case Kind.REFUSED:
                outcome = replace(outcome, code=verdict.code, reason=verdict.reason, field=verdict.field)
                log.warning("write.refused", **said, code=verdict.code, reason=verdict.reason, field=verdict.field)
                if anew or not self._lanes.was_refused(key):
                    self._outbox.add(outcome)
                return None if anew else SLOWLY
        return None


def _of(outcome: Outcome, effect: AnyEffect) -> Outcome:
    """Say which effect it was that ended so."""
    return replace(outcome, action=effect.action)


def _outcome_of(holding: Holding) -> Outcome:
    """Report on a held claim: no VMI is named, so that the claim itself is meant."""
    return Outcome(ACTION_HELD, holding.namespace, holding.claim.name, "", holding.stamp)
