"""Which pod is a VMI's launcher, and what a VMI's volumes and entries ask for.

A launcher is one that KubeVirt's account created through our webhook and that status.activePods
lists: whoever creates a pod sets its owner reference (D11, T25).
"""

from binder.book import Book
from schemas.entries import ClassEntry, MalformedEntries, parse_entries
from schemas.names import GATE
from schemas.objects import NodeSelectorTerm, PodView, VmiView


def launcher_of(book: Book, vmi: VmiView) -> PodView | None:
    """Return the VMI's admitted, listed, living launcher that still stands behind our gate."""
    known = book.state.admitted.get(vmi.uid)
    if known is None:
        return None
    pods = [
        pod
        for key in book.pods_by_vmi.get(vmi.uid, ())
        if (pod := book.state.pod(key)) is not None and _is_launcher(pod, vmi, known.requests)
    ]
    stamps = [pod.admission for pod in pods]
    # A stamp that two pods carry was copied by somebody: neither is believed.
    honest = [pod for pod in pods if stamps.count(pod.admission) == 1]
    return max(honest, key=lambda pod: (pod.created, pod.name), default=None)


def _is_launcher(pod: PodView, vmi: VmiView, requests: tuple[str, ...]) -> bool:
    return (
        pod.launcher
        and not pod.ended
        and not pod.deleting
        and not pod.migration
        and GATE in pod.gates
        and pod.admission in requests
        and pod.uid in vmi.active_pods
    )


def class_entries(vmi: VmiView) -> tuple[ClassEntry, ...]:
    """Return the VMI's class entries; none where the annotation can't be read (admission refuses it)."""
    try:
        entries = parse_entries(vmi.gpus)
    except MalformedEntries:
        return ()
    return tuple(entry for entry in entries if isinstance(entry, ClassEntry))


def volume_terms(book: Book, vmi: VmiView, pod: PodView) -> tuple[tuple[NodeSelectorTerm, ...], ...] | None:
    """Return the node terms of every bound volume, hot-plugged ones too; None where one is missing (C42).

    A PVC that is not bound yet restricts nothing: its volume is made where the pod lands.
    """
    found: list[tuple[NodeSelectorTerm, ...]] = []
    for name in sorted({*vmi.volumes, *pod.pvcs}):
        pvc = book.state.pvc(f"{vmi.namespace}/{name}")
        if pvc is None:
            return None
        if not pvc.volume:
            continue
        pv = book.state.pv(pvc.volume)
        if pv is None:
            return None
        if pv.terms is not None:
            found.append(pv.terms)
    return tuple(found)
