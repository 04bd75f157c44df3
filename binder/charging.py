"""Which set, held claim and pod counts against its tenant's budgets, and for what: each unit once (B4, C34).

A set counts for its own claims from its booking until its last pod is gone. A held claim counts while it is
on a node and while it is Lost, whatever VMI it is attached to. A pod counts under the names of the extended
resources that it requests, unless it is the launcher, the temporary pod or a migration's second pod of a VMI
that has a set: those units are the claims'.
"""

from binder.budgets import Charge, units_of
from binder.state import GpuSet, Holding, State
from schemas.objects import PodView


def charge_of_set(gpu_set: GpuSet, pods: list[PodView]) -> Charge | None:
    """Return what a set counts for. `pods`: those that are its VMI's own."""
    counts = gpu_set.node or any(stands(pod) for pod in pods)
    return (gpu_set.vmi.namespace, units_of(gpu_set.claims)) if counts else None


def charge_of_holding(holding: Holding) -> Charge | None:
    """Return what a held claim counts for."""
    counts = holding.node or holding.lost is not None
    return (holding.namespace, units_of([holding.claim])) if counts else None


def charge_of_pod(pod: PodView) -> Charge | None:
    """Return what a pod counts for that is no VMI's own: its extended resources, by name."""
    if not stands(pod):
        return None
    return (pod.namespace, {name: amount for name, amount in pod.requests.items() if amount > 0 and "/" in name})


def stands(pod: PodView) -> bool:
    """Say whether a pod has its units: it is on a node and has not ended."""
    return bool(pod.node) and not pod.ended


def is_own(state: State, pod: PodView, *, copied: bool) -> bool:
    """Say whether a pod is of a VMI's set: who creates a pod sets its owner, so only an admitted one is (D11, T25)."""
    gpu_set = state.sets.get(pod.owner_uid) if pod.owner_uid else None
    if gpu_set is None:
        return False
    if pod.uid in {gpu_set.pod_uid, gpu_set.former}:
        return True
    known = state.admitted.get(pod.owner_uid)
    return pod.launcher and not copied and known is not None and pod.admission in known.requests
