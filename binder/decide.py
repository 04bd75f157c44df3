"""What to do about one input: the pass over what it touched, in the order of the design.

Answers to admission -> ends of bookings and sets -> gated pods by priority, first wait, name -> reasons
for those that got no place. A pass is a generator: whoever runs it folds each decision before asking for
the next, so that the next one sees it (D2). It reads the state and never changes it.
"""

from collections.abc import Iterator

from binder import by_hand
from binder.adopting import taking_over
from binder.book import Book
from binder.decide_classes import guarding
from binder.decide_ends import booked_node, ended_unseen, ending
from binder.decide_holdings import Left, freeing, is_torn, leaves_a_node, restoring, serving, telling_groups
from binder.decide_licences import licensing
from binder.decide_set import opening, placing, telling
from binder.decide_writes import answer_order, answer_write
from binder.evolve import Spent, is_dirty
from binder.fairness import Keeping
from binder.holdings import as_decided
from binder.keeping import letting_go
from binder.launchers import may_be_served
from binder.licences import licences_due
from binder.moving import moving
from binder.order import ENDS, FIRST, Rank, short_group
from binder.rules.admission import answer_pod, answer_vmi
from binder.starting import dry, hearing, left_over, starting, starts_due
from binder.touched import Touched
from schemas import decisions as d
from schemas import events as e
from schemas.answers import Answer
from schemas.objects import ClaimView, VmiView

TOLD = (e.Changes, e.Outcomes, e.Progress, e.Tick, e.Continue)
"""What most inputs are: somebody tells what happened, and waits for no answer."""


def decide(book: Book, event: e.AnyEvent | None, spent: Spent) -> Iterator[d.Decision]:
    """Yield the decisions of one input; the caller folds each before it asks on. `spent`: nothing yet."""
    for decision in _all(book, event, spent):
        spent.add(decision)
        yield decision
    if isinstance(event, e.StartRequest):
        # The bound of this input may have left it for the next one (T5).
        yield from left_over(book, event)


def _all(book: Book, event: e.AnyEvent | None, spent: Spent) -> Iterator[d.Decision]:
    # 1. Somebody waits for an answer.
    if not isinstance(event, TOLD):
        yield from _answers(book, event)
    if is_left_over(book):
        # For most inputs it is not: nothing that was folded concerns a pass or a finalizer.
        yield from _steps(book, spent)


def _answers(book: Book, event: e.AnyEvent | None) -> Iterator[d.Decision]:
    answered = answer(book, event)
    if answered is not None:
        yield answered
    elif isinstance(event, e.StartRequest):
        yield from hearing(book, event)
    elif isinstance(event, e.Command):
        yield from by_hand.answer(book, event)


def answer_dry(book: Book, event: e.AnyEvent) -> Answer | None:
    """Return what an admission request would be answered, None for anything else: nothing is booked (T19)."""
    return dry(book, event) if isinstance(event, e.StartRequest) else answer(book, event)


def answer(book: Book, event: e.AnyEvent | None) -> Answer | None:
    """Return the answer to an admission request that books nothing, None where the event is none."""
    match event:
        case e.VmiRequest():
            return answer_vmi(as_decided(book.state, event), book.settings.policy)
        case e.PodRequest():
            return answer_pod(event, booked_node(book, event))
        case e.WriteRequest():
            return answer_write(book, event)
        case e.OrderRequest():
            return answer_order(book, event)
        case _:
            return None


def _steps(book: Book, spent: Spent) -> Iterator[d.Decision]:
    if book.state.adopting:
        # First of all, what was decided by a log that is lost: nothing is ended, freed or placed beside it (T4).
        yield from taking_over(book, spent)
        return
    # 2. What is being deleted may go once nothing uses it, whether or not KubeVirt is there (F1, C23).
    if book.held.freeable and may_finalize(book):
        yield from _freed(book, spent)
    # 3. Licences need no launcher: they follow classes, namespaces and their sources alone (L1-L3).
    yield from licensing(book, spent)
    # Nothing is placed or given up on a picture that may be old.
    if has_work(book):
        yield from _pass(book, spent)
    # Classes last: a set that was closed just now uses none any more (K2).
    for guarded in guarding(book) if book.class_use.due and may_finalize(book) else ():
        if spent.is_all():
            return
        yield guarded


def is_left_over(book: Book) -> bool:
    """Say whether something stays to be decided that no further input is needed for (T5)."""
    if book.state.adopting:
        return book.may_place_claims()
    finalizers = bool(book.held.freeable or book.class_use.due) and may_finalize(book)
    return finalizers or licences_due(book.state) or has_work(book)


def has_work(book: Book) -> bool:
    """Say whether a pass has something to look at; without KubeVirt, held claims and pods that end (C61)."""
    if not book.behind:
        return is_dirty(book.state) or starts_due(book)
    if not book.may_place_claims():
        return False
    state = book.state
    dirty = bool(state.dirty_holdings or state.dirty_nodes or state.dirty_budgets)
    return dirty or next(ended_unseen(book), None) is not None


