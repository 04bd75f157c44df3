"""Prove a log: chain, order, gaps, inputs, and every decision of our own rules version made again.

Nothing here trusts the operator: only the stored bytes and, where it is at hand, the anchor.
"""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from binder.anchor import NotOurs, prove_anchor
from binder.book import Book
from binder.follower import Follower
from binder.journal import Gap, Journal, Message
from binder.logbook import DataLoss
from binder.state import State
from binder.step import RULES_VERSION, apply, step
from binder.tip import START, BrokenLog, Tip
from schemas.decisions import Decision
from schemas.events import UnknownMessage
from schemas.frames import Epoch, Frame, Void
from schemas.streams import DECISIONS, EVENTS


class Difference(msgspec.Struct, frozen=True):
    """The first input that these rules decide otherwise than the log says."""

    sequence: int
    logged: tuple[Decision, ...]
    derived: tuple[Decision, ...]


class Turn(msgspec.Struct, frozen=True):
    """One input as an audit met it. `derived` None: not decided again, the log's own word stands alone."""

    message: Message
    logged: tuple[Decision, ...]
    derived: tuple[Decision, ...] | None


class Part(StrEnum):
    """What of a log can be broken: the chain of decisions, the inputs under it, its place in the anchor."""

    CHAIN = "chain"
    INPUTS = "inputs"
    ANCHOR = "anchor"


class Report(msgspec.Struct):
    """What an audit found; `finding` is empty where the log is whole, else `broken` says which part of it.

    `rederived` entries were decided again and agree; `chain_only` were written under other rules.
    `uncovered`: EVENTS after the last frame, which nothing vouches for yet. `gap_seconds`: logged silence
    without a leader (T9). `lost`: frames of a generation that another took over from, whose inputs are gone:
    the chain alone holds them. `log_through`: the last DECISIONS sequence that was proven, `messages` how many were.
    """

    log_id: str = ""
    generation: int = 0
    log_through: int = 0
    messages: int = 0
    frames: int = 0
    epochs: int = 0
    inputs: int = 0
    decisions: int = 0
    rederived: int = 0
    chain_only: int = 0
    uncovered: int = 0
    gap_seconds: int = 0
    voided: int = 0
    lost: int = 0
    anchored: bool = False
    difference: Difference | None = None
    finding: str = ""
    broken: Part | None = None

    @property
    def whole(self) -> bool:
        """Say whether nothing was found."""
        return not self.finding and self.difference is None


class Auditor:
    """Reads a journal, from its first message or from a state folded to `tip`; `report` grows while it reads.

    `last` is the DECISIONS sequence it reads to. `heard` is told each input, in order. `confirm_seconds`:
    how long a stream must stay shorter than the log says before that is a finding.
    """

    def __init__(
        self,
        journal: Journal,
        state: State | None = None,
        tip: Tip = START,
        *,
        heard: Callable[[Turn], None] | None = None,
        confirm_seconds: float = 2.0,
    ) -> None:
        self._journal = journal
        self._heard = heard
        self.report = Report()
        self.last = 0
        self.follower = Follower(journal, state, tip, fold=self._fold, confirm_seconds=confirm_seconds)

    async def verify(self, anchor: Tip | None = None) -> Report:
        """Read the whole log as it stands now. Findings are in the report, never raised."""
        report = self.report
        try:
            self.last = (await self._journal.info(DECISIONS)).last
            async for told in self.follower.steps(until=self.last):
                self._count(told.said.record)
                report.lost += told.lost
            report.uncovered = (await self._journal.info(EVENTS)).last - self.follower.book.state.events_seq
            if anchor is not None:
                await prove_anchor(anchor, self.follower.tip, self._journal)
                report.anchored = True
        except (BrokenLog, DataLoss, Gap, UnknownMessage, NotOurs) as found:
            report.finding, report.broken = str(found), _part(found)
        tip = self.follower.tip
        report.log_id, report.generation, report.log_through = tip.log_id, tip.generation, tip.sequence
        report.gap_seconds = self.follower.book.state.gap_ns // 1_000_000_000
        return report

    def _count(self, record: object) -> None:
        self.report.messages += 1
        if isinstance(record, Frame):
            self.report.frames += 1
        elif isinstance(record, Epoch):
            self.report.epochs += 1
        elif isinstance(record, Void):
            self.report.voided += 1

    def _fold(self, book: Book, frame: Frame, message: Message, logged: tuple[Decision, ...]) -> None:
        report = self.report
        report.inputs += 1
        report.decisions += len(logged)
        if frame.rules != RULES_VERSION or report.difference is not None:
            report.chain_only += bool(logged)
            apply(book, message.sequence, message.stamp_ns, message.body, logged)
            self._tell(Turn(message, logged, None))
            return
        derived = step(book, message.sequence, message.stamp_ns, message.body)
        self._tell(Turn(message, logged, derived))
        if derived != logged:
            # From here on our state is not the log's: the rest is held against the chain alone.
            report.difference = Difference(message.sequence, logged, derived)
        else:
            report.rederived += bool(logged)

    def _tell(self, turn: Turn) -> None:
        if self._heard is not None:
            self._heard(turn)


def _part(found: Exception) -> Part:
    if isinstance(found, NotOurs):
        return Part.ANCHOR
    about = found.why if isinstance(found, BrokenLog) else str(found)
    return Part.INPUTS if EVENTS in about or about.startswith("EVENTS") else Part.CHAIN
