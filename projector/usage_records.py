"""Usage records: each GPU claim has one Workload, owned by it, that says which units it holds where (F2, F3).

What stands there is compared with what was decided whenever either changes, so that nobody's edit stays. They
are kept whether the feature is on or off, and no monitor has a part in them.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec
import structlog

from binder.book import Book
from binder.kube import ApiError, Kube
from binder.state import State
from projector.claim_records import MirroredClaim, read_claim, read_claim_record, record_of, stamp_of
from projector.mirror import Mirror
from projector.reads import read
from projector.records import Record, Records, SeenRecord, shows
from projector.rounds import Looked, Rounds
from projector.verdicts import Kind
from schemas.decisions import (
    Adopted,
    Decision,
    HeldAdopted,
    HeldClaim,
    HeldFreed,
    HeldLost,
    HeldPlaced,
    HeldWaits,
    TemplateClaim,
)
from schemas.kinds import GPU_CLAIM, WORKLOAD
from schemas.objects import Stamp
from schemas.stamping import stamp_text
from schemas.writes import SeenClaim

REMADE_S: Final = (1.0, 600.0)
"""Seconds before a record that somebody deleted is made again: doubling between these."""
REMADE_FORGOTTEN_S: Final = 3600.0
BEYOND_S: Final = 300.0
"""So long a stamp beyond what we have folded is believed: by then its writer would have been heard of."""

log = structlog.get_logger()


class _Loss(msgspec.Struct, frozen=True):
    """A record that somebody deleted under its claim: how often so far, when last, when it is made again."""

    times: int
    at: float
    due: float


class UsageRecords:
    """Keeps the records true. `take(...)` after each step of the log; `run(book)` beside it."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._state: State | None = None
        self._claims = Mirror(kube, GPU_CLAIM, read_claim, self._claim_changed, self._all)
        self._seen = Mirror(kube, WORKLOAD, read_claim_record, self._record_changed, self._all)
        self._records = Records(kube, self._seen)
        self._rounds = Rounds(self._look)
        self._named: dict[tuple[str, str], str] = {}
        self._losses: dict[str, _Loss] = {}
        self._beyond: dict[str, float] = {}
        self._refused: dict[str, str] = {}

    async def run(self, book: Book) -> None:
        """Write for ever what differs from what was decided."""
        self._state = book.state
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._claims.run())
            tasks.create_task(self._seen.run())
            tasks.create_task(self._rounds.run())

    def take(self, state: State, touched: Iterable[str], decided: Iterable[tuple[Stamp, Decision]]) -> None:
        """Look at the claims that decisions concern: of the sets `touched`, and those held."""
        for uid in touched:
            gpu_set = state.sets.get(uid)
            if gpu_set is not None:
                claims: tuple[TemplateClaim | HeldClaim, ...] = (*gpu_set.claims, *gpu_set.held)
                for claim in claims:
                    self._rounds.put(f"{gpu_set.vmi.namespace}/{claim.name}")
        for _, decision in decided:
            match decision:
                case Adopted():
                    self._all()
                case HeldPlaced() | HeldLost() | HeldWaits() | HeldAdopted():
                    for held in decision.claims:
                        self._rounds.put(f"{decision.namespace}/{held.name}")
                case HeldFreed():
                    self._rounds.put(f"{decision.namespace}/{decision.name}")
                case _:
                    pass

    def _all(self) -> None:
        if self._claims.synced and self._seen.synced:
            for claim in self._claims.everything():
                self._rounds.put(claim.key)

    def _claim_changed(self, before: MirroredClaim | None, after: MirroredClaim | None) -> None:
        if after is not None:
            self._named[after.namespace, after.record] = after.name
            self._rounds.put(after.key)
        elif before is not None:
            self._named.pop((before.namespace, before.record), None)
        if before is not None and (after is None or after.uid != before.uid):
            for table in (self._losses, self._beyond, self._refused):
                table.pop(before.uid, None)

    def _record_changed(self, before: SeenRecord | None, after: SeenRecord | None) -> None:
        record = after or before
        assert record is not None
        claim = self._claims.get(record.namespace, self._named.get((record.namespace, record.name), ""))
        if claim is None:
            return
        if after is None and record.owned_by(claim.uid) and not record.deleting and self._seen.synced:
            self._lost(claim)
        self._rounds.put(claim.key)

    def _lost(self, claim: MirroredClaim) -> None:
        """Note that a record went before its claim; it is made again, later each time."""
        now = asyncio.get_running_loop().time()
        before = self._losses.get(claim.uid)
        times = before.times if before is not None and now - before.at < REMADE_FORGOTTEN_S else 0
        first, most = REMADE_S
        delay = min(first * 2 ** min(times, 16), most)
        self._losses[claim.uid] = _Loss(times + 1, now, now + delay)
        self._rounds.later(claim.key, delay)

    async def _look(self, key: str) -> Looked:
        """Compare one claim's record with what was decided, and write it where they differ."""
        claim = self._claims.get(*key.split("/", 1))
        if (
            self._state is None
            or self._state.adopting
            or claim is None
            or not (self._claims.synced and self._seen.synced)
        ):
            return Looked.DONE
        record = record_of(self._state, claim)
        if record is None:
            return Looked.DONE
        seen = self._seen.get(record.namespace, record.name)
        if seen is None:
            return await self._make(claim, record)
        if seen.deleting or shows(seen, record):
            return Looked.DONE
        if seen.owned_by(claim.uid) and self._is_ahead(claim, seen):
            return Looked.AGAIN
        return await self._write(claim, record)

    async def _make(self, claim: MirroredClaim, record: Record) -> Looked:
        loss = self._losses.get(claim.uid)
        if loss is None:
            return await self._write(claim, record)
        if asyncio.get_running_loop().time() < loss.due:
            return Looked.DONE
        try:
            found = await read(self._kube, GPU_CLAIM, claim.namespace, claim.name, SeenClaim)
        except ApiError:
            return Looked.AGAIN
        if found is None or found.metadata.uid != claim.uid:
            # Collected with its claim: ours was the slower watch.
            return Looked.DONE
        log.warning(
            "a usage record was deleted while its claim stands; it is made again",
            claim=claim.key,
            times=loss.times,
            remedy="have that controller leave Workloads alone that a GPUClaim owns; see docs/usage.md",
        )
        return await self._write(claim, record)

    def _is_ahead(self, claim: MirroredClaim, seen: SeenRecord) -> bool:
        """Say whether the record may show a decision that we have not heard of: then we are the past (T22)."""
        shown, state = stamp_of(seen), self._state
        assert state is not None
        if (shown.generation, shown.sequence) <= (state.generation, state.events_seq):
            self._beyond.pop(claim.uid, None)
            return False
        now = asyncio.get_running_loop().time()
        since = self._beyond.setdefault(claim.uid, now)
        if since == now:
            log.warning("a usage record shows what the log does not say yet", claim=claim.key, shows=stamp_text(shown))
        return now - since < BEYOND_S

    async def _write(self, claim: MirroredClaim, record: Record) -> Looked:
        verdict = await self._records.write(record)
        if verdict.kind is Kind.REFUSED:
            if self._refused.get(claim.uid) != verdict.reason:
                self._refused[claim.uid] = verdict.reason
                why = {"code": verdict.code, "reason": verdict.reason, "field": verdict.field}
                log.warning("a usage record was refused", record=f"{record.namespace}/{record.name}", **why)
            return Looked.AGAIN
        self._refused.pop(claim.uid, None)
        if verdict.kind is Kind.AGAIN:
            return Looked.AGAIN
        return Looked.WROTE if verdict.kind is Kind.LANDED else Looked.DONE
