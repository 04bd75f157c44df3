"""What follows when a node can't keep what is booked on it, and the grace is over (D8, D9, C16, C35, C40).

A launcher that runs, or may run, is left alone: its units stay booked until its pod is gone or terminal, and
nothing of it is started a second time. A booking whose pod waits behind the gate is released and gathered
again; a VMI that is pinned and not running is given up, and its units are free when its pod is gone.
Where units are missing, only as many are let go as it takes.
"""

from collections.abc import Iterable, Iterator, Sequence

from binder.book import Book
from binder.holdings import share_of
from binder.launchers import may_run
from binder.settings import is_paused
from binder.skips import LEAVING_NS
from binder.state import GpuSet, awaits_launcher
from binder.troubles import (
    GONE,
    GONE_NS,
    GRACE_NS,
    NOT_READY,
    OVERDUE,
    SECOND,
    TAINT,
    is_borne,
    overdue,
    short_of,
    taint_word,
)
from binder.usage import claims_of, units
from schemas import decisions as d
from schemas.names import GATE
from schemas.objects import PodView
from schemas.reasons import Release, Unkept

BEFORE_RUNNING = ("", "Pending", "Scheduling", "Scheduled")
"""Phases of a VMI that does not run yet; any other, also one not known here, counts as running."""

MESSAGES = {
    Unkept.NODE_GONE: f"has been gone for {GONE_NS // SECOND} seconds",
    Unkept.NODE_NOT_READY: f"has not been ready for {GRACE_NS // SECOND} seconds",
    Unkept.NODE_TAINTED: f"has had a taint that not every class tolerates for {GRACE_NS // SECOND} seconds",
    Unkept.UNITS_GONE: f"has offered fewer units than are used for {GRACE_NS // SECOND} seconds",
    Unkept.COMMANDED: "was to be left, an operator said so",
}


def letting_go(book: Book) -> Iterator[d.SetReleased | d.SetClosed | d.VmiGivenUp]:
    """End bookings on nodes that can't keep them: before the gated pods are served, since these need a place."""
    for name in nodes_to_leave(book):
        for gpu_set in _in_order(book, book.troubles.sets.of(name)):
            why = unkept(book, name, claims_of(gpu_set))
            if why is not None:
                yield from let_go(book, gpu_set, why)
        for resource in short_resources(book, name):
            yield from _few(book, name, resource)


def nodes_to_leave(book: Book) -> list[str]:
    """Return the nodes that a pass has to look at, unless placing is paused: then everything stays where it is."""
    if not book.state.troubles or is_paused(book.state, book.settings):
        return []
    return sorted(name for name, how in book.state.dirty_nodes.items() if how & OVERDUE)


def short_resources(book: Book, name: str) -> list[str]:
    """Return the resources of which a node has offered fewer units than are used for too long."""
    return [resource for word in overdue(book.state, name) if (resource := short_of(word)[0])]


def unkept(book: Book, name: str, claims: Sequence[d.TemplateClaim | d.HeldClaim]) -> Unkept | None:
    """Return why a node can't keep these claims at all; units that are missing concern only some."""
    words, node = overdue(book.state, name), book.state.node(name)
    if GONE in words:
        return Unkept.NODE_GONE
    if claims and all(f"{NOT_READY}{claim.resource}" in words for claim in claims):
        return Unkept.NODE_NOT_READY
    if node is None or not any(word.startswith(TAINT) for word in words):
        return None
    lasting = [taint for taint in node.taints if taint_word(taint) in words]
    classes = [claim.class_name for claim in claims]
    return None if all(is_borne(book.state, taint, classes) for taint in lasting) else Unkept.NODE_TAINTED


def let_go(book: Book, gpu_set: GpuSet, why: Unkept) -> Iterator[d.SetReleased | d.SetClosed | d.VmiGivenUp]:
    """End one booking where that starts nothing a second time: released, or its VMI given up; else nothing."""
    if waits_for_launcher(book, gpu_set):
        reason = Release.COMMANDED if why is Unkept.COMMANDED else Release.NODE_UNKEPT
        yield d.SetReleased(gpu_set.vmi, gpu_set.node, reason)
        if gpu_set.start is not None:
            # Nobody stands behind our gate: its launcher will, once the VMI is there.
            yield d.SetClosed(gpu_set.vmi)
    elif is_stoppable(book, gpu_set):
        message = f"node {gpu_set.node} {MESSAGES[why]}: the VM had not started there, and is started anew"
        yield d.VmiGivenUp(gpu_set.vmi, gpu_set.node, why, message)