def _freed(book: Book, spent: Spent) -> Iterator[d.Decision]:
    for freed in freeing(book):
        if spent.is_all():
            return
        yield freed


def may_finalize(book: Book) -> bool:
    """Say whether finalizers may go: of each kind either the picture is new, or there is none to be had (C23)."""
    if not book.behind:
        return True
    sessions = book.state.sessions
    return all(kind in sessions and not sessions[kind].served for kind in book.behind)


def _pass(book: Book, spent: Spent) -> Iterator[d.Decision]:
    # 4. What ended frees its units.
    for uid in book.line.members(ENDS) if not book.behind else ():
        if spent.is_all():
            return
        yield from ending(book, uid)
    for released in ended_unseen(book) if book.behind else ():
        if spent.is_all():
            return
        yield released
    if book.held.freeable:
        yield from _freed(book, spent)
    # 5. Placing, until nobody frees units for others, and what goes together is together.
    left = Left()
    while True:
        again = False
        for decision in _placings(book, spent, left):
            again = again or leaves_a_node(book, decision) or _takes_over(book, decision)
            yield decision
        if (kept := _kept_in_vain(book)) is not None and not spent.is_all():
            again = True
            yield kept
        if not (again or is_torn(book)) or spent.is_all() or left.full:
            break
    # 6. Claims go that no set has by now: one that was opened just now has those that a lost log made for it (T14).
    for claim in _undecided_claims(book) if book.state.dirty_claims and not book.behind else ():
        if spent.is_all():
            return
        yield d.ClaimDropped(claim.namespace, claim.name, claim.uid)
    # 7. Who got no place hears why, as things stand now that everyone was served (C59).
    if not book.behind:
        yield from _reasons(book, spent, left.sets)
    if book.held.line.groups:
        yield from telling_groups(book, spent, left.groups)


def _kept_in_vain(book: Book) -> d.NodeKept | None:
    """Give a node back that is kept for one that asks for nothing now: an order took what its budget had left."""
    if book.behind or book.state.kept is None:
        return None
    ended = Keeping(book).ends()
    return ended if ended is not None and not ended.node else None


def _placings(book: Book, spent: Spent, left: Left) -> Iterator[d.Decision]:
    """Leave what can't keep, restore the invariant of sets; then gated pods, moves, Lost groups and new orders.

    Where KubeVirt is not served, only claims that no VMI holds are looked at.
    """
    for let_go in letting_go(book) if book.state.troubles and not book.behind else ():
        if spent.is_all() and not spent.is_about(let_go.vmi.uid):
            return
        yield let_go
    # Held claims that keep their node, and were not touched, stand in no line: they cost a pass nothing.
    if book.held.line.groups:
        yield from restoring(book, spent)
    if not book.behind:
        if _may_be_gated(book):
            yield from _gated(book, spent, left.sets)
        if book.state.asked:
            yield from starting(book, spent)
    if book.state.troubles:
        yield from moving(book, spent)
    if book.held.line.groups:
        yield from serving(book, spent, left)


def _may_be_gated(book: Book) -> bool:
    """Say whether anything changed that can give a gated pod its place; a claim that is shown, say, gives none."""
    state = book.state
    return bool(state.dirty_sets or state.dirty_nodes or state.dirty_budgets) or state.kept is not None


def _takes_over(book: Book, decision: d.Decision) -> bool:
    """Say whether a launcher takes over a booking that is there: its node may be one that can't keep it."""
    gpu_set = book.state.sets.get(decision.vmi.uid) if isinstance(decision, d.SetPlaced) else None
    return gpu_set is not None and bool(gpu_set.node)


def _gated(book: Book, spent: Spent, unplaced: dict[str, VmiView]) -> Iterator[d.Decision]:
    """Place the gated pods, in their order."""
    touched, keeping = Touched(book, book), Keeping(book)
    if (kept := keeping.ends()) is not None:
        yield kept
    rank = FIRST
    while (head := _next(book, touched, rank)) is not None:
        if (kept := keeping.follows(head)) is not None:
            yield kept
            touched.look_again()
            continue
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
            if (kept := keeping.ends()) is not None:
                yield kept
            touched.look_again()
        else:
            unplaced[uid] = vmi
            if (kept := keeping.begins(vmi, rank)) is not None:
                yield kept
                touched.look_again()
    if not spent.is_all() and (kept := keeping.follows(None)) is not None:
        yield kept


def _next(book: Book, touched: Touched, rank: Rank) -> Rank | None:
    """Return the next one in line behind `rank`: of those that changed, and those that touched nodes may take."""
    line = book.line
    heads = [head for group in touched.groups() if (head := line.after(group, rank)) is not None]
    return min(heads, default=None)


def _reasons(book: Book, spent: Spent, unplaced: dict[str, VmiView]) -> Iterator[d.Decision]:
    """Tell why, once per change of reason."""
    touched = Touched(book, book)
    for resource in touched.shrunk():
        for uid in book.line.members(short_group(resource)):
            vmi = book.vmi_of(uid)
            if vmi is not None:
                unplaced[uid] = vmi
    for uid, vmi in unplaced.items():
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
