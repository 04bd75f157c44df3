"""What to do about held claims: free, gather, bind and rebind them, or say why they have no node.

Claims that go together are decided together (D10). One whose VM is stopped needs of a node only that it is ready,
not cordoned, tolerated by each class, and has the units free; one that goes with a launcher is placed with its set.
"""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from binder.book import Book
from binder.budgets import first_over, sentence, told_alike
from binder.evolve import Spent
from binder.holdings import Holdings, counted, is_apart, own_units, units_of
from binder.order import AGAIN, APART, FIRST, Rank, short_group
from binder.placement import Need, fit, kept_from, nearest
from binder.settings import is_paused
from binder.state import Holding
from binder.touched import Touched
from schemas import decisions as d
from schemas.decisions import HeldClaim
from schemas.objects import VmiView
from schemas.reasons import Placing, Unkept, Wait

MESSAGES = {
    Wait.PAUSED: "placing is paused by the operator",
    Wait.WRITE_REFUSED: "a write was refused; it is tried again after a while",
    Wait.RELEASED: "an operator released these units; they are bound anew after ten minutes",
    Wait.CLASS_NOT_FOUND: "the GPU class of this claim does not exist (any more); create it, or delete the claim",
    Wait.NO_SUCH_DEVICE: "no node offers as many units",
    Wait.NODE_NOT_READY: "every node that offers the units is not ready or is cordoned",
    Wait.TAINT_NOT_TOLERATED: "the nodes that offer the units have taints that not every class tolerates",
    Wait.NO_ROOM: "no node has room for these units",
    Wait.NODE_KEPT: "the node with room is kept for a VM that has waited longer",
}


def freeing(book: Book) -> Iterator[d.HeldFreed]:
    """Free the claims that are being deleted and that no launcher may use any more (F1)."""
    for key in sorted(book.held.freeable) if book.held.freeable else ():
        holding = book.state.holdings[key]
        yield d.HeldFreed(holding.namespace, holding.claim.name, holding.claim.uid)


def restoring(book: Book, spent: Spent) -> Iterator[d.Decision]:
    """Bring together what is split over nodes or partly Lost: onto one node, else it goes Lost whole (D10)."""
    for line_group, restore in ((AGAIN, said_again), (APART, restored)):
        for group in book.held.line.members(line_group):
            if spent.is_all():
                return
            if not book.is_held_up(group):
                yield from restore(book, group)


def is_torn(book: Book) -> bool:
    """Say whether claims came together during a pass that stand apart: they are brought together in the same one."""
    if APART not in book.held.line.groups or is_paused(book.state, book.settings):
        return False
    return not book.behind or not all(map(book.is_held_up, book.held.line.members(APART)))


def restored(book: Book, group: str) -> Iterator[d.Decision]:
    """Bring one group together, if it is not: where a node that holds some of it takes all, there."""
    held = book.held.of(group)
    if not is_apart(held) or is_paused(book.state, book.settings):
        return
    nodes, gathered = sorted({one.node: True for one in held if one.node}), affordable(book, held)
    need = need_of(book, gathered) if nodes and gathered else None
    # Who held units comes before everyone who waits for some: also where a node is kept.
    node = fit(book, replace(need, kept="")) if isinstance(need, Need) else ""
    if node:
        yield _placed(book, gathered, node, Placing.GATHERED)
        return
    message = "claims that go together have no node that takes them all"
    yield d.HeldLost(held[0].namespace, claims_of_group(book, held), nodes[0] if nodes else "", Unkept.SPLIT, message)


def said_again(book: Book, group: str) -> Iterator[d.Decision]:
    """Say again what a server back from a backup shows as it was before (T12), or what somebody took off (F1).

    Claims whose first place can't be written give it back: nobody can use units that no claim shows (T23).
    """
    held = book.held.of(group)
    refused = next((one for one in held if one.refused), None)
    if refused is not None:
        if not is_paused(book.state, book.settings):
            message = f"a write was refused ({refused.refused}); it is tried again"
            claims = claims_of_group(book, held)
            yield d.HeldLost(refused.namespace, claims, refused.node, Unkept.WRITE_REFUSED, message)
        return
    for one in held:
        if not one.again:
            continue
        claims = claims_of_group(book, [one])
        if one.node:
            yield d.HeldPlaced(one.namespace, claims, one.node, Placing.AGAIN)
        elif one.lost:
            yield d.HeldLost(one.namespace, claims, "", one.lost, one.message)
        elif one.reason:
            yield d.HeldWaits(one.namespace, claims, one.reason, one.message, one.over)


def leaves_a_node(book: Book, decision: d.Decision) -> bool:
    """Say whether a decision that is not folded yet takes held claims off a node: who waits may fit there then."""
    match decision:
        case d.HeldLost():
            return True
        case d.HeldPlaced():
            held = [book.state.holding(decision.namespace, claim.name) for claim in decision.claims]
            return any(one is not None and one.node not in {"", decision.node} for one in held)
        case d.SetBooked():
            held = [book.state.holding(decision.vmi.namespace, claim.name) for claim in decision.held]
            return any(one is not None and one.node not in {"", decision.node} for one in held)
        case d.SetPlaced():
            return any(one.node not in {"", decision.node} for one in book.held.of(decision.vmi.uid))
        case _:
            return False


