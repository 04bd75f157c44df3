"""The fold of held claims: what is seen of them, and what each decision does to them.

A holding is made when a claim that is no template is first seen, and dropped when it is seen gone. What its status
shows never places it (T14).
"""

from msgspec.structs import replace

from binder.book import Book
from binder.holdings import key_of
from binder.indexes import elder_of, named_by
from binder.state import GpuSet, Holding
from schemas import decisions as d
from schemas.claims import Phase
from schemas.events import Outcome
from schemas.names import CLAIM_FINALIZER
from schemas.objects import AnyView, ClaimView, Stamp, VmView
from schemas.reasons import Unkept

RETRY_NS_FIRST = 2 * 1_000_000_000
RETRY_NS_MAX = 300 * 1_000_000_000
"""A refused write is tried again after 2 s, doubling to five minutes: never at stream speed (T23)."""

DOUBLINGS_MAX = 16
RELEASED_NS = 600 * 1_000_000_000
"""Claims that an operator released are bound anew after so much logical time: whoever freed a node has it for long."""


def observed(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    """Follow a claim that came, changed or went."""
    view = after if after is not None else before
    if not isinstance(view, ClaimView):
        return
    known = book.state.holdings.get(view.key)
    if not isinstance(after, ClaimView) or after.template:
        if known is not None:
            book.store_holding(view.key, None)
        return
    if known is None or known.claim.uid != after.uid:
        claim = d.HeldClaim(after.name, after.uid, after.class_name, after.count, "")
        book.store_holding(view.key, _as_held(book, view.key, Holding(after.namespace, claim)))
    elif known.freed and not after.deleting:
        # A server back from a backup knows nothing of its deletion: it is an order like any other.
        book.store_holding(view.key, _as_held(book, view.key, replace(known, freed=False)))
    if before is None or (before.uid, before.deleting) != (after.uid, after.deleting):
        book.held.mark(view.key)
        book.mark_namers(view.key)
    elif isinstance(before, ClaimView) and not after.deleting and _is_stripped(before, after):
        _say_again(book, view.key, book.state.holdings[view.key])


def _is_stripped(before: ClaimView, after: ClaimView) -> bool:
    """Say whether somebody took our finalizer off a claim that nobody deletes (F1)."""
    return CLAIM_FINALIZER in before.finalizers and CLAIM_FINALIZER not in after.finalizers


def _as_held(book: Book, key: str, holding: Holding) -> Holding:
    """Return a claim as the set has it that was opened with it: one that is seen again is still used by its VMI."""
    for uid in sorted(book.index.claim_vmis.of(key)):
        gpu_set = book.state.sets.get(uid)
        said = [one for one in gpu_set.held if one.uid == holding.claim.uid] if gpu_set is not None else []
        if gpu_set is not None and said:
            claim = said[0] if gpu_set.node else holding.claim
            stamp = max(holding.stamp, gpu_set.stamp)
            return replace(holding, claim=claim, node=gpu_set.node, attached=gpu_set.vmi, stamp=stamp)
    return holding


def vm_changed(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    """Look again at the claims that a VM names, or named: they may go with others now.

    Others that name one are concerned only where the oldest is another one.
    """
    sides = [view for view in (before, after) if isinstance(view, VmView)]
    for key in dict.fromkeys(key for view in sides for key in named_by(view)):
        book.held.mark(key)
        if _leads(book, key, before) != _leads(book, key, after):
            book.mark_namers(key)


def _leads(book: Book, key: str, view: AnyView | None) -> bool:
    """Say whether nobody else that names a claim now is older than this view of a VM that names it."""
    if not isinstance(view, VmView) or key not in named_by(view):
        return False
    first = book.index.claim_vms.first(key)
    return first is None or elder_of(view) <= first


def class_changed(book: Book, key: str) -> None:
    """Look again at a claim that has no node, and at its VMI's set, as its class changed."""
    holding = book.state.holdings.get(key)
    if holding is not None and not holding.node:
        book.held.mark(key)
        book.mark_namers(key)
    elif holding is not None and holding.attached is not None:
        book.mark(holding.attached.uid)


def look_again(book: Book) -> None:
    """Mark every held claim: whether anything is placed at all may have changed."""
    for key in book.state.holdings:
        book.held.mark(key)


def attach(book: Book, stamp: Stamp, vmi: d.VmiId, held: tuple[d.HeldClaim, ...]) -> None:
    """Let a set hold these claims, and no others."""
    names = {claim.name: claim for claim in held}
    for holding in book.held.of(vmi.uid):
        if holding.claim.name not in names:
            book.store_holding(key_of(holding), replace(holding, attached=None, stamp=stamp))
    for claim in held:
        known = book.state.holding(vmi.namespace, claim.name)
        if known is not None and known.claim.uid == claim.uid and not known.freed:
            book.store_holding(
                key_of(known),
                replace(known, attached=vmi, stamp=stamp, reason=None, message="", told=Stamp(), again=False),
            )


def follow(book: Book, stamp: Stamp, gpu_set: GpuSet) -> None:
    """Let the claims of a set show its newest decision, and be where it is booked."""
    held = book.held.of(gpu_set.vmi.uid)
    if not held:
        return
    said = {claim.name: claim for claim in gpu_set.held}
    for holding in held:
        claim = said.get(holding.claim.name, holding.claim)
        if not gpu_set.node:
            book.store_holding(key_of(holding), replace(holding, stamp=stamp))
            continue
        book.store_holding(
            key_of(holding),
            replace(
                holding, stamp=stamp, claim=claim, node=gpu_set.node, lost=None, reason=None, message="", told=Stamp(),
                again=False, retry_ns=0,
            ),
        )  # fmt: skip


def detach(book: Book, stamp: Stamp, vmi: d.VmiId) -> None:
    """The set is gone: its claims stay where they are, for whoever uses them next (C30)."""
    for holding in book.held.of(vmi.uid):
        book.store_holding(key_of(holding), replace(holding, attached=None, stamp=stamp))


def placed(book: Book, stamp: Stamp, decision: d.HeldPlaced) -> None:
    """The claims are on a node, counted by the resource of now, also after the class is edited (T24)."""
    for claim, known in _known(book, decision):
        book.store_holding(
            key_of(known),
            replace(
                known, claim=claim, node=decision.node, stamp=stamp, lost=None, reason=None, message="",
                told=Stamp(), again=False, retry_ns=0,
            ),
        )  # fmt: skip


def lost(book: Book, stamp: Stamp, decision: d.HeldLost) -> None:
    """The claims have no node any more; what they are counted by stays. Released by hand, they stay so for a while."""
    for _, known in _known(book, decision):
        fails = known.fails + (decision.reason is Unkept.WRITE_REFUSED)
        wait_ns = {Unkept.COMMANDED: RELEASED_NS, Unkept.WRITE_REFUSED: back_off_ns(fails)}.get(decision.reason, 0)
        until_ns = book.state.now_ns + wait_ns if wait_ns else 0
        book.store_holding(
            key_of(known),
            replace(
                known, node="", stamp=stamp, lost=decision.reason, reason=None, message=decision.message, told=stamp,
                again=False, refused="", fails=fails, retry_ns=max(until_ns, known.retry_ns),
            ),
        )  # fmt: skip
        book.held.mark(key_of(known))


def refusal_of(outcome: Outcome) -> str:
    """Return what was refused, and how: no value is in it (T16)."""
    where = f"at {outcome.field}" if outcome.field else ""
    return " ".join(part for part in (outcome.action, str(outcome.code), outcome.reason, where) if part)


def back_off_ns(fails: int) -> int:
    """Return for how long what was refused so many times in a row is left alone, in logical nanoseconds (T23)."""
    return min(RETRY_NS_FIRST << min(max(fails - 1, 0), DOUBLINGS_MAX), RETRY_NS_MAX)


def rested(book: Book, key: str) -> None:
    """Claims that an operator released may be bound anew, once they were left alone long enough."""
    known = book.state.holdings.get(key)
    if known is not None and 0 < known.retry_ns <= book.state.now_ns:
        book.store_holding(key, replace(known, retry_ns=0))
        book.held.mark(key)


def waits(book: Book, stamp: Stamp, decision: d.HeldWaits) -> None:
    """The claims were told why they have no node."""
    for _, known in _known(book, decision):
        said = replace(
            known, reason=decision.reason, message=decision.message, over=decision.over, stamp=stamp, told=stamp,
            again=False,
        )  # fmt: skip
        book.store_holding(key_of(known), said)


def freed(book: Book, stamp: Stamp, decision: d.HeldFreed) -> None:
    """A claim that is being deleted holds nothing any more; it is kept until it is gone, as our finalizer has to go."""
    known = book.state.holding(decision.namespace, decision.name)
    if known is not None and known.claim.uid == decision.uid:
        book.store_holding(key_of(known), Holding(known.namespace, known.claim, stamp, known.confirmed, freed=True))


def _known(book: Book, decision: d.HeldPlaced | d.HeldLost | d.HeldWaits) -> list[tuple[d.HeldClaim, Holding]]:
    """Return the claims that a decision is about as they stand: those that are gone since are passed over."""
    found = [(claim, book.state.holding(decision.namespace, claim.name)) for claim in decision.claims]
    return [(claim, known) for claim, known in found if known is not None and known.claim.uid == claim.uid]


def went_back(book: Book) -> None:
    """Have said again what a server back from a backup shows as it was before (T12)."""
    for key, holding in list(book.state.holdings.items()):
        shown = book.state.claim(key)
        if holding.freed:
            # Its finalizer may be back: it is freed once more.
            book.store_holding(key, replace(holding, freed=False))
            continue
        if shown is not None and shown.stamp < holding.stamp:
            _say_again(book, key, holding)


def _say_again(book: Book, key: str, holding: Holding) -> None:
    """Have the newest decision on a claim said once more, with the set that has it where one does."""
    if holding.attached is None and (holding.node or holding.lost or holding.reason):
        book.store_holding(key, replace(holding, again=True))
        book.held.mark(key)
    elif holding.attached is not None and (gpu_set := book.state.sets.get(holding.attached.uid)) is not None:
        # Its set is said again, as for the claims that it has of its own.
        book.store_set(gpu_set.vmi.uid, replace(gpu_set, missing=True))
        book.mark(gpu_set.vmi.uid)


def hear(book: Book, outcome: Outcome) -> None:
    """What became of a write about a claim that no set holds; of an older decision it says nothing (T23).

    Refused is what a claim's owner can't see: where it shows no units yet, they are free for others meanwhile.
    """
    known = book.state.holding(outcome.namespace, outcome.name)
    if known is None or outcome.stamp != known.stamp:
        return
    key = key_of(known)
    if not outcome.code:
        fails = 0 if known.node else known.fails
        book.store_holding(key, replace(known, confirmed=outcome.stamp, fails=fails))
        return
    view = book.state.claim(key)
    if known.node and known.attached is None and view is not None and view.phase != Phase.BOUND:
        book.store_holding(key, replace(known, refused=refusal_of(outcome)))
        book.held.mark(key)
