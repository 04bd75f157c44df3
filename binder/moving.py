"""Moves of held claims off nodes that can't keep them: as a group to another node, else they go Lost (D9, D10).

Claims whose launcher is booked are part of its set and stay with it. Where units are missing, only as many
groups are moved as it takes, the youngest first (C40).
"""

from collections.abc import Iterator

from msgspec.structs import replace

from binder.book import Book
from binder.decide_holdings import affordable, claims_of_group, need_of
from binder.evolve import Spent
from binder.holdings import share_of
from binder.keeping import MESSAGES, is_used_unbooked, leaving_units, nodes_to_leave, short_resources, unkept
from binder.placement import Need, fit
from binder.state import Holding
from schemas import decisions as d
from schemas.reasons import Placing, Unkept


def moving(book: Book, spent: Spent) -> Iterator[d.HeldPlaced | d.HeldLost]:
    """Move what its node can't keep, whole groups, once the graces are over."""
    for name in nodes_to_leave(book):
        for group in groups_on(book, name):
            if spent.is_all():
                return
            why = unkept(book, name, [one.claim for one in book.held.of(group)])
            if why is not None:
                yield moved(book, group, name, why)
        for resource in short_resources(book, name):
            yield from _few(book, spent, name, resource)


def _few(book: Book, spent: Spent, name: str, resource: str) -> Iterator[d.HeldPlaced | d.HeldLost]:
    for group in groups_on(book, name):
        node = book.state.node(name)
        if spent.is_all() or node is None or book.free(node, resource) + leaving_units(book, name, resource) >= 0:
            return
        if units_on(book, group, name, resource):
            yield moved(book, group, name, Unkept.UNITS_GONE)


def groups_on(book: Book, name: str) -> list[str]:
    """Return the groups with claims on a node that no booked launcher uses, the youngest first, then by name."""
    found = {book.held.group_of[key]: True for key in book.troubles.holdings.of(name) if key in book.held.group_of}
    held = [group for group in found if any(share_of(book.state, one) for one in book.held.of(group))]
    loose = [group for group in held if not is_used_unbooked(book, group) and not book.is_held_up(group)]
    return sorted(loose, key=book.held.age)


def units_on(book: Book, group: str, name: str, resource: str) -> int:
    """Return the units of a resource that a group has on a node, apart from those that a launcher's booking counts."""
    shares = [share for one in book.held.of(group) if (share := share_of(book.state, one)) and share[0] == name]
    return sum(amounts.get(resource, 0) for _, amounts in shares)


def moved(book: Book, group: str, name: str, why: Unkept) -> d.HeldPlaced | d.HeldLost:
    """Move a group to the fullest other node that takes all of it, else let it go Lost."""
    held = affordable(book, book.held.of(group))
    need = need_of(book, held, (name,)) if held else None
    # Who held units comes before everyone who waits for some: also where a node is kept.
    node = fit(book, replace(need, kept="")) if isinstance(need, Need) else ""
    if node:
        return d.HeldPlaced(held[0].namespace, claims_of_group(book, held), node, Placing.MOVED)
    return lost(book, book.held.of(group), name, why)


def lost(book: Book, held: list[Holding], name: str, why: Unkept) -> d.HeldLost:
    """Let a group go Lost: it has no node any more, and is rebound as soon as one takes all of it."""
    message = f"node {name} {MESSAGES[why]}" + ("" if why is Unkept.COMMANDED else ", and no other node takes them all")
    return d.HeldLost(held[0].namespace, claims_of_group(book, held), name, why, message)
