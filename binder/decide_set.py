"""What to do about one set: open it, place it, or say why it waits."""

import hashlib
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from binder.book import Book
from binder.budgets import first_over, sentence, told_alike
from binder.holdings import counted, own_units
from binder.launchers import claim_names, gated_launchers, may_be_served, names_gpus, resolved_classes, volume_terms
from binder.naming import held_claims, in_use
from binder.placement import Need, fit, kept_from, nearest
from binder.settings import is_paused
from binder.state import GpuSet, awaits_launcher
from binder.usage import claims_of, units
from schemas import decisions as d
from schemas.names import GATE
from schemas.objects import PodView, Stamp, VmiView
from schemas.reasons import Wait

CLAIM_NAME_MAX = 253
MESSAGES = {
    Wait.PAUSED: "placing is paused by the operator",
    Wait.NO_LAUNCHER: "the launcher pod was not admitted by this program, another pod carries its stamp, or its "
    "admission is forgotten, as after an API server came back from an older backup; restart the VM, or delete that pod",
    Wait.CLASS_NOT_FOUND: "a GPU class of this VM does not exist (any more); create it or change the VM's template",
    Wait.CLAIM_NOT_FOUND: "a held claim that this VM names does not exist, is being deleted, or is a VM's own; "
    "order it, or change the VM's template",
    Wait.FOREIGN_GATE: "the launcher pod waits behind another controller's scheduling gate; ours is taken off last",
    Wait.REQUESTS_MISMATCH: "the launcher pod's GPU requests differ from the VM's entries; restart the VM",
    Wait.VOLUME_NOT_FOUND: "a volume of this VM, or its claim, does not exist",
    Wait.NO_SUCH_DEVICE: "no node offers as many units",
    Wait.NODE_NOT_READY: "every node that offers the units is not ready or is cordoned",
    Wait.TAINT_NOT_TOLERATED: "the nodes that offer the units have taints that not every class tolerates",
    Wait.NODE_AFFINITY: "the VM's node selector or affinity accepts no node that offers the units",
    Wait.VOLUME_ELSEWHERE: "the VM's volumes can't be reached from any node that offers the units",
    Wait.NO_ROOM: "no node has room for the whole set",
    Wait.NODE_KEPT: "the node with room for the set is kept for a VM that has waited longer",
    Wait.NODE_SKIPPED: "a node with room did not take this VM a short while ago; it is tried again after ten minutes, "
    "or when its resources, taints or readiness change",
    Wait.NO_ROOM_OTHER: "the nodes with free units lack cpu, memory or another resource the launcher requests",
}


def opening(book: Book, vmi: VmiView) -> d.SetOpened | None:
    """Open the set of a gated launcher, or say it again where claims were deleted under it or are others now.

    One template claim per class entry, counted by the resource that the VMI was admitted with, else by its class's of
    now (T24); held claims as named.
    """
    gpu_set = book.state.sets.get(vmi.uid)
    if gpu_set is not None and gpu_set.node:
        return d.SetOpened(gpu_set.vmi, gpu_set.claims, gpu_set.held) if gpu_set.missing else None
    pod = book.launcher_of(vmi)
    if pod is None:
        # Nobody waits for claims that were not its own before.
        lost = gpu_set is not None and gpu_set.missing and _is_open(gpu_set)
        return d.SetOpened(gpu_set.vmi, gpu_set.claims, gpu_set.held) if gpu_set is not None and lost else None
    held = held_claims(book, vmi)
    claims = _opened_with(book, vmi, gpu_set, pod)
    if claims is None or isinstance(held, Wait) or not (claims or held):
        return None
    if gpu_set is not None and (gpu_set.claims, gpu_set.held) == (claims, held) and not gpu_set.missing:
        return None
    return d.SetOpened(d.VmiId(vmi.namespace, vmi.name, vmi.uid), claims, held)


def _opened_with(book: Book, vmi: VmiView, gpu_set: GpuSet | None, pod: PodView) -> tuple[d.TemplateClaim, ...] | None:
    """Return the template claims that a set without a node is opened with, None where a class does not exist.

    It keeps to those it has (T24), unless the launcher asks for what its classes count by now.
    """
    if gpu_set is None or not _is_open(gpu_set):
        return _claims(book, vmi)
    anew = None if requests_match(book, gpu_set, pod) else _claims(book, vmi)
    # Its class was edited between the start's admission and the opening, and edited back.
    return anew if anew and requests_match(book, replace(gpu_set, claims=anew), pod) else gpu_set.claims


