"""The fold of refusals: what is seen of a pinned launcher, what was given up, and what a node's change ends (D7)."""

from msgspec.structs import replace

from binder.book import Book
from binder.skips import end_of, looks_otherwise, refusal_of
from binder.state import GivenUp, Skip
from schemas import decisions as d
from schemas.objects import AnyView, NodeView, PodView, Stamp


def watch_launcher(book: Book, pod: PodView) -> None:
    """Note whether the booked node took a pinned launcher: also where pod and set are gone before the next pass."""
    gpu_set = book.state.sets.get(pod.owner_uid)
    if gpu_set is None or gpu_set.pod_uid != pod.uid or not gpu_set.pinned:
        return
    vmi = gpu_set.vmi
    key = f"{vmi.namespace}/{vmi.name}"
    if pod.ran and pod.node == gpu_set.node and book.skips.at(key, pod.node) is not None:
        book.skips.put(key, pod.node, None)
    refusal = gpu_set.refusal or refusal_of(gpu_set, pod)
    waits = pod.unschedulable and not (pod.node or pod.ended or pod.deleting)
    stuck_ns = (gpu_set.stuck_ns or max(book.state.now_ns, 1)) if waits else 0
    if (refusal, stuck_ns) != (gpu_set.refusal, gpu_set.stuck_ns):
        book.store_set(vmi.uid, replace(gpu_set, refusal=refusal, stuck_ns=stuck_ns))


def skipped(book: Book, stamp: Stamp, decision: d.NodeSkipped) -> None:
    """The node is skipped for the VM; its pod is to go, and to be told of until that is known to have landed."""
    vmi, now_ns = decision.vmi, book.state.now_ns
    key = f"{vmi.namespace}/{vmi.name}"
    known = book.skips.at(key, decision.node)
    book.skips.put(key, decision.node, Skip(now_ns, known.fails + 1 if known else 1, decision.cause))
    gpu_set = book.state.sets[vmi.uid]
    given_up = GivenUp(decision.pod, decision.pod_uid, decision.cause, decision.message, stamp)
    # One that is still there, unschedulable, after as long again is given up once more.
    stuck_ns = now_ns if gpu_set.stuck_ns else 0
    book.store_set(vmi.uid, replace(gpu_set, stamp=stamp, refusal="", stuck_ns=stuck_ns, given_up=given_up))


def node_changed(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    """Let a change of a node end its skips: at once, or when each has lasted as long as it must (C41)."""
    same = isinstance(before, NodeView) and isinstance(after, NodeView) and not looks_otherwise(before, after)
    view = after if after is not None else before
    if view is None or same:
        return
    for key in list(book.skips.vms.of(view.name)):
        skip = book.skips.at(key, view.name)
        if skip is not None and not skip.changed:
            changed = replace(skip, changed=True)
            book.skips.put(key, view.name, changed)
            if end_of(changed) <= book.state.now_ns:
                look_again(book, key)


def look_again(book: Book, key: str) -> None:
    """Mark the set of a VM whose skip has ended."""
    vmi = book.state.vmi(key)
    if vmi is not None:
        book.mark(vmi.uid)
