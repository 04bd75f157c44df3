"""What to do about one set: end it, open it, place it, or say why it waits."""

import hashlib
from collections.abc import Iterator

from binder.book import Book, units
from binder.launchers import class_entries, launcher_of, volume_terms
from binder.placement import Need, choose
from binder.settings import settings_of
from binder.state import GpuSet
from schemas import decisions as d
from schemas.names import GATE, POLICY_WAIT
from schemas.objects import PodView, VmiView
from schemas.reasons import Release, Wait

FINAL_PHASES = ("Succeeded", "Failed")
CLAIM_NAME_MAX = 253
MESSAGES = {
    Wait.PAUSED: "placing is paused by the operator",
    Wait.CLASS_NOT_FOUND: "a GPU class of this VM does not exist (any more); create it or change the VM's template",
    Wait.FOREIGN_GATE: "the launcher pod waits behind another controller's scheduling gate; ours is taken off last",
    Wait.REQUESTS_MISMATCH: "the launcher pod's GPU requests differ from the VM's entries; restart the VM",
    Wait.VOLUME_NOT_FOUND: "a volume of this VM, or its claim, does not exist",
    Wait.NO_SUCH_DEVICE: "no node offers as many units",
    Wait.NODE_NOT_READY: "every node that offers the units is not ready or is cordoned",
    Wait.TAINT_NOT_TOLERATED: "the nodes that offer the units have taints that not every class tolerates",
    Wait.NODE_AFFINITY: "the VM's node selector or affinity accepts no node that offers the units",
    Wait.VOLUME_ELSEWHERE: "the VM's volumes can't be reached from any node that offers the units",
    Wait.NO_ROOM: "no node has room for the whole set",
    Wait.NO_ROOM_OTHER: "the nodes with free units lack cpu, memory or another resource the launcher requests",
}


def ending(book: Book, uid: str) -> Iterator[d.Decision]:
    """End a booking whose launcher is gone or terminal, or whose pin was refused; close a set whose VMI is gone.

    Units are free when the launcher is gone or terminal, never on the VMI's phase alone.
    """
    gpu_set = book.state.sets.get(uid)
    if gpu_set is None:
        return
    if gpu_set.node:
        why = _ended(book, gpu_set)
        if why is None:
            return
        yield d.SetReleased(gpu_set.vmi, gpu_set.node, why)
    if uid not in book.vmi_keys:
        yield d.SetClosed(gpu_set.vmi)


def _ended(book: Book, gpu_set: GpuSet) -> Release | None:
    pod = book.state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}")
    vmi = book.state.vmi(book.vmi_keys.get(gpu_set.vmi.uid, ""))
    if pod is None or pod.uid != gpu_set.pod_uid:
        # A temporary pod shares its booking with the launcher that comes after it.
        return None if _more_to_come(gpu_set, vmi) else Release.LAUNCHER_GONE
    if pod.ended:
        return None if _more_to_come(gpu_set, vmi) else Release.LAUNCHER_ENDED
    if gpu_set.refused and not gpu_set.pinned:
        return Release.PIN_REFUSED
    return None


def _more_to_come(gpu_set: GpuSet, vmi: VmiView | None) -> bool:
    return gpu_set.temporary and vmi is not None and not vmi.deleting and vmi.phase in {"", "Pending", "Scheduling"}


def next_step(book: Book, uid: str, among: list[str] | None) -> d.Decision | None:
    """Return the next thing to say about a VMI's gated launcher, None when all is said.

    `among`: the nodes touched since the set was last looked at, None for all.
    """
    vmi = book.state.vmi(book.vmi_keys.get(uid, ""))
    if vmi is None or vmi.deleting or vmi.phase in FINAL_PHASES or vmi.policy not in {"", POLICY_WAIT}:
        return None
    pod = launcher_of(book, vmi)
    if pod is None:
        return _restored(book, uid)
    gpu_set = book.state.sets.get(uid)
    opening = _opening(book, vmi, gpu_set)
    if opening is not None or gpu_set is None or not gpu_set.claims:
        return opening
    if gpu_set.node:
        return _pin_again(gpu_set, pod)
    if gpu_set.retry_ns > book.state.now_ns:
        why = f"a write was refused ({gpu_set.refused}); it is tried again"
        return _waits(gpu_set.vmi, gpu_set, Wait.WRITE_REFUSED, why)
    return _place(book, vmi, gpu_set, pod, among)


def _restored(book: Book, uid: str) -> d.Decision | None:
    """Say the claims of a living set again after one of them was deleted under it."""
    gpu_set = book.state.sets.get(uid)
    return d.SetOpened(gpu_set.vmi, gpu_set.claims) if gpu_set is not None and gpu_set.missing else None