def _is_open(gpu_set: GpuSet | None) -> bool:
    return gpu_set is not None and bool(gpu_set.claims or gpu_set.held)


def _claims(book: Book, vmi: VmiView) -> tuple[d.TemplateClaim, ...] | None:
    """Return the set's template claims, None where a class does not exist."""
    claims: list[d.TemplateClaim] = []
    for index, (entry, admitted) in enumerate(resolved_classes(vmi)):
        view = book.state.gpu_class(entry.class_name)
        if view is None:
            return None
        name = claim_name(vmi.name, vmi.uid, index)
        claims.append(d.TemplateClaim(name, entry.class_name, entry.count, admitted or view.resource))
    return tuple(claims)


def claim_name(vmi: str, uid: str, index: int) -> str:
    """Return a template claim's name: the VMI's name cut to fit, a hash of its uid, the entry's index (N3)."""
    tail = f"-{hashlib.sha256(uid.encode()).hexdigest()[:10]}-{index}"
    return vmi[: CLAIM_NAME_MAX - len(tail)].rstrip("-.") + tail


def placing(book: Book, vmi: VmiView, among: Collection[str] | None) -> d.SetPlaced | None:
    """Place the whole set, or pin again what is booked; None where neither can be.

    `among`: the only nodes that can have become fit since the set was last told its reason, None for all.
    """
    gpu_set = book.state.sets.get(vmi.uid)
    if gpu_set is None or not _is_open(gpu_set) or (gpu_set.pinned and not gpu_set.temporary):
        return None
    pod = book.launcher_of(vmi)
    if pod is None:
        return None
    if gpu_set.node:
        return _pin_again(gpu_set, pod)
    need = _standing(book, vmi, gpu_set, pod)
    node = fit(book, need, among) if isinstance(need, Need) else ""
    return d.SetPlaced(gpu_set.vmi, node, pod.name, pod.uid, pod.terms or ()) if node else None


def _pin_again(gpu_set: GpuSet, pod: PodView) -> d.SetPlaced | None:
    """Pin the booked node again: the launcher follows its temporary pod, or its affinity was changed meanwhile.

    Or the set was booked at admission, and its launcher came behind our gate all the same.
    """
    if pod.uid == gpu_set.pod_uid:
        if gpu_set.pinned or (pod.terms or ()) == gpu_set.terms:
            return None
    elif pod.gates != (GATE,) or not (gpu_set.temporary or awaits_launcher(gpu_set)):
        return None
    return d.SetPlaced(gpu_set.vmi, gpu_set.node, pod.name, pod.uid, pod.terms or ())


def telling(book: Book, vmi: VmiView, among: Iterable[str] | None) -> d.SetWaits | None:
    """Say why a VMI's gated launcher waits, if it was told otherwise or nothing yet (C59)."""
    gpu_set = book.state.sets.get(vmi.uid)
    if gpu_set is not None and gpu_set.node:
        return None
    pod = book.launcher_of(vmi)
    if pod is None:
        stranger = gated_launchers(book.state, vmi, book.index.pods_by_vmi.of(vmi.uid)) and names_gpus(vmi)
        return _waits(vmi, gpu_set, Wait.NO_LAUNCHER, MESSAGES[Wait.NO_LAUNCHER]) if stranger else None
    if gpu_set is None or not _is_open(gpu_set):
        missing = _missing(book, vmi)
        return _waits(vmi, gpu_set, missing, why(book, vmi, missing)) if missing is not None else None
    need = _standing(book, vmi, gpu_set, pod)
    if need is Wait.WRITE_REFUSED:
        return _waits(vmi, gpu_set, need, f"a write was refused ({gpu_set.refused}); it is tried again")
    if isinstance(need, d.Over):
        return _waits(vmi, gpu_set, Wait.OVER_BUDGET, sentence(need), need)
    if isinstance(need, Wait):
        return _waits(vmi, gpu_set, need, why(book, vmi, need))
    reason = nearest(book, need, gpu_set.reason, among)
    return _waits(vmi, gpu_set, reason, f"{MESSAGES[reason]} ({_asked(gpu_set)})")


def why(book: Book, vmi: VmiView, reason: Wait) -> str:
    """Return a reason in words; whose a claim is that is in use is said by name, and again where that changes."""
    return in_use(book, vmi) if reason is Wait.CLAIM_IN_USE else MESSAGES[reason]


