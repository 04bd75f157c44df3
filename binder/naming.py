"""Which held claims a VMI may use: those it names that exist, and that are nobody else's (pure).

A claim is of the VMI it is attached to, else of the oldest VM that names it. A template claim can't be named.
"""

from binder.book import Book
from binder.holdings import counted, key_of
from binder.launchers import claim_names
from binder.state import Holding
from schemas.decisions import HeldClaim
from schemas.objects import VmiView
from schemas.reasons import Wait


def held_claims(book: Book, vmi: VmiView) -> tuple[HeldClaim, ...] | Wait:
    """Return the held claims of a VMI in the order of its entries, or why it can't have them all."""
    names = claim_names(vmi.gpus)
    if not names:
        # Most VMIs name none.
        return ()
    found: list[HeldClaim] = []
    obstacles: list[Wait] = []
    for name in names:
        claim = _claim(book, vmi, book.state.holding(vmi.namespace, name))
        if isinstance(claim, Wait):
            obstacles.append(claim)
        else:
            found.append(claim)
    return min(obstacles, key=list(Wait).index) if obstacles else tuple(found)


def _claim(book: Book, vmi: VmiView, holding: Holding | None) -> HeldClaim | Wait:
    if holding is None or holding.freed:
        return Wait.CLAIM_NOT_FOUND
    key = key_of(holding)
    if holding.attached is None:
        view = book.state.claim(key)
        if view is None or view.deleting:
            return Wait.CLAIM_NOT_FOUND
        if book.held.oldest_namer(key) not in {"", vmi.key}:
            return Wait.CLAIM_IN_USE
    elif holding.attached.uid != vmi.uid:
        return Wait.CLAIM_IN_USE
    return _as_opened(book, vmi, holding) or counted(book.state, holding) or Wait.CLASS_NOT_FOUND


def _as_opened(book: Book, vmi: VmiView, holding: Holding) -> HeldClaim | None:
    """Return the claim as the set was opened with it, if it was never placed: the launcher was made for that (T24)."""
    gpu_set = book.state.sets.get(vmi.uid)
    if gpu_set is None or holding.attached is None or holding.claim.resource:
        return None
    return next((claim for claim in gpu_set.held if claim.uid == holding.claim.uid), None)
