"""When a booking ends: no pod needs it any more, its node did not take it, its pin was refused, its VMI never came."""

from collections.abc import Iterator

from binder.book import ADMITTED_KEPT_NS, Book
from binder.class_use import VMIS
from binder.decide_set import requests_match
from binder.launchers import FINAL_PHASES, may_run
from binder.order import ENDS
from binder.rules.serving import selector_accepts, terms_accept
from binder.skips import giving_up
from binder.starts import is_overdue
from binder.state import GpuSet, awaits_launcher, is_absent
from schemas import decisions as d
from schemas.events import PodRequest
from schemas.names import POLICY_REFUSE
from schemas.objects import PodView, VmiView
from schemas.reasons import GiveUp, Release


def ending(book: Book, uid: str) -> Iterator[d.Decision]:
    """End a booking that no pod needs any more, or that can't be written or kept; close a set whose VMI is gone.

    Units are free when the launcher is gone or terminal, never on the VMI's phase alone.
    """
    gpu_set = book.state.sets.get(uid)
    if gpu_set is None:
        return
    vmi = book.vmi_of(uid)
    if gpu_set.node:
        skipped = giving_up(gpu_set, book.state.now_ns)
        if skipped is not None:
            yield skipped
        refused = skipped is not None and skipped.cause is GiveUp.REFUSED
        why = Release.NODE_REFUSED if refused else _ended(book, gpu_set, vmi)
        if why is None:
            return
        yield d.SetReleased(gpu_set.vmi, gpu_set.node, why)
    if vmi is None:
        yield d.SetClosed(gpu_set.vmi)


def ended_unseen(book: Book) -> Iterator[d.SetReleased]:
    """End the bookings whose pods have gone or ended where VMIs are not served: nobody will see theirs go (C61)."""
    if not is_absent(book.state, VMIS):
        return
    for uid in book.line.members(ENDS):
        gpu_set = book.state.sets[uid]
        pod = book.state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}")
        if pod is None or pod.uid != gpu_set.pod_uid or pod.ended:
            why = Release.LAUNCHER_ENDED if pod is not None and pod.ended else Release.LAUNCHER_GONE
            yield d.SetReleased(gpu_set.vmi, gpu_set.node, why)


def booked_node(book: Book, request: PodRequest) -> str:
    """Return the node that a launcher is pinned to at its creation, '' where it goes behind our gate (P1, P2).

    The node is the VMI's booking, made at admission: for its first pod, and for the launcher after a temporary one.
    A migration target never inherits it (T25), and a booking that was lost in between leaves the launcher to wait.
    """
    gpu_set = book.state.sets.get(request.vmi.uid)
    if request.policy != POLICY_REFUSE or request.migration or gpu_set is None or not gpu_set.node:
        return ""
    return gpu_set.node if awaits_launcher(gpu_set) or gpu_set.temporary else ""


def _early(book: Book, gpu_set: GpuSet, vmi: VmiView | None) -> Release | None:
    """End a booking whose launcher was not seen yet; where one was answered, and pinned there, it may be on its way.

    The phase of a VMI counts here: nothing of it runs, and a launcher that came after all would wait at the gate.
    """
    start, answered = gpu_set.start, gpu_set.vmi.uid in book.state.admitted
    if vmi is not None:
        ended = vmi.deleting or vmi.phase in FINAL_PHASES
        return Release.VMI_GONE if ended and not _may_come(book, gpu_set.vmi.uid) else None
    if start is None:
        return Release.VMI_GONE
    if answered:
        return None
    if start.withdrawn:
        return Release.WITHDRAWN
    return Release.NEVER_SEEN if is_overdue(gpu_set, book.state.sessions.get(VMIS)) else None


def _may_come(book: Book, uid: str) -> bool:
    """Say whether a launcher that was answered may be on its way to a VMI that ended: not for ever.

    It may have come and gone while nobody watched; a pod that is there, whatever it is, is waited for.
    """
    known = book.state.admitted.get(uid)
    if known is None:
        return False
    pods = (book.state.pod(key) for key in book.index.pods_by_vmi.of(uid))
    return book.state.now_ns < known.at_ns + ADMITTED_KEPT_NS or any(pod and not pod.ended for pod in pods)


def _ended(book: Book, gpu_set: GpuSet, vmi: VmiView | None) -> Release | None:
    if awaits_launcher(gpu_set):
        return _early(book, gpu_set, vmi)
    if vmi is not None and gpu_set.temporary and not _may_take_over(book, gpu_set, book.launcher_of(vmi)):
        return Release.LAUNCHER_CHANGED
    pod = book.state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}")
    if pod is None or pod.uid != gpu_set.pod_uid:
        # A temporary pod shares its booking with the launcher that comes after it.
        return None if _more_to_come(book, gpu_set, vmi) else Release.LAUNCHER_GONE
    if pod.ended:
        return None if _more_to_come(book, gpu_set, vmi) else Release.LAUNCHER_ENDED
    if gpu_set.pinned:
        return None
    if gpu_set.refused:
        return Release.PIN_REFUSED
    return None if _still_fits(book, gpu_set, pod) else Release.LAUNCHER_CHANGED


def _may_take_over(book: Book, gpu_set: GpuSet, launcher: PodView | None) -> bool:
    """Say whether the launcher that follows a temporary pod asks for the same set; so does one that is not there."""
    return launcher is None or launcher.uid == gpu_set.pod_uid or requests_match(book, gpu_set, launcher)


def _more_to_come(book: Book, gpu_set: GpuSet, vmi: VmiView | None) -> bool:
    """Say whether a pod follows that the booking is kept for: not on a node that did not take the one before (D7).

    One that was pinned at its creation may run before its VMI lists it: the phase of the VMI ends nothing.
    """
    if not gpu_set.temporary or vmi is None:
        return False
    if vmi.deleting or vmi.phase in FINAL_PHASES:
        return may_run(book.state, book.index.pods_by_vmi.of(vmi.uid))
    return gpu_set.node not in book.skips.of(vmi.key)


def _still_fits(book: Book, gpu_set: GpuSet, pod: PodView) -> bool:
    """Say whether a pod that is not pinned yet may be pinned to the booked node as it stands now."""
    node = book.state.node(gpu_set.node)
    if (pod.terms or ()) == gpu_set.terms or node is None:
        return True
    return selector_accepts(pod.node_selector, node) and terms_accept(pod.terms, node)