def waits_for_launcher(book: Book, gpu_set: GpuSet) -> bool:
    """Say whether no pod of a booking was let go: the launcher stands behind our gate, or is still to come.

    Where the pin is known to have landed, the watch merely has not shown it yet.
    """
    pod = _pod(book, gpu_set)
    if awaits_launcher(gpu_set):
        # A launcher that was answered is pinned there, and may be on its way.
        return gpu_set.vmi.uid not in book.state.admitted
    if gpu_set.temporary and gpu_set.pinned:
        return pod is None or pod.ended
    is_written = gpu_set.confirmed >= gpu_set.stamp
    return not gpu_set.pinned and not is_written and pod is not None and GATE in pod.gates


def is_stoppable(book: Book, gpu_set: GpuSet) -> bool:
    """Say whether a VMI is pinned and surely does not run: its phase is before Running, and its pod never ran (D8)."""
    vmi, pod = book.vmi_of(gpu_set.vmi.uid), _pod(book, gpu_set)
    if not gpu_set.pinned or vmi is None or vmi.deleting or vmi.phase not in BEFORE_RUNNING:
        return False
    if pod is None or pod.ran or pod.ended or pod.deleting:
        return False
    return not is_leaving(book, gpu_set)


def is_leaving(book: Book, gpu_set: GpuSet) -> bool:
    """Say whether a VMI was given up not long ago: it goes, and its units with it."""
    return gpu_set.leaving is not None and book.state.now_ns < gpu_set.leaving.at_ns + LEAVING_NS


def _few(book: Book, name: str, resource: str) -> Iterator[d.SetReleased | d.SetClosed | d.VmiGivenUp]:
    """Let go as many bookings as it takes until no more is used than offered, the youngest first (C40).

    Claims that no launcher needs are moved before any VM loses its place.
    """
    node = book.state.node(name)
    if node is None:
        return
    sets = [gpu_set for gpu_set in _in_order(book, book.troubles.sets.of(name)) if resource in units(gpu_set)]
    missing = -book.free(node, resource) - leaving_units(book, name, resource) - _loose_units(book, name, resource)
    for behind_gate in (True, False):
        for gpu_set in sets:
            if missing > 0 and waits_for_launcher(book, gpu_set) is behind_gate:
                for decision in let_go(book, gpu_set, Unkept.UNITS_GONE):
                    missing -= 0 if isinstance(decision, d.SetClosed) else units(gpu_set)[resource]
                    yield decision


def leaving_units(book: Book, name: str, resource: str) -> int:
    """Return the units of VMIs on a node that were given up: they are free before long."""
    sets = [book.state.sets[uid] for uid in book.troubles.sets.of(name)]
    return sum(units(gpu_set).get(resource, 0) for gpu_set in sets if is_leaving(book, gpu_set))


def is_used_unbooked(book: Book, group: str) -> bool:
    """Say whether a launcher of the VMI that holds these claims was let go without a booking of ours: it may run."""
    return may_run(book.state, book.index.pods_by_vmi.of(group))


def _loose_units(book: Book, name: str, resource: str) -> int:
    """Return the units on a node of held claims that no launcher uses: these can be moved."""
    count = 0
    for key in book.troubles.holdings.of(name):
        share = share_of(book.state, book.state.holdings[key])
        if share is not None and not is_used_unbooked(book, book.held.group_of.get(key, "")):
            count += share[1].get(resource, 0)
    return count


def _in_order(book: Book, uids: Iterable[str]) -> list[GpuSet]:
    """Return sets, the youngest VMI first, then by name."""
    sets = [book.state.sets[uid] for uid in uids]
    return sorted(sets, key=lambda one: (-_created(book, one), one.vmi))


def _created(book: Book, gpu_set: GpuSet) -> int:
    vmi = book.vmi_of(gpu_set.vmi.uid)
    return vmi.created if vmi is not None else 0


def _pod(book: Book, gpu_set: GpuSet) -> PodView | None:
    pod = book.state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}")
    return pod if pod is not None and pod.uid == gpu_set.pod_uid else None
