"""No starvation: after a while the node nearest to fitting is kept for the first in line that still has no place.

One node is kept in a cluster at a time. Those behind in the order don't take what becomes free there; those
ahead do, and everyone takes from the other nodes: it is no queue in which one waits for all.
"""

from binder.book import Book
from binder.decide_set import asking
from binder.order import FIRST, PATIENT, Rank
from binder.patience import PATIENCE_NS
from binder.placement import Need, could_take, distance, nearest_to_fit
from schemas import decisions as d
from schemas.objects import VmiView

TRIES_MAX = 64
"""So many of the first in line are asked at one input, where no node could ever take the ones before."""


class Keeping:
    """What one pass decides of the kept node. Each look costs one test of one node where nothing has changed."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._asked, self._tries = FIRST, TRIES_MAX

    def ends(self) -> d.NodeKept | None:
        """End what is kept for one that waits no more, or that the node could not take any more (C55).

        Where its place in line has changed, the node is kept for it anew: others may be behind it now.
        """
        book, kept = self._book, self._book.state.kept
        if kept is None or not kept.node:
            return None
        vmi, node = book.vmi_of(kept.vmi.uid), book.state.node(kept.node)
        need = asking(book, vmi) if vmi is not None else None
        if need is None or node is None or not could_take(book, need, node):
            self._asked = FIRST
            return d.NodeKept(kept.vmi, "")
        return d.NodeKept(kept.vmi, kept.node) if book.rank(kept.vmi.uid) != kept.rank else None

    def begins(self, vmi: VmiView, rank: Rank) -> d.NodeKept | None:
        """Keep a node for one that just got no place and has waited long enough, unless one ahead has it."""
        book, kept = self._book, self._book.state.kept
        if not book.patience.is_over(vmi.key):
            return None
        need = asking(book, vmi)
        if need is None:
            return None
        standing = ""
        if kept is not None and kept.node:
            if kept.rank < rank:
                return None
            standing = kept.node if kept.vmi.uid == vmi.uid else ""
            if standing and book.state.now_ns < kept.at_ns + PATIENCE_NS:
                return None
        return self._chosen(vmi, need, standing)

    def follows(self, before: Rank | None) -> d.NodeKept | None:
        """Where the last one has ended: keep a node for the next in line, if it is ahead of `before` (None: all)."""
        book, kept = self._book, self._book.state.kept
        while kept is not None and not kept.node and self._tries:
            head = book.line.after(PATIENT, self._asked)
            if head is None or (before is not None and head >= before):
                return None
            self._asked, self._tries = head, self._tries - 1
            vmi = book.vmi_of(head[-1])
            need = asking(book, vmi) if vmi is not None else None
            found = self._chosen(vmi, need, "") if vmi is not None and need is not None else None
            if found is not None:
                return found
        return None

    def _chosen(self, vmi: VmiView, need: Need, standing: str) -> d.NodeKept | None:
        """Choose the nearest node; one that is kept already is given up for one that is nearer alone."""
        book = self._book
        name = nearest_to_fit(book, need)
        node, before = book.state.node(name), book.state.node(standing)
        if node is None or (before is not None and distance(book, need, node) >= distance(book, need, before)):
            return None
        return d.NodeKept(d.VmiId(vmi.namespace, vmi.name, vmi.uid), name)
