"""The fold of where launchers really are: a booking follows its VMI's pod, whoever bound it, and wherever it migrates.

We book before a pod runs; once its gate is off, where it runs is not ours to say. Somebody may have ungated it
by hand, the pin of an earlier booking may have landed late, a live migration takes the VM elsewhere.
"""

from msgspec.structs import replace

from binder import evolve_holdings
from binder.book import Book
from binder.launchers import newest
from binder.state import GpuSet, awaits_launcher
from binder.usage import units
from schemas.names import GATE, NODE_NAME_FIELD
from schemas.objects import AnyView, NodeSelectorTerm, PodView, Stamp


def pod_seen(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    """Follow a pod that came, changed or went. A booked one that is seen without our gate is pinned (T23)."""
    pod = after if after is not None else before
    if not isinstance(pod, PodView) or not pod.owner_uid:
        return
    follow_pods(book, pod.owner_uid)
    gpu_set = book.state.sets.get(pod.owner_uid) if after is not None else None
    if gpu_set is not None and gpu_set.pod_uid == pod.uid and not gpu_set.pinned and GATE not in pod.gates:
        book.store_set(pod.owner_uid, replace(gpu_set, pinned=True, fails=0, refused=""))


def place_of(pod: PodView) -> str:
    """Return the only node where a pod is or can be: bound there, or pinned by every term; '' where that is open."""
    if pod.node:
        return pod.node
    names = [_named(term) for term in pod.terms or ()]
    return names[0] if names and all(name == names[0] for name in names) else ""


def _named(term: NodeSelectorTerm) -> str:
    needs = [one.values for one in term.match_fields if one.key == NODE_NAME_FIELD and one.operator == "In"]
    return needs[0][0] if needs and len(needs[0]) == 1 else ""


def follow_pods(book: Book, uid: str) -> None:
    """Let a set be booked where its VMI's pod is, and have its claims said again; a pod behind our gate is nowhere."""
    gpu_set = book.state.sets.get(uid)
    if gpu_set is None or not (gpu_set.claims or gpu_set.held):
        return
    pod = _running(book, gpu_set)
    node = place_of(pod) if pod is not None else ""
    if pod is None or not node or (pod.uid, node) == (gpu_set.pod_uid, gpu_set.node):
        return
    book.state.first_wait.pop(f"{gpu_set.vmi.namespace}/{gpu_set.vmi.name}", None)
    # Who shares a booking with its temporary pod goes on where that was; so does who was booked at admission.
    former = gpu_set.former if pod.uid == gpu_set.pod_uid else gpu_set.pod_uid if _is_former(book, gpu_set) else ""
    moved = replace(
        gpu_set, node=node, pod=pod.name, pod_uid=pod.uid, terms=pod.terms or (), requests=pod.requests,
        former=former, temporary=pod.temporary, pinned=True, released=None, reason=None, message="", over=None,
        told=Stamp(), missing=gpu_set.missing or not (awaits_launcher(gpu_set) and node == gpu_set.node), refused="",
        refusal="", stuck_ns=0, fails=0, retry_ns=0,
    )  # fmt: skip
    book.store_set(uid, moved)
    evolve_holdings.follow(book, gpu_set.stamp, moved)
    book.mark(uid)


def _running(book: Book, gpu_set: GpuSet) -> PodView | None:
    """Return the pod that a set is used by: its booked one while that lives, else the one its VMI went on in.

    A launcher that was let go at its creation follows its temporary pod also while that lives (T25).
    """
    booked = _booked(book, gpu_set)
    if booked is not None and not (gpu_set.temporary and GATE not in booked.gates):
        return booked if GATE not in booked.gates else None
    pods = (book.state.pod(key) for key in book.index.pods_by_vmi.of(gpu_set.vmi.uid))
    return newest(pod for pod in pods if pod is not None and _goes_on(book, gpu_set, pod)) or booked


def _booked(book: Book, gpu_set: GpuSet) -> PodView | None:
    """Return the pod that a set is booked for, while it lives."""
    pod = book.state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}") if gpu_set.pod_uid else None
    return pod if pod is not None and pod.uid == gpu_set.pod_uid and not pod.ended else None


def _is_former(book: Book, gpu_set: GpuSet) -> bool:
    return gpu_set.temporary and _booked(book, gpu_set) is not None


def _goes_on(book: Book, gpu_set: GpuSet, pod: PodView) -> bool:
    """Say whether a VMI runs in a pod: KubeVirt lists it, our webhook answered it (T25), and it has the set's units.

    The listing lags: where a pod is expected, which was pinned at its creation, the webhook's word is enough.
    """
    if not pod.launcher or pod.ended or GATE in pod.gates or not place_of(pod):
        return False
    early = awaits_launcher(gpu_set)
    if (pod.temporary and not early) or (pod.migration and (early or gpu_set.temporary)):
        return False
    vmi, known, asked = book.vmi_of(gpu_set.vmi.uid), book.state.admitted.get(gpu_set.vmi.uid), units(gpu_set)
    listed = early or (vmi is not None and pod.uid in vmi.active_pods)
    if not listed or {by: pod.requests.get(by, 0) for by in asked} != asked:
        return False
    return known is not None and pod.admission in known.requests and not book.is_copied(pod)
