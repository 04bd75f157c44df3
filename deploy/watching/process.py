"""What one process tells at a scrape: of itself, and of the roles that it has."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from binder.follower import Follower
from binder.state import KNOWN_KINDS
from binder.step import RULES_VERSION
from binder.written import Written, reason_of
from deploy.roles import Place
from deploy.watching.catalogue import counted, counter, gauge, histogram, single
from deploy.watching.doors import Waiting
from deploy.watching.state import KindProgress, held_metrics, log_metrics, placing_metrics
from deploy.watching.tails import Tails
from projector.budget_counts import Counted
from projector.service import ACTION_HELD, ACTION_SET, Projector
from projector.verdicts import Kind as Verdict
from schemas.streams import DECISIONS, EVENTS
from webhooks.asks import SUBJECTS
from webhooks.certificates import expires

SHARES: Mapping[str, float] = {"none": 0.0, "half": 0.5, "most": 0.9, "nearly": 1.0}
"""How much of a budget's key is used: the name of a step and the share that it ends with; then `all`, and `over`."""
ALL, OVER = "all", "over"


_EVENTS_PREFIX = "gpubinder.events."
_REQUESTS = tuple(f"request.{kind}" for kind in (*SUBJECTS.values(), "withdrawn"))
INPUT_KINDS = frozenset({*KNOWN_KINDS, *_REQUESTS, "progress", "outcome", "tick", "continue", "command"})


