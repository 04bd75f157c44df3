"""What the folded state says at a scrape: the log, who waits, what is known of each kind.

A scrape costs what waits, never what the cluster holds: placed sets are counted by an index of the fold.
"""

import asyncio
from collections.abc import Iterable, Mapping

from prometheus_client.core import Metric

from binder.book import Book
from binder.order import WAITING
from binder.settings import is_paused
from binder.state import KNOWN_KINDS, is_absent, is_current
from binder.tip import Tip
from deploy.watching.catalogue import gauge, single
from schemas.reasons import Wait

NS = 1_000_000_000
AGES: Mapping[str, int] = {"to_1m": 60 * NS, "to_10m": 600 * NS, "to_1h": 3600 * NS, "to_1d": 86_400 * NS}
"""How long sets wait, in steps: each is named after its end, and begins where the one before it ends."""
MORE = "over_1d"
UNTOLD = "NotToldYet"
"""Stands for the reason of a set that waits and was told none since its VMI began anew."""


def log_metrics(tip: Tip, sequence: int, book: Book) -> Iterable[Metric]:
    """Yield what is known of the log, followed up to a DECISIONS sequence, and of its fold."""
    state = book.state
    yield gauge("gpubinder_log_info", [((tip.log_id,), 1.0)] if tip.log_id else [])
    yield single("gpubinder_log_generation", tip.generation)
    yield single("gpubinder_log_sequence", sequence)
    yield single("gpubinder_log_epoch", state.epoch)
    yield single("gpubinder_inputs_folded", state.events_seq)
    yield single("gpubinder_inputs_voided", len(state.voided))
    yield single("gpubinder_logical_seconds", state.now_ns / NS)
    yield single("gpubinder_logical_gap_seconds", state.gap_ns / NS)
    yield single("gpubinder_paused", float(is_paused(state, book.settings)))


def placing_metrics(book: Book) -> Iterable[Metric]:
    """Yield who has a place and who waits."""
    counts, oldest = waiting(book)
    yield gauge(
        "gpubinder_sets",
        [(("placed",), len(book.usage.shares["sets"])), (("waiting",), sum(counts.values()))],
    )
    yield gauge("gpubinder_waiting_sets", sorted(counts.items()))
    yield gauge("gpubinder_waiting_oldest_seconds", sorted(((reason,), ns / NS) for reason, ns in oldest.items()))


def held_metrics(book: Book) -> Iterable[Metric]:
    """Yield where ordered claims stand. For a book that decides nothing: it asks the line, which settles it."""
    groups = book.held.line.members(WAITING)
    without = sum(1 for group in groups for holding in book.held.of(group) if not holding.node)
    yield gauge("gpubinder_held_claims", [(("all",), len(book.state.holdings)), (("waiting",), without)])


def waiting(book: Book) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
    """Return how many sets wait, by reason and age, and for how long the oldest of each reason does (nanoseconds)."""
    state = book.state
    counts = {(str(reason), age): 0 for reason in Wait for age in (*AGES, MORE)}
    oldest: dict[str, int] = {}
    vmis = state.objects["virtualmachineinstances"]
    for key, since in state.first_wait.items():
        vmi = vmis.get(key)
        gpu_set = state.sets.get(vmi.uid) if vmi is not None else None
        if gpu_set is None or gpu_set.node:
            continue
        reason, waited = str(gpu_set.reason or UNTOLD), state.now_ns - since
        age = next((name for name, ends in AGES.items() if waited < ends), MORE)
        counts[reason, age] = counts.get((reason, age), 0) + 1
        oldest[reason] = max(oldest.get(reason, 0), waited)
    return counts, oldest


class KindProgress:
    """For how long each kind's watch has shown no progress, as seen by this process."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}

    def collect(self, book: Book) -> Iterable[Metric]:
        """Yield which kinds are known as of this epoch, and how long ago each was heard of."""
        state, now = book.state, asyncio.get_running_loop().time()
        kinds = [kind for kind in KNOWN_KINDS if kind in state.sessions]
        for kind in kinds:
            progress = state.sessions[kind].progress
            if kind not in self._seen or self._seen[kind][0] != progress:
                self._seen[kind] = progress, now
        known = [((kind,), float(is_current(state, kind) or is_absent(state, kind))) for kind in KNOWN_KINDS]
        yield gauge("gpubinder_kind_current", known)
        silent = [((kind,), now - self._seen[kind][1]) for kind in kinds if state.sessions[kind].served]
        yield gauge("gpubinder_kind_silent_seconds", silent)
