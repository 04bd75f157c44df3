"""The fold: how one event, one decision or one epoch changes the state. Total, and never decides.

Events are what was observed (sessions, changes, outcomes, time); decisions are what was said. After
a restart logged decisions are applied by the same functions, never decided again.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from binder import (
    commands,
    evolve_adoption,
    evolve_holdings,
    evolve_licences,
    evolve_objects,
    evolve_sets,
    evolve_skips,
    evolve_starts,
)
from binder.book import Book
from binder.licences import LICENCE_DECISIONS, licence_key, licences_due
from binder.records import ClassGuard
from binder.state import NEEDED_KINDS, State, is_current
from schemas import decisions as d
from schemas import events as e
from schemas.frames import Epoch
from schemas.objects import Stamp, rv_after

STEP_NS_MAX = 30 * 1_000_000_000
"""Logical time grows by the server stamp's step, clamped to this; the rest is a recorded gap (T9)."""

SETS_PER_INPUT_MAX = 64
"""How many whole sets one input may decide; the rest stays dirty and goes on with `Continue` (T5)."""

BYTES_PER_INPUT_MAX = 512 * 1024
"""How many bytes of decisions one input may lead to before the rest waits likewise: affinities can be long (T5)."""

SET_DECISIONS = (
    *(d.SetOpened, d.SetPlaced, d.SetWaits, d.SetReleased, d.NodeSkipped, d.VmiGivenUp, d.SetClosed),
    *(d.SetAdopted, d.LauncherAdopted, d.SetBooked),
)
HELD_DECISIONS = (d.HeldPlaced, d.HeldLost, d.HeldWaits, d.HeldAdopted)
UID_DECISIONS = (d.ClaimDropped, d.HeldFreed, d.ClassGuarded, d.ClassFreed)
LAST_WORDS = (d.SetPlaced, d.SetWaits, d.SetClosed)
"""Decisions after which a pass has nothing more to say of a set."""

_encoder = msgspec.json.Encoder()


class Spent:
    """What one input has decided so far, against its bound (T5)."""

    def __init__(self) -> None:
        self._about: dict[str, bool] = {}
        self._bytes = 0

    def add(self, decision: d.Decision) -> None:
        """Count a decision: answers to requests are free, everything else is about a set or a claim."""
        if isinstance(decision, SET_DECISIONS):
            self._about[decision.vmi.uid] = True
        elif isinstance(decision, HELD_DECISIONS):
            self._about[decision.claims[0].uid] = True
        elif isinstance(decision, UID_DECISIONS):
            self._about[decision.uid] = True
        elif isinstance(decision, LICENCE_DECISIONS):
            self._about[licence_key(decision)] = True
        else:
            return
        self._bytes += len(_encoder.encode(decision))

    def is_about(self, uid: str) -> bool:
        """Say whether something was decided about this set."""
        return uid in self._about

    def is_all(self, expected: int = 0) -> bool:
        """Say whether nothing new may be begun, so many that are sure to be decided yet included."""
        return len(self._about) + expected >= SETS_PER_INPUT_MAX or self._bytes >= BYTES_PER_INPUT_MAX


def evolve(book: Book, sequence: int, stamp_ns: int, event: e.AnyEvent | None) -> None:
    """Fold one EVENTS message; `event` None stands for one that could not be read or was voided (T6)."""
    state = book.state
    state.events_seq = sequence
    _advance(state, stamp_ns)
    evolve_sets.wake(book)
    evolve_licences.wake(book)
    match event:
        case e.Changes():
            evolve_objects.change(book, sequence, event)
        case e.SessionOpened():
            evolve_objects.open_session(book, sequence, event)
        case e.SessionSynced():
            evolve_objects.sync(book, sequence, event)
        case e.NotServed():
            _freeze(book, sequence, event.kind, event.session)
        case e.Progress():
            for kind, session, rv in event.marks:
                _progress(book, sequence, kind, session, rv)
        case e.VmiRequest() | e.PodRequest():
            _believe(book, event)
        case e.StartRequest():
            _believe(book, event.asked)
            evolve_starts.asked(book, sequence, event)
        case e.StartWithdrawn():
            evolve_starts.withdrawn(book, event)
        case e.OrderRequest():
            for view in event.classes:
                evolve_objects.believe_evidence(book, "gpuclasses", view)
            if event.home is not None:
                evolve_objects.believe_evidence(book, "namespaces", event.home)
        case e.WriteRequest():
            if event.before is not None:
                evolve_objects.believe_evidence(book, event.kind, event.before)
        case e.Outcomes():
            for outcome in event.outcomes:
                evolve_sets.hear(book, outcome)
        case e.Command() | e.Tick() | e.Continue() | None:
            pass


def _believe(book: Book, request: e.VmiRequest | e.PodRequest) -> None:
    """Take evidence for ordinary observation; what is older than the fold's own changes nothing (T15)."""
    for view in request.classes:
        evolve_objects.believe_evidence(book, "gpuclasses", view)
    for claim in request.claims:
        evolve_objects.believe_evidence(book, "gpuclaims", claim)
    if isinstance(request, e.VmiRequest) and request.home is not None:
        evolve_objects.believe_evidence(book, "namespaces", request.home)


