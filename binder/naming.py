"""Which held claims a VMI may use: those it names that exist, and that are nobody else's (pure).

A claim is of the VMI it is attached to, else of the oldest VM that names it. A template claim can't be named.
"""

from msgspec.structs import replace

from binder.book import Book
from binder.holdings import counted, key_of
from binder.launchers import claim_names, resolved_claim
from binder.state import Holding
from schemas.decisions import HeldClaim
from schemas.objects import VmiView
from schemas.reasons import Wait

NAMED_MOST = 3
"""So many claims of one VM are named; the rest is counted."""


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


def in_use(book: Book, vmi: VmiView) -> str:
    """Say which claims that a VMI names are another VM's, and whose; '' where none is.

    Who uses a claim and who is only the older VM that names it are told alike: a stop of that VM changes nothing.
    """
    told: dict[str, list[str]] = {}
    for name in claim_names(vmi.gpus):
        holding = book.state.holding(vmi.namespace, name)
        if holding is not None and _claim(book, vmi, holding) is Wait.CLAIM_IN_USE:
            told.setdefault(_owner(book, holding), []).append(name)
    return "; ".join(_of_owner(owner, sorted(names), vmi.name) for owner, names in sorted(told.items()))


def _owner(book: Book, holding: Holding) -> str:
    """Return the name of the VM that a claim is for, which is of the claim's own namespace."""
    if holding.attached is not None:
        return holding.attached.name
    return book.held.oldest_namer(key_of(holding)).partition("/")[2]


def _of_owner(owner: str, claims: list[str], asking: str) -> str:
    one = len(claims) == 1
    named = f"the held claim{'' if one else 's'} {_some(claims)} {'is' if one else 'are'}"
    pronoun = "it" if one else "them"
    if owner == asking:
        return f"{named} still used by this VM's run before, and free when that has ended"
    return (
        f"{named} for VM {owner}, which uses {pronoun}, or is older and names {pronoun} too; to have {pronoun} here, "
        f"delete that VM or take {pronoun} out of its template"
    )


def _some(names: list[str]) -> str:
    rest = len(names) - NAMED_MOST
    return ", ".join(names[:NAMED_MOST]) + (f" and {rest} more" if rest > 0 else "")


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
    return _as_opened(book, vmi, holding) or _as_admitted(book, vmi, holding) or Wait.CLASS_NOT_FOUND


def _as_admitted(book: Book, vmi: VmiView, holding: Holding) -> HeldClaim | None:
    """Return the claim as it is counted; one that was never placed, as the VMI was admitted with it (T24)."""
    claim = counted(book.state, holding)
    device = resolved_claim(vmi, holding.claim.name) if claim is not None and not holding.claim.resource else ""
    return replace(claim, resource=device) if claim is not None and device else claim


def _as_opened(book: Book, vmi: VmiView, holding: Holding) -> HeldClaim | None:
    """Return the claim as the set was opened with it, if it was never placed: the launcher was made for that (T24)."""
    gpu_set = book.state.sets.get(vmi.uid)
    if gpu_set is None or holding.attached is None or holding.claim.resource:
        return None
    return next((claim for claim in gpu_set.held if claim.uid == holding.claim.uid), None)