def _opening(book: Book, vmi: VmiView, gpu_set: GpuSet | None) -> d.Decision | None:
    """Open the set: one template claim per class entry, counted by the class's resource name of now (T24)."""
    if gpu_set is not None and gpu_set.claims:
        return d.SetOpened(gpu_set.vmi, gpu_set.claims) if gpu_set.missing else None
    identity = d.VmiId(vmi.namespace, vmi.name, vmi.uid)
    claims: list[d.TemplateClaim] = []
    for index, entry in enumerate(class_entries(vmi)):
        view = book.state.gpu_class(entry.class_name)
        if view is None:
            return _waits(identity, gpu_set, Wait.CLASS_NOT_FOUND, MESSAGES[Wait.CLASS_NOT_FOUND])
        claims.append(
            d.TemplateClaim(claim_name(vmi.name, vmi.uid, index), entry.class_name, entry.count, view.resource)
        )
    return d.SetOpened(identity, tuple(claims)) if claims else None


def claim_name(vmi: str, uid: str, index: int) -> str:
    """Return a template claim's name: the VMI's name cut to fit, a hash of its uid, the entry's index (N3)."""
    tail = f"-{hashlib.sha256(uid.encode()).hexdigest()[:10]}-{index}"
    return vmi[: CLAIM_NAME_MAX - len(tail)].rstrip("-.") + tail


def _pin_again(gpu_set: GpuSet, pod: PodView) -> d.Decision | None:
    """Pin the booked node again: another pod of the same VMI took over, or its affinity was changed meanwhile."""
    same_pod = pod.uid == gpu_set.pod_uid
    if gpu_set.pinned and same_pod:
        return None
    if same_pod and (pod.terms or ()) == gpu_set.terms:
        return None
    if pod.gates != (GATE,):
        return None
    return d.SetPlaced(gpu_set.vmi, gpu_set.node, pod.name, pod.uid, pod.terms or ())


def _place(
    book: Book, vmi: VmiView, gpu_set: GpuSet, pod: PodView, among: list[str] | None
) -> d.Decision | None:
    settings = settings_of(book.state)
    if settings.paused or not settings.enabled:
        return _waits(gpu_set.vmi, gpu_set, Wait.PAUSED, MESSAGES[Wait.PAUSED])
    if pod.gates != (GATE,):
        return _waits(gpu_set.vmi, gpu_set, Wait.FOREIGN_GATE, MESSAGES[Wait.FOREIGN_GATE])
    if not _requests_match(book, gpu_set, pod):
        return _waits(gpu_set.vmi, gpu_set, Wait.REQUESTS_MISMATCH, MESSAGES[Wait.REQUESTS_MISMATCH])
    need = need_of(book, vmi, gpu_set, pod)
    if isinstance(need, Wait):
        return _waits(gpu_set.vmi, gpu_set, need, MESSAGES[need])
    node, reason = choose(book, need, among)
    if node:
        return d.SetPlaced(gpu_set.vmi, node, pod.name, pod.uid, pod.terms or ())
    return _waits(gpu_set.vmi, gpu_set, reason, f"{MESSAGES[reason]} ({_asked(gpu_set)})")


def need_of(book: Book, vmi: VmiView, gpu_set: GpuSet, pod: PodView) -> Need | Wait:
    """Return what the set asks of its node, or what of it does not exist."""
    volumes = volume_terms(book, vmi, pod)
    if volumes is None:
        return Wait.VOLUME_NOT_FOUND
    classes = [book.state.gpu_class(claim.class_name) for claim in gpu_set.claims]
    if any(view is None for view in classes):
        return Wait.CLASS_NOT_FOUND
    tolerations = tuple(view.tolerations for view in classes if view is not None)
    return Need(units(gpu_set), pod.requests, tolerations, pod.node_selector, pod.terms, volumes)


def _requests_match(book: Book, gpu_set: GpuSet, pod: PodView) -> bool:
    """Say whether the pod requests exactly its set, of every resource that a class counts by."""
    asked = units(gpu_set)
    requested = {name: amount for name, amount in pod.requests.items() if name in book.ranked and amount}
    return requested == asked


def _asked(gpu_set: GpuSet) -> str:
    return ", ".join(f"{claim.class_name} x{claim.count}" for claim in gpu_set.claims)


def _waits(vmi: d.VmiId, gpu_set: GpuSet | None, reason: Wait, message: str) -> d.Decision | None:
    """Say a reason once; the message holds no counters, so that a repeat is a repeat (C59)."""
    if gpu_set is not None and gpu_set.reason is reason:
        return None
    return d.SetWaits(vmi, reason, message)
