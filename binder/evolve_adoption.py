"""The fold of a new generation and its adoption: what was decided before is forgotten, what was found is booked."""

from msgspec.structs import replace

from binder import evolve_holdings
from binder.book import Book
from binder.holdings import key_of
from binder.state import Admitted, GpuSet, State, empty_state
from schemas import decisions as d
from schemas.frames import Genesis
from schemas.objects import Stamp

KEPT = ("now_ns", "stamp_ns", "gap_ns", "paused")
"""What a new generation of a log goes on with: time, and an operator's pause."""


def begin(book: Book, genesis: Genesis) -> None:
    """Begin a generation: a later one knows nothing of what was decided and observed before it."""
    if genesis.generation > 1 or genesis.adopts:
        fresh = empty_state()
        for field in State.__struct_fields__:
            if field not in KEPT:
                # In place: whoever writes what the state tells goes on with the same one.
                setattr(book.state, field, getattr(fresh, field))
        book.state.adopting = genesis.adopts
        book.state.events_seq = genesis.events_last
        book.derive()
    book.state.generation = genesis.generation


def evolve(book: Book, stamp: Stamp, decision: d.LauncherAdopted | d.SetAdopted | d.HeldAdopted | d.Adopted) -> None:
    """Fold one decision of an adoption."""
    match decision:
        case d.LauncherAdopted():
            launcher_adopted(book, decision)
        case d.SetAdopted():
            set_adopted(book, stamp, decision)
        case d.HeldAdopted():
            held_adopted(book, stamp, decision)
        case d.Adopted():
            # What was marked meanwhile is looked at from here on.
            book.state.adopting = False


def launcher_adopted(book: Book, decision: d.LauncherAdopted) -> None:
    """The stamps on its launchers make them the admitted ones, as if we had answered their creation (T25)."""
    book.store_admitted(decision.vmi.uid, Admitted(decision.requests, book.state.now_ns))
    book.mark(decision.vmi.uid)


def set_adopted(book: Book, stamp: Stamp, decision: d.SetAdopted) -> None:
    """The set is booked where its launcher is, which was let go before: there is nothing to pin."""
    vmi = decision.vmi
    pod = book.state.pod(f"{vmi.namespace}/{decision.pod}")
    adopted = GpuSet(
        vmi,
        stamp,
        book.state.now_ns,
        decision.claims,
        held=decision.held,
        node=decision.node,
        pod=decision.pod,
        pod_uid=decision.pod_uid,
        former=decision.former,
        requests=pod.requests if pod is not None else {},
        temporary=pod.temporary if pod is not None else False,
        pinned=True,
    )
    book.store_set(vmi.uid, adopted)
    evolve_holdings.attach(book, stamp, vmi, decision.held)
    evolve_holdings.follow(book, stamp, adopted)
    # It may have ended, or lost a claim, since it was let go.
    book.mark(vmi.uid)


def held_adopted(book: Book, stamp: Stamp, decision: d.HeldAdopted) -> None:
    """The claims are where their status says, or Lost."""
    for claim in decision.claims:
        known = book.state.holding(decision.namespace, claim.name)
        if known is not None and known.claim.uid == claim.uid and not known.freed:
            found = replace(known, claim=claim, node=decision.node, stamp=stamp)
            if decision.lost is not None:
                found = replace(found, lost=decision.lost, message=decision.message, told=stamp)
            book.store_holding(key_of(known), found)
            book.held.mark(key_of(known))