def _missing(book: Book, vmi: VmiView) -> Wait | None:
    """Return why a set can't be opened; None for a VMI that names nothing that could be read."""
    if _claims(book, vmi) is None:
        return Wait.CLASS_NOT_FOUND
    held = held_claims(book, vmi)
    return held if isinstance(held, Wait) else None


def asking(book: Book, vmi: VmiView) -> Need | None:
    """Return what a set that waits asks of a node now, None where it asks nothing."""
    gpu_set = book.state.sets.get(vmi.uid)
    pod = book.launcher_of(vmi) if may_be_served(vmi) else None
    if gpu_set is None or gpu_set.node or not _is_open(gpu_set) or pod is None:
        return None
    need = _standing(book, vmi, gpu_set, pod)
    return need if isinstance(need, Need) else None


def _standing(book: Book, vmi: VmiView, gpu_set: GpuSet, pod: PodView) -> Need | Wait | d.Over:
    """Return what the set asks of a node, or the reason not even to ask: a budget is asked last (B3)."""
    if gpu_set.retry_ns > book.state.now_ns:
        return Wait.WRITE_REFUSED
    if is_paused(book.state, book.settings):
        return Wait.PAUSED
    held = held_claims(book, vmi)
    if isinstance(held, Wait):
        return held
    if pod.gates != (GATE,):
        return Wait.FOREIGN_GATE
    if not requests_match(book, gpu_set, pod):
        return Wait.REQUESTS_MISMATCH
    need = need_of(book, vmi, gpu_set, pod)
    if isinstance(need, Wait):
        return need
    return first_over(book.budgets, vmi.namespace, book.charging.asked(gpu_set)) or need


def need_of(book: Book, vmi: VmiView, gpu_set: GpuSet, pod: PodView) -> Need | Wait:
    """Return what the set asks of a node, or the reason why that can't be told."""
    volumes = volume_terms(book.state, vmi, pod)
    if volumes is None:
        return Wait.VOLUME_NOT_FOUND
    classes = [book.state.gpu_class(claim.class_name) for claim in claims_of(gpu_set)]
    if any(view is None for view in classes):
        return Wait.CLASS_NOT_FOUND
    tolerations = tuple(view.tolerations for view in classes if view is not None)
    skipped = book.skips.of(vmi.key)
    own = own_units(book.held.of(vmi.uid)) if gpu_set.held else {}
    kept = kept_from(book, vmi.uid)
    return Need(units(gpu_set), pod.requests, tolerations, pod.node_selector, pod.terms, volumes, skipped, own, kept)


def need_if_had(book: Book, vmi: VmiView, pod: PodView) -> Need | Wait:
    """Return what a set would ask of a node if it had the held claims that are another VM's now: their units there."""
    named = [book.state.holding(vmi.namespace, name) for name in claim_names(vmi.gpus)]
    holdings = [one for one in named if one is not None and not one.freed]
    held = [counted(book.state, one) for one in holdings]
    claims = _claims(book, vmi)
    if claims is None or any(one is None for one in held):
        return Wait.CLASS_NOT_FOUND
    vmi_id = d.VmiId(vmi.namespace, vmi.name, vmi.uid)
    had = GpuSet(vmi_id, Stamp(), 0, claims, held=tuple(one for one in held if one is not None))
    need = need_of(book, vmi, had, pod)
    return replace(need, own=own_units(holdings)) if isinstance(need, Need) else need


def requests_match(book: Book, gpu_set: GpuSet, pod: PodView) -> bool:
    """Say whether the pod requests exactly its set, of every resource that a class counts by."""
    asked, counted = units(gpu_set), book.class_resources
    requested = {name: amount for name, amount in pod.requests.items() if amount and (name in counted or name in asked)}
    return requested == asked


def _asked(gpu_set: GpuSet) -> str:
    asked = [f"{claim.class_name} x{claim.count}" for claim in gpu_set.claims]
    asked += [f"{claim.class_name} x{claim.count} of claim {claim.name}" for claim in gpu_set.held]
    return ", ".join(asked)


def _waits(
    vmi: VmiView, gpu_set: GpuSet | None, reason: Wait, message: str, over: d.Over | None = None
) -> d.SetWaits | None:
    """Say a reason once; what is counted in a message doesn't make it another, whose a claim is does (C59)."""
    told = gpu_set is not None and gpu_set.reason is reason and told_alike(gpu_set.over, over)
    if told and gpu_set is not None and (reason is not Wait.CLAIM_IN_USE or gpu_set.message == message):
        return None
    return d.SetWaits(d.VmiId(vmi.namespace, vmi.name, vmi.uid), reason, message, over)