def evolve_decision(book: Book, stamp: Stamp, decision: d.Decision) -> None:
    """Fold one decision made at `stamp`."""
    match decision:
        case d.SetOpened():
            evolve_sets.opened(book, stamp, decision)
        case d.SetPlaced():
            evolve_sets.placed(book, stamp, decision)
        case d.SetWaits():
            evolve_sets.waits(book, stamp, decision)
        case d.SetReleased():
            evolve_sets.released(book, stamp, decision)
        case d.NodeSkipped():
            evolve_skips.skipped(book, stamp, decision)
        case d.SetClosed():
            evolve_sets.closed(book, stamp, decision)
        case d.PodAdmitted():
            evolve_sets.admitted(book, decision)
        case d.Commanded():
            commands.carry_out(book, decision)
        case d.VmiGivenUp():
            evolve_sets.vmi_given_up(book, stamp, decision)
        case d.NodeKept():
            evolve_sets.node_kept(book, decision)
        case d.HeldPlaced():
            evolve_holdings.placed(book, stamp, decision)
        case d.HeldLost():
            evolve_holdings.lost(book, stamp, decision)
        case d.HeldWaits():
            evolve_holdings.waits(book, stamp, decision)
        case d.HeldFreed():
            evolve_holdings.freed(book, stamp, decision)
        case d.ClassGuarded() | d.ClassFreed():
            book.class_use.said(decision.name, ClassGuard(decision.uid, isinstance(decision, d.ClassFreed), stamp))
        case d.LicenceCopied():
            evolve_licences.copied(book, stamp, decision)
        case d.LicenceDropped():
            evolve_licences.dropped(book, stamp, decision)
        case d.LicenceBlocked():
            evolve_licences.blocked(book, decision)
        case d.LicenceMissing():
            evolve_licences.missing(book, stamp, decision)
        case d.LauncherAdopted() | d.SetAdopted() | d.HeldAdopted() | d.Adopted():
            evolve_adoption.evolve(book, stamp, decision)
        case d.SetBooked():
            evolve_starts.booked(book, stamp, decision)
        case d.StartHeld() | d.Refused():
            evolve_starts.answered(book, decision)
        case d.ClaimDropped() | d.VmiAdmitted() | d.WritePassed() | d.Rejected():
            pass


def evolve_epoch(book: Book, sequence: int, epoch: Epoch) -> None:
    """Fold a new leader's record: it places only after progress beyond what it saw (T11)."""
    book.state.generation = epoch.generation
    book.state.epoch = sequence
    book.state.epoch_events = epoch.events_last
    book.behind = {kind: True for kind in NEEDED_KINDS if not is_current(book.state, kind)}


def settle(book: Book, decided: tuple[d.Decision, ...], spent: Spent) -> None:
    """End one input: forget what the pass looked at, unless its bound (T5) or an unsynced kind stopped it.

    A log tells what was decided, not what was looked at: a bounded pass leaves dirty all but the sets it
    had its last word on. Where KubeVirt is not served, a pass looks at no set.
    """
    state = book.state
    if is_adoption(state, decided):
        return
    bounded = bound_reached(spent)
    evolve_licences.settle(book, decided, bounded=bounded)
    if not book.may_place_claims():
        return
    if not bounded:
        for key in list(state.dirty_holdings) if state.dirty_holdings else ():
            book.held.unmark(key)
        state.dirty_nodes.clear()
        state.dirty_budgets.clear()
        if not book.behind:
            _settle_sets(book)
        return
    for decision in decided:
        if isinstance(decision, LAST_WORDS):
            book.unmark(decision.vmi.uid)
        elif isinstance(decision, d.ClaimDropped):
            state.dirty_claims.pop(f"{decision.namespace}/{decision.name}", None)
        elif isinstance(decision, d.HeldPlaced | d.HeldWaits):
            for claim in decision.claims:
                book.held.unmark(f"{decision.namespace}/{claim.name}")


def is_adoption(state: State, decided: tuple[d.Decision, ...]) -> bool:
    """Say whether an input's pass booked what was found, and looked at nothing else."""
    return state.adopting or (bool(decided) and any(isinstance(decision, d.Adopted) for decision in decided))


def _settle_sets(book: Book) -> None:
    state = book.state
    for uid in list(state.dirty_sets) if state.dirty_sets else ():
        book.unmark(uid)
    state.dirty_claims.clear()
    if state.kept is not None and not state.kept.node:
        # Everybody was asked who is next.
        state.kept = None


def spent_on(decided: Iterable[d.Decision]) -> Spent:
    """Return what an input has spent of its bound that decided this (T5)."""
    spent = Spent()
    for decision in decided:
        spent.add(decision)
    return spent


def bound_reached(spent: Spent) -> bool:
    """Say whether an input decided as much as one input may (T5)."""
    return spent.is_all()


def is_dirty(state: State) -> bool:
    """Say whether a pass has something to look at."""
    placing = state.dirty_sets or state.dirty_nodes or state.dirty_claims or state.dirty_holdings or state.dirty_budgets
    return bool(placing) or licences_due(state)


def may_place(state: State) -> bool:
    """Say whether every needed kind is synced and has shown life since the newest epoch began (T11)."""
    return all(is_current(state, kind) for kind in NEEDED_KINDS)


def _advance(state: State, stamp_ns: int) -> None:
    if state.stamp_ns:
        step = stamp_ns - state.stamp_ns
        if step > STEP_NS_MAX:
            state.now_ns += STEP_NS_MAX
            state.gap_ns += step - STEP_NS_MAX
        elif step > 0:
            state.now_ns += step
    state.stamp_ns = stamp_ns


def _freeze(book: Book, sequence: int, kind: str, number: int) -> None:
    """A kind that is not served stays as it was known (D12); that it is not is a sign of life as well (T11)."""
    session = book.state.sessions.get(kind)
    if session is not None and session.number == number:
        book.store_session(kind, replace(session, served=False, synced=False, progress=sequence))


def _progress(book: Book, sequence: int, kind: str, number: int, rv: str) -> None:
    session = book.state.sessions.get(kind)
    if session is not None and session.number == number:
        newest = rv if rv_after(rv, session.rv) else session.rv
        book.store_session(kind, replace(session, progress=sequence, rv=newest))
