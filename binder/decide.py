"""What to do about one input: the pass over what it touched, in the order of the design.

Answers to admission -> ends of bookings and sets -> gated pods by priority, first wait, name -> reasons
for those that got no place. A pass is a generator: whoever runs it folds each decision before asking for
the next, so that the next one sees it (D2). It reads the state and never changes it.
"""

from collections.abc import Iterator

from binder import commands
from binder.book import Book
from binder.decide_holdings import freeing, restoring, serving
from binder.decide_licences import licensing
from binder.decide_set import ending, opening, placing, telling
from binder.evolve import Spent, is_dirty
from binder.keeping import letting_go
from binder.launchers import may_be_served
from binder.moving import moving
from binder.order import ENDS, FIRST, Rank, short_group
from binder.rules.admission import answer_pod, answer_vmi
from binder.touched import Touched
from schemas import decisions as d
from schemas import events as e
from schemas.objects import ClaimView, VmiView


def decide(book: Book, event: e.AnyEvent | None) -> Iterator[d.Decision]:
    """Yield the decisions of one input; the caller folds each before it asks on."""
    # 1. Somebody waits for an answer.
    if isinstance(event, e.VmiRequest):
        yield answer_vmi(event, book.settings.policy)
    elif isinstance(event, e.PodRequest):
        yield answer_pod(event)
    elif isinstance(event, e.Command):
        yield commands.answer(book, event)
    spent = Spent()
    for decision in _steps(book, spent):
        spent.add(decision)
        yield decision


def _steps(book: Book, spent: Spent) -> Iterator[d.Decision]:
    # 2. What is being deleted may go once nothing uses it, whether or not KubeVirt is there (F1, C23).
    if may_finalize(book):
        for freed in freeing(book):
            if spent.is_all():
                return
            yield freed
    # 3. Licences need no launcher: they follow classes, namespaces and their sources alone (L1-L3).
    yield from licensing(book, spent)
    # Nothing is placed or given up on a picture that may be old.
    if not book.behind and is_dirty(book.state):
        yield from _pass(book, spent)


def may_finalize(book: Book) -> bool:
    """Say whether finalizers may go: of each kind either the picture is new, or there is none to be had (C23)."""
    sessions = book.state.sessions
    return all(kind in sessions and not sessions[kind].served for kind in book.behind)


def _pass(book: Book, spent: Spent) -> Iterator[d.Decision]:
    for claim in _undecided_claims(book) if book.state.dirty_claims else ():
        if spent.is_all():
            return
        yield d.ClaimDropped(claim.namespace, claim.name, claim.uid)
    # 4. Claims that go together are brought together before anything is placed (D10).
    yield from restoring(book, spent)
    # 5. What ended frees its units.
    for uid in book.line.members(ENDS):
        if spent.is_all():
            return
        yield from ending(book, uid)
    for let_go in letting_go(book):
        if spent.is_all() and not spent.is_about(let_go.vmi.uid):
            return
        yield let_go
    # 6. Then the gated pods, in their order; who gets no place hears why when all are served.
    yield from _gated(book, spent)
    # 7. Held claims leave nodes that can't keep them (D9).
    yield from moving(book, spent)
    # 8. Lost groups are rebound before new orders are bound.
    yield from serving(book, spent)


def _gated(book: Book, spent: Spent) -> Iterator[d.Decision]:
    touched, unplaced = Touched(book, book), list[VmiView]()
    rank = FIRST
    while (head := _next(book, touched, rank)) is not None:
        rank, uid = head, head[-1]
        if spent.is_all() and not spent.is_about(uid):
            break
        vmi = book.vmi_of(uid)
        if vmi is None or not may_be_served(vmi):
            continue
        opened = opening(book, vmi)
        if opened is not None:
            yield opened
        placed = placing(book, vmi, touched.among(uid))
        if placed is not None:
            if book.state.sets[uid].node:
                # A launcher that takes over from its temporary pod may ask for less: who is ahead looks once more.
                rank = FIRST
            yield placed
            touched.look_again()
        else:
            unplaced.append(vmi)
    yield from _reasons(book, touched, spent, unplaced)


def _next(book: Book, touched: Touched, rank: Rank) -> Rank | None:
    """Return the next one in line behind `rank`: of those that changed, and those that touched nodes may take."""
    line = book.line
    heads = [head for group in touched.groups() if (head := line.after(group, rank)) is not None]
    return min(heads, default=None)


def _reasons(book: Book, touched: Touched, spent: Spent, unplaced: list[VmiView]) -> Iterator[d.Decision]:
    """Tell why, once per change of reason, as things stand now that everyone was served (C59)."""
    served = {vmi.uid: vmi for vmi in unplaced}
    for resource in touched.shrunk():
        for uid in book.line.members(short_group(resource)):
            vmi = book.vmi_of(uid)
            if vmi is not None:
                served[uid] = vmi
    for uid, vmi in served.items():
        if spent.is_all() and not spent.is_about(uid):
            continue
        told = telling(book, vmi, touched.among(uid))
        if told is not None:
            yield told


def _undecided_claims(book: Book) -> Iterator[ClaimView]:
    """Name the template claims that nobody decided: they are told to go (T14)."""
    for key in sorted(book.state.dirty_claims):
        claim = book.state.claim(key)
        if claim is None or not claim.template or claim.deleting or _is_decided(book, claim):
            continue
        # A claim whose owner is gone is collected by the API server; only a living owner's needs a hand.
        if not claim.owner_uid or claim.owner_uid in book.index.vmis:
            yield claim


def _is_decided(book: Book, claim: ClaimView) -> bool:
    gpu_set = book.state.sets.get(book.claim_sets.get(claim.key, ""))
    if gpu_set is None or gpu_set.vmi.uid != claim.owner_uid:
        return False
    said = (claim.name, claim.class_name, claim.count)
    return any((one.name, one.class_name, one.count) == said for one in gpu_set.claims)
