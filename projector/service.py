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
from binder.licences import LicenceDecision
from binder.state import GpuSet, Holding, State
from projector.apply import Applier, wall
from projector.counts import ClassCounts
from projector.effects import AnyEffect, Stage
from projector.lanes import Lanes
from projector.outbox import Outbox
from projector.plan import Single, is_open, plan, single, undecided
from projector.plan_held import held_by, is_open_held, plan_held
from projector.plan_licences import LicenceEffect, licence_effect, open_licences
from projector.verdicts import Kind, Verdict
from schemas import decisions as d
from schemas.events import Outcome
from schemas.objects import Stamp

SETS_AT_ONCE = 64
ACTION_SET = "set"
ACTION_HELD = "held"

log = structlog.get_logger()


class _One(msgspec.Struct, frozen=True):
    """An object to write or to delete, and the decision that said so where it was seen."""

    effect: Single | LicenceEffect
    stamp: Stamp = Stamp()


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
        self._counts = ClassCounts(kube)
        self._outbox = Outbox(journal)
        self._lanes: Lanes[_Set | Holding | _One | _Closed] = Lanes()
        self._holders: dict[str, tuple[str, ...]] = {}
        self._sets_at_once = sets_at_once

    async def run(self, follower: Follower) -> None:
        """Fold to the tail, write what is not known to have landed, then follow for ever."""
        # 1. Nothing is written before the tail is known: only the newest decision counts (T22).
        self.begin(await follower.start())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.work())
            tasks.create_task(self._counts.run(follower.book))
            self._counts.changed()
            # 2. Each step only says which sets changed; the newest decision of each is written.
            async for step in follower.steps():
                self.take(step.state, step.touched, step.decided)
                self._counts.changed()

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
        for key, effect, stamp in open_licences(state):
            self._lanes.put(key, _One(effect, stamp))

    def take(self, state: State, touched: Iterable[str], decided: Iterable[tuple[Stamp, d.Decision]]) -> None:
        """Take up the sets that decisions changed, the held claims that they speak of, and single objects."""
        for uid in touched:
            self._take_set(state, uid)
        for stamp, decision in decided:
            match decision:
                case d.HeldPlaced() | d.HeldLost() | d.HeldWaits():
                    for claim in decision.claims:
                        self._take_held(state, f"{decision.namespace}/{claim.name}")
                case d.HeldFreed():
                    self._take_held(state, f"{decision.namespace}/{decision.name}")
                case d.ClaimDropped() | d.ClassGuarded() | d.ClassFreed():
                    self._lanes.put(decision.uid, _One(single(decision), stamp))
                case d.LicenceCopied() | d.LicenceDropped() | d.LicenceBlocked() | d.LicenceMissing():
                    self._lanes.put(*_in_lane(decision, stamp))
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
            if await self._write(key, item):
                self._lanes.done(key)
            else:
                self._lanes.again(key, item)

    async def _write(self, key: str, item: _Set | Holding | _One | _Closed) -> bool:
        """Write one item; return whether there is no more to do about it."""
        match item:
            case _Set():
                return await self._project_set(key, item)
            case Holding():
                outcome = _outcome_of(item)
                return await self._project(key, outcome, plan_held(item), lambda effect: _of(outcome, effect))
            case _One():
                effect = item.effect
                outcome = Outcome(effect.action, effect.vmi.namespace, effect.name, "", item.stamp)
                return self._ended(outcome, await self._applier.perform(effect))
            case _Closed():
                self._applier.forget(key)
                return True

    async def _project_set(self, uid: str, item: _Set) -> bool:
        vmi, stamp = item.gpu_set.vmi, item.gpu_set.stamp
        outcome = Outcome(ACTION_SET, vmi.namespace, vmi.name, uid, stamp)
        stages = plan(item.gpu_set, item.held)
        # What was decided on a claim alone, since its VMI's set was last decided on, is reported for itself.
        news = tuple(_outcome_of(one) for one in item.held if one.stamp > stamp)
        return await self._project(
            uid, outcome, stages, lambda effect: replace(_of(outcome, effect), name=effect.name), news
        )

    async def _project(
        self,
        key: str,
        outcome: Outcome,
        stages: tuple[Stage, ...],
        about: Callable[[AnyEffect], Outcome],
        news: tuple[Outcome, ...] = (),
    ) -> bool:
        """Write stage by stage, until a newer decision overtakes it or a stage can't land.

        `outcome`: of all of it, `about`: of one effect, `news`: what else has landed then.
        """
        for stage in stages:
            effect, verdict = await self._applier.stage(stage)
            if self._lanes.overtaken(key):
                return True
            if verdict.kind is Kind.SETTLED:
                break
            if verdict.kind is not Kind.LANDED:
                return self._ended(about(effect), verdict)
        for landed in (outcome, *news):
            self._outbox.add(landed)
        return True

    def _ended(self, outcome: Outcome, verdict: Verdict) -> bool:
        """Report how a write ended; return whether that was the end of it."""
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


def _in_lane(decision: LicenceDecision, stamp: Stamp) -> tuple[str, _One]:
    key, effect = licence_effect(decision, stamp)
    return key, _One(effect, stamp)


def _of(outcome: Outcome, effect: AnyEffect) -> Outcome:
    """Say which effect it was that ended so."""
    return replace(outcome, action=effect.action)


def _outcome_of(holding: Holding) -> Outcome:
    """Report on a held claim: no VMI is named, so that the claim itself is meant."""
    return Outcome(ACTION_HELD, holding.namespace, holding.claim.name, "", holding.stamp)
