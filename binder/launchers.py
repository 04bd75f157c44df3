"""Which pod is a VMI's launcher, and what a VMI's volumes and entries ask for.

A launcher is one that KubeVirt's account created through our webhook and that status.activePods
lists: whoever creates a pod sets its owner reference (D11, T25).
"""

from collections.abc import Iterable

from binder.state import State
from schemas.entries import ClaimEntry, ClassEntry, MalformedEntries, parse_entries
from schemas.names import GATE, POLICY_REFUSE, POLICY_WAIT
from schemas.objects import NodeSelectorTerm, PodView, VmiView, VmView

FINAL_PHASES = ("Succeeded", "Failed")


def may_be_served(vmi: VmiView) -> bool:
    """Say whether a VMI's gated launcher is ours to place: it lives, and kube-scheduler is not the one who places it.

    Under Refuse a launcher stands at the gate where its booking was lost in between: then it waits there as under Wait.
    """
    return not vmi.deleting and vmi.phase not in FINAL_PHASES and is_ours(vmi)


def is_ours(vmi: VmiView) -> bool:
    """Say whether a VMI's units are ours to give out: its start policy is Wait or Refuse."""
    return vmi.policy in {"", POLICY_WAIT, POLICY_REFUSE}


def gated_launchers(state: State, vmi: VmiView, keys: Iterable[str]) -> list[PodView]:
    """Return the pods among `keys` that stand behind our gate as the VMI's listed launchers, honest or not."""
    return [pod for key in keys if (pod := state.pod(key)) is not None and _is_listed(pod, vmi)]


def _is_listed(pod: PodView, vmi: VmiView) -> bool:
    return (
        pod.launcher
        and not pod.ended
        and not pod.deleting
        and not pod.migration
        and GATE in pod.gates
        and pod.uid in vmi.active_pods
    )


def newest(pods: Iterable[PodView]) -> PodView | None:
    """Return the pod created last; pod ages have one-second grain, so the name breaks a tie (T10)."""
    return max(pods, key=lambda pod: (pod.created, pod.name), default=None)


def may_run(state: State, keys: Iterable[str]) -> bool:
    """Say whether a launcher among these pods was let go, also without a booking of ours, and has not ended."""
    pods = (state.pod(key) for key in keys)
    return any(pod.launcher and not pod.ended and GATE not in pod.gates for pod in pods if pod is not None)


def class_entries(vmi: VmiView | VmView) -> tuple[ClassEntry, ...]:
    """Return the class entries of a VMI or VM; none where the annotation can't be read (admission refuses it)."""
    try:
        entries = parse_entries(vmi.gpus)
    except MalformedEntries:
        return ()
    return tuple(entry for entry in entries if isinstance(entry, ClassEntry))


def resolved_classes(vmi: VmiView) -> tuple[tuple[ClassEntry, str], ...]:
    """Return the class entries of a VMI, each with the resource it was admitted with, '' where that is not known."""
    return tuple((entry, device) for entry, device in _resolved(vmi) if isinstance(entry, ClassEntry))


def resolved_claim(vmi: VmiView, name: str) -> str:
    """Return the resource with which a VMI was admitted that names a held claim, '' where that is not known."""
    found = (device for entry, device in _resolved(vmi) if isinstance(entry, ClaimEntry) and entry.claim_name == name)
    return next(found, "")


def _resolved(vmi: VmiView) -> tuple[tuple[ClassEntry | ClaimEntry, str], ...]:
    try:
        entries = parse_entries(vmi.gpus)
    except MalformedEntries:
        return ()
    known = (*vmi.devices, *("" for _ in entries))
    return tuple(zip(entries, known, strict=False))


def names_gpus(vmi: VmiView) -> bool:
    """Say whether a VMI has entries that can be read."""
    return bool(class_entries(vmi) or claim_names(vmi.gpus))


def claim_names(text: str) -> tuple[str, ...]:
    """Return the held claims that an annotation names; none where it can't be read."""
    # Most name none, and this is asked of each that changes. JSON may spell the word with escapes.
    if "claimName" not in text and "\\" not in text:
        return ()
    try:
        entries = parse_entries(text)
    except MalformedEntries:
        return ()
    return tuple(entry.claim_name for entry in entries if isinstance(entry, ClaimEntry))


def volume_terms(state: State, vmi: VmiView, pod: PodView) -> tuple[tuple[NodeSelectorTerm, ...], ...] | None:
    """Return the node terms of every bound volume, hot-plugged ones too; None where one is missing (C42).

    A PVC that is not bound yet restricts nothing: its volume is made where the pod lands.
    """
    found: list[tuple[NodeSelectorTerm, ...]] = []
    for name in sorted({*vmi.volumes, *pod.pvcs}):
        pvc = state.pvc(f"{vmi.namespace}/{name}")
        if pvc is None:
            return None
        if not pvc.volume:
            continue
        pv = state.pv(pvc.volume)
        if pv is None:
            return None
        if pv.terms is not None:
            found.append(pv.terms)
    return tuple(found)