class Left:
    """Who got no place so far: VMIs by uid, and groups of held claims; `full`: telling them ends the input (T5)."""

    def __init__(self) -> None:
        self.sets: dict[str, VmiView] = {}
        self.groups: dict[str, bool] = {}
        self.full = False


def serving(book: Book, spent: Spent, left: Left) -> Iterator[d.HeldPlaced]:
    """Rebind what is Lost, then bind new orders, oldest first; name who gets no place (D6)."""
    touched, untold = Touched(book, book.held), 0
    rank = FIRST
    while (head := _next(book.held, touched, rank)) is not None:
        rank, group = head, head[-1]
        held = book.held.of(group)
        if spent.is_all(untold):
            left.full = True
            break
        if all(one.node for one in held) or book.goes_with_set(group) or book.is_held_up(group):
            continue
        need = _standing(book, held)
        node = fit(book, need, touched.among(group)) if isinstance(need, Need) else ""
        if not node:
            left.groups[group] = True
            # One that this input has let go Lost is counted already.
            untold += _is_untold(held, need) and not any(spent.is_about(one.claim.uid) for one in held)
            continue
        yield _placed(book, held, node, Placing.REBOUND if any(one.lost for one in held) else Placing.ORDERED)
        touched.look_again()


def _is_untold(held: list[Holding], need: Need | Wait | d.Over) -> bool:
    """Say whether claims without a node are sure to be told something new at the end of this input."""
    if isinstance(need, d.Over):
        return any(not (one.reason is Wait.OVER_BUDGET and told_alike(one.over, need)) for one in held if not one.node)
    if isinstance(need, Wait):
        return any(one.reason is not need for one in held if not one.node)
    return any(one.reason in {None, Wait.PAUSED} for one in held if not one.node)


def _next(held: Holdings, touched: Touched, rank: Rank) -> Rank | None:
    line = held.line
    heads = [head for group in touched.groups() if (head := line.after(group, rank)) is not None]
    return min(heads, default=None)


def telling_groups(book: Book, spent: Spent, unplaced: dict[str, bool]) -> Iterator[d.HeldWaits]:
    """Tell why, once per change of reason."""
    touched = Touched(book, book.held)
    for resource in touched.shrunk():
        unplaced.update(dict.fromkeys(book.held.line.members(short_group(resource)), True))
    for group in unplaced:
        if spent.is_all():
            return
        told = _waits(book, group, touched.among(group))
        if told is not None:
            yield told


def _waits(book: Book, group: str, among: Collection[str] | None) -> d.HeldWaits | None:
    waiting = [one for one in book.held.of(group) if not one.node]
    if not waiting or book.goes_with_set(group) or book.is_held_up(group):
        return None
    need = _standing(book, book.held.of(group))
    over = need if isinstance(need, d.Over) else None
    known = waiting[0].reason
    if isinstance(need, Need):
        reason = nearest(book, need, known, among)
    else:
        reason = Wait.OVER_BUDGET if isinstance(need, d.Over) else need
    if all(one.reason is reason and (over is None or told_alike(one.over, over)) for one in waiting):
        return None
    message = sentence(over) if over is not None else MESSAGES[reason]
    return d.HeldWaits(waiting[0].namespace, claims_of_group(book, waiting), reason, message, over)


def _standing(book: Book, held: list[Holding]) -> Need | Wait | d.Over:
    """Return what claims ask of a node, unless an operator released them not long ago, or a budget has not so many.

    Budgets are asked for what doesn't count yet (B3).
    """
    resting = next((one for one in held if one.retry_ns > book.state.now_ns), None)
    if resting is not None:
        return Wait.WRITE_REFUSED if resting.lost is Unkept.WRITE_REFUSED else Wait.RELEASED
    need = need_of(book, held)
    if isinstance(need, Wait):
        return need
    return first_over(book.budgets, held[0].namespace, book.charging.asked_by(held)) or need


def affordable(book: Book, held: list[Holding]) -> list[Holding]:
    """Return claims that go together, without the Pending ones where their budgets have no units left for them (B3).

    None are returned where that would still be too much: some went Lost with the others before they held units.
    """
    for some in (held, [one for one in held if one.node or one.lost]):
        if first_over(book.budgets, held[0].namespace, book.charging.asked_by(some)) is None:
            return some
    return []


def need_of(book: Book, held: list[Holding], skipped: tuple[str, ...] = ()) -> Need | Wait:
    """Return what claims that go together ask of one node, or why that can't be told; `skipped`: nodes they leave."""
    if is_paused(book.state, book.settings):
        return Wait.PAUSED
    claims = [counted(book.state, one) for one in held]
    classes = [book.state.gpu_class(one.claim.class_name) for one in held]
    if any(claim is None for claim in claims) or any(view is None for view in classes):
        return Wait.CLASS_NOT_FOUND
    tolerations = tuple(view.tolerations for view in classes if view is not None)
    return Need(units_of(claims), {}, tolerations, {}, None, (), skipped, own_units(held), kept_from(book))


def _placed(book: Book, held: list[Holding], node: str, why: Placing) -> d.HeldPlaced:
    return d.HeldPlaced(held[0].namespace, claims_of_group(book, held), node, why)


def claims_of_group(book: Book, held: list[Holding]) -> tuple[HeldClaim, ...]:
    """Return claims as a decision names them: with the resource that they are or would be counted by."""
    return tuple(counted(book.state, one) or one.claim for one in held)
