"""Which set, held claim and pod counts against its tenant's budgets, and for what: each unit once (B4, C34).

A set counts for its own claims from its booking until its last pod is gone. A held claim counts while it is
on a node, and while it is Lost after it was on one, whatever VMI it is attached to. A pod counts under the
names of the extended resources that it requests, unless it is the launcher, the temporary pod or a
migration's second pod of a VMI that has a set: those units are the claims'.
"""

from binder.budgets import Budgets, Charge, units_of
from binder.declaring import Declared
from binder.indexes import Indexes
from binder.state import GpuSet, Holding, State
from binder.usage import Amounts
from schemas.objects import PodView


class Charging:
    """Keeps `Budgets` true to the tables: told of each set, held claim, pod and admission that changed.

    `declared` hears of what sets and claims count for as well.
    """

    def __init__(self, state: State, index: Indexes, budgets: Budgets, declared: Declared) -> None:
        self._state = state
        self._index = index
        self._budgets = budgets
        self._declared = declared

    def set_changed(self, uid: str) -> None:
        """Count a set, and what its pods count for beside it: it changed, or a launcher of it was admitted."""
        for key in self._index.pods_by_vmi.of(uid):
            self._charge_pod(key)
        self._charge_set(uid)

    def holding_changed(self, key: str, holding: Holding | None) -> None:
        """Count a held claim."""
        self._budgets.charge("holdings", key, _of_holding(holding))
        stays = holding is not None and not holding.freed
        self._declared.claims(
            key,
            holding.namespace if holding is not None else "",
            units_of([holding.claim]) if holding is not None and stays else {},
        )

    def pod_changed(self, key: str, before: PodView | None, view: PodView | None) -> None:
        """Count a pod; one that carries the stamp of others makes them honest or not (T25)."""
        self._charge_pod(key)
        owners: dict[str, bool] = {}
        for side in (before, view):
            if side is not None and side.owner_uid:
                owners[side.owner_uid] = True
                owners.update(self._charge_copies(key, side))
        for uid in owners:
            if self._budgets.counts("sets", uid) != self._stands(uid):
                self._charge_set(uid)

    def _charge_copies(self, key: str, pod: PodView) -> dict[str, bool]:
        """Count the other pods that carry a pod's stamp, and name their owners."""
        owners: dict[str, bool] = {}
        for other in self._index.pods_by_stamp.of(f"{pod.namespace}/{pod.admission}") if pod.admission else ():
            view = self._state.pod(other)
            if other != key and view is not None:
                self._charge_pod(other)
                owners[view.owner_uid] = True
        return owners

    def _charge_pod(self, key: str) -> None:
        pod = self._state.pod(key)
        self._budgets.charge("pods", key, _of_pod(pod) if pod is not None and not self._is_own(pod) else None)

    def _charge_set(self, uid: str) -> None:
        gpu_set = self._state.sets.get(uid) if self._stands(uid) else None
        charges = self._budgets.charges["sets"]
        before = charges.get(uid)
        self._budgets.charge("sets", uid, _of_set(gpu_set) if gpu_set is not None else None)
        after = charges.get(uid)
        if after != before:
            for side, units in ((before, {}), (after, after[1] if after is not None else {})):
                if side is not None:
                    self._declared.holds(side[0], uid, units)

    def _stands(self, uid: str) -> bool:
        """Say whether a set has its units: it is booked, or a pod of it is on a node and has not ended."""
        gpu_set = self._state.sets.get(uid)
        if gpu_set is None or gpu_set.node:
            return gpu_set is not None
        pods = (self._state.pod(key) for key in self._index.pods_by_vmi.of(uid))
        return any(pod is not None and _stands(pod) and self._is_own(pod) for pod in pods)

    def _is_own(self, pod: PodView) -> bool:
        """Say whether a pod is of a VMI's set: who creates a pod sets its owner, so only an admitted one is (D11)."""
        gpu_set = self._state.sets.get(pod.owner_uid) if pod.owner_uid else None
        if gpu_set is None:
            return False
        if pod.uid in {gpu_set.pod_uid, gpu_set.former}:
            return True
        known = self._state.admitted.get(pod.owner_uid)
        copied = self._index.pods_by_stamp.count(f"{pod.namespace}/{pod.admission}") > 1
        return pod.launcher and not copied and known is not None and pod.admission in known.requests

    def asked(self, gpu_set: GpuSet) -> Amounts:
        """Return what a set asks of its tenant's budgets, beside what it counts for already."""
        claims = () if self._budgets.counts("sets", gpu_set.vmi.uid) else gpu_set.claims
        namespace = gpu_set.vmi.namespace
        held = [one for one in gpu_set.held if not self._budgets.counts("holdings", f"{namespace}/{one.name}")]
        return units_of([*claims, *held])

    def asked_by(self, held: list[Holding]) -> Amounts:
        """Return what held claims ask of their tenant's budgets, those aside that count already."""
        return units_of(one.claim for one in held if _of_holding(one) is None)


def _of_set(gpu_set: GpuSet) -> Charge:
    return (gpu_set.vmi.namespace, units_of(gpu_set.claims))


def counts(holding: Holding) -> bool:
    """Say whether a held claim counts: on a node, or Lost after it was on one, which its recorded resource tells."""
    return bool(holding.node) or (holding.lost is not None and bool(holding.claim.resource))


def _of_holding(holding: Holding | None) -> Charge | None:
    return (holding.namespace, units_of([holding.claim])) if holding is not None and counts(holding) else None


def _of_pod(pod: PodView) -> Charge | None:
    if not _stands(pod):
        return None
    return (pod.namespace, {name: amount for name, amount in pod.requests.items() if amount > 0 and "/" in name})


def _stands(pod: PodView) -> bool:
    """Say whether a pod has its units: it is on a node and has not ended."""
    return bool(pod.node) and not pod.ended
