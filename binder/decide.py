"""What to do about one input: the pass over what it touched, in the order of the design.

Answers to admission -> ends of bookings and sets -> gated pods by priority, first wait, name.
A pass is a generator: whoever runs it folds each decision before asking for the next, so that the
next one sees it (D2). It reads the state and never changes it.
"""

from collections.abc import Iterator

from binder.book import Book
from binder.decide_set import ending, next_step
from binder.evolve import SETS_PER_INPUT_MAX, may_place
from binder.order import in_line
from binder.rules.admission import answer_pod, answer_vmi
from binder.settings import settings_of
from binder.state import Touch
from schemas import decisions as d
from schemas import events as e
from schemas.objects import ClaimView
from schemas.reasons import Wait


def decide(book: Book, event: e.AnyEvent | None) -> Iterator[d.Decision]:
    """Yield the decisions of one input; the caller folds each before it asks on."""
    # 1. Somebody waits for an answer.
    if isinstance(event, e.VmiRequest):
        yield answer_vmi(event, settings_of(book.state).policy)
    elif isinstance(event, e.PodRequest):
        yield answer_pod(event)
    # 2. Nothing is placed or given up on a picture that may be old.
    if not may_place(book.state):
        return
    yield from _undecided_claims(book)
    # 3. What ended frees its units first.
    decided: dict[str, bool] = {}
    for uid in sorted(book.state.dirty_sets):
        if len(decided) >= SETS_PER_INPUT_MAX:
            return
        for decision in ending(book, uid):
            decided[uid] = True
            yield decision
    # 4. Then the gated pods, in their order.
    yield from _gated(book, decided)


def _gated(book: Book, decided: dict[str, bool]) -> Iterator[d.Decision]:
    """Serve the queue: sets that changed look at every node, the others at the touched nodes alone."""
    whole = dict(book.state.dirty_sets)
    touched = dict(book.state.dirty_nodes)
    queue = in_line(book, {**dict.fromkeys(_woken(book, touched), True), **whole})
    for uid in queue:
        if len(decided) >= SETS_PER_INPUT_MAX and uid not in decided:
            return
        among = None if uid in whole else sorted(touched)
        while (decision := next_step(book, uid, among)) is not None:
            decided[uid] = True
            yield decision


def _woken(book: Book, touched: dict[str, int]) -> Iterator[str]:
    """Name the waiting sets that the touched nodes could place, or whose reason they could change."""
    for name in sorted(touched):
        how = Touch(touched[name])
        node = book.state.node(name)
        for resource in sorted(book.waiting):
            offered = node is not None and resource in node.allocatable
            if not offered and Touch.STATIC not in how:
                continue
            free = book.free(node, resource) if node is not None else 0
            for count in sorted(book.waiting[resource]):
                fits = count <= free and Touch.GROWN in how
                for uid in sorted(book.waiting[resource][count]):
                    reason = book.state.sets[uid].reason
                    short = Touch.SHRUNK in how and reason is Wait.NO_ROOM_OTHER
                    if fits or short or Touch.STATIC in how:
                        yield uid


def _undecided_claims(book: Book) -> Iterator[d.Decision]:
    """A template claim that nobody decided is told to go (T14)."""
    for key in sorted(book.state.dirty_claims):
        claim = book.state.claim(key)
        if claim is None or not claim.template or claim.deleting or key in book.claim_sets:
            continue
        if _owner_may_come(book, claim):
            continue
        yield d.ClaimDropped(claim.namespace, claim.name, claim.uid)


def _owner_may_come(book: Book, claim: ClaimView) -> bool:
    """A claim whose owner is gone is collected by the API server; only a living owner's needs a hand."""
    return bool(claim.owner_uid) and claim.owner_uid not in book.vmi_keys