class Frames:
    """Counts what the leading binder of this process writes. `sequence`: the last frame it wrote, 0 before that."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sequence = 0
        self._inputs = counter(registry, "gpubinder_inputs_total")
        self._decisions = counter(registry, "gpubinder_decisions_total")
        self._frames = counter(registry, "gpubinder_frames_total")
        self._decide = histogram(registry, "gpubinder_decide_seconds")
        self._append = histogram(registry, "gpubinder_frame_append_seconds")

    def wrote(self, written: Written) -> None:
        """Count one frame."""
        self.sequence = written.sequence
        self._frames.inc()
        self._decide.observe(written.decide_seconds)
        self._append.observe(written.append_seconds)
        for message in written.inputs:
            self._inputs.labels(input_kind(message.subject)).inc()
        for entry in written.entries:
            for decision in entry.decisions:
                self._decisions.labels(str(decision.__struct_config__.tag), reason_of(decision)).inc()


def input_kind(subject: str) -> str:
    """Return what an input is, by its subject: the kind that was watched, or what it asks; `other` where unknown."""
    token = subject.removeprefix(_EVENTS_PREFIX).removeprefix("watch.")
    return token if token in INPUT_KINDS else "other"


class Watched(Collector):
    """A place's gauges, read at each scrape.

    `pending`: what waits for NATS; `frames`: what its binder writes; `budgets`: also those of each tenant.
    """

    def __init__(
        self,
        place: Place,
        tails: Tails,
        pending: Waiting,
        frames: Frames | None,
        *,
        certificate: Path | None = None,
        budgets: bool = False,
    ) -> None:
        self._place, self._tails, self._pending, self._frames = place, tails, pending, frames
        self._certificate, self._budgets = certificate, budgets
        self._kinds = KindProgress()
        self.stopped = ""

    @override
    def collect(self) -> Iterable[Metric]:
        standing = self._place.standing
        yield gauge("gpubinder_build_info", [((self._place.program, str(RULES_VERSION)), 1.0)])
        leading = sorted((str(role), float(one.leading)) for role, one in standing.elections.items())
        yield gauge("gpubinder_leading", [((role,), value) for role, value in leading])
        yield gauge("gpubinder_stopped", [((self.stopped,), 1.0)] if self.stopped else [])
        yield single("gpubinder_nats_connected", float(self._place.questions.connected))
        yield single("gpubinder_append_waiting_seconds", self._pending.oldest_seconds())
        yield from self._tails.collect()
        yield from self._lags()
        if self._certificate is not None:
            yield from self._certificate_end(self._certificate)
        follower = standing.binder.follower if standing.binder else None
        if follower is not None:
            yield from log_metrics(follower.tip, self._sequence(follower), follower.book)
            yield from placing_metrics(follower.book)
            yield from self._kinds.collect(follower.book)
            yield from self._snapshot(follower)
        if standing.projector is not None and standing.reading is not None:
            yield from held_metrics(standing.reading.book)
            yield from self._written(standing.projector)

    def _sequence(self, follower: Follower) -> int:
        """Return how far the log is followed: a leader reads on from what it wrote itself."""
        return max(follower.tip.sequence, self._frames.sequence if self._frames else 0)

    def _lags(self) -> Iterable[Metric]:
        """Yield how far behind each stage is: deciding behind EVENTS, all others behind DECISIONS."""
        standing, now = self._place.standing, asyncio.get_running_loop().time()
        stages: dict[str, tuple[str, int]] = {}
        follower = standing.binder.follower if standing.binder else None
        if follower is not None:
            stages["decide"] = EVENTS, follower.book.state.events_seq
            stages["follow"] = DECISIONS, self._sequence(follower)
        if standing.reading is not None:
            stages["project"] = DECISIONS, standing.reading.tip.sequence
        if standing.webhooks is not None:
            stages["answer"] = DECISIONS, standing.webhooks.position
        behind = {stage: self._tails.tails[stream].behind(at, now) for stage, (stream, at) in stages.items()}
        yield gauge("gpubinder_lag_messages", [((stage,), count) for stage, (count, _) in behind.items()])
        yield gauge("gpubinder_lag_seconds", [((stage,), seconds) for stage, (_, seconds) in behind.items()])

    def _snapshot(self, follower: Follower) -> Iterable[Metric]:
        found = self._tails.snapshot
        covered = follower.book.state.events_seq - found.covered if found else follower.book.state.events_seq
        yield single("gpubinder_snapshot_behind", max(covered, 0))
        yield gauge("gpubinder_snapshot_age_seconds", [((), found.age_seconds())] if found else [])

    def _written(self, projector: Projector) -> Iterable[Metric]:
        yield counted("gpubinder_writes_total", _ends(projector.tally.ended))
        yield single("gpubinder_writes_open", projector.tally.open)
        yield single("gpubinder_writes_again", projector.tally.refused)
        amounts = [
            ((name, amount), float(units))
            for name, shown in sorted(projector.class_counts.shown.items())
            for amount, units in (("allocatable", shown.allocatable), ("held", shown.held), ("free", shown.free))
            if units is not None
        ]
        yield gauge("gpubinder_class_units", amounts)
        budgets = projector.budget_counts.shown
        yield gauge("gpubinder_budget_keys", [((used,), many) for used, many in _shares(budgets.values()).items()])
        yield gauge("gpubinder_budget_units", _units(budgets) if self._budgets else [])

    def _certificate_end(self, file: Path) -> Iterable[Metric]:
        try:
            ends = [((), expires(file.read_bytes()).timestamp())]
        except (OSError, ValueError):
            # A file between two writes: the webhooks' own watch of it complains where it stays so.
            ends = []
        yield gauge("gpubinder_certificate_expiry_seconds", ends)


def _ends(ended: Mapping[tuple[str, Verdict], int]) -> list[tuple[tuple[str, str], int]]:
    """Return how often writes ended how, also what never happened: a counter that begins at 1 has not grown (F3)."""
    actions = sorted({ACTION_SET, ACTION_HELD, *(action for action, _ in ended)})
    return [((action, kind.name.lower()), ended.get((action, kind), 0)) for action in actions for kind in Verdict]


def _shares(budgets: Iterable[Counted]) -> dict[str, int]:
    """Return how many keys of budgets are used how far."""
    counts = dict.fromkeys((*SHARES, ALL, OVER), 0)
    for budget in budgets:
        for key, hard in budget.hard.items():
            used = budget.used.get(key, 0)
            counts[_step(used, hard)] += 1
    return counts


def _step(used: int, hard: int) -> str:
    if used > hard:
        return OVER
    if used == hard:
        return ALL
    share = used / hard
    return next(name for name, ends in SHARES.items() if share <= ends)


def _units(budgets: Mapping[str, Counted]) -> list[tuple[tuple[str, ...], float]]:
    samples: list[tuple[tuple[str, ...], float]] = []
    for name, budget in sorted(budgets.items()):
        namespace, _, of = name.partition("/")
        for key, hard in sorted(budget.hard.items()):
            samples.append(((namespace, of, key, "used"), float(budget.used.get(key, 0))))
            samples.append(((namespace, of, key, "hard"), float(hard)))
    return samples
