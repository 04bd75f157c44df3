"""The state with its indexes: who uses what, which node has how much left, who waits for it.

Every change of a table goes through here, so that an index can't fall behind; `Book(state)` derives
all of them anew, and `invariants.check` compares the two.
"""

import heapq
from bisect import bisect_left, insort

from binder.state import GpuSet, State, Touch
from schemas.objects import AnyView, NodeView, PodView, PvcView, VmiView

Amounts = dict[str, int]


class Book:
    """State plus indexes. `used`, `free`: amounts per node and resource in the units of `schemas.objects`."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.used: dict[str, Amounts] = {}
        self.pods_by_vmi: dict[str, dict[str, bool]] = {}
        self.vmi_keys: dict[str, str] = {}
        self.volume_pvcs: dict[str, dict[str, bool]] = {}
        self.pvc_vmis: dict[str, dict[str, bool]] = {}
        self.claim_sets: dict[str, str] = {}
        self.ranked: dict[str, list[tuple[int, str]]] = {}
        self.waiting: dict[str, dict[int, dict[str, bool]]] = {}
        self.deadlines: list[tuple[int, str]] = []
        self._free: dict[str, Amounts] = {}
        self._pod_share: dict[str, tuple[str, Amounts]] = {}
        self._set_share: dict[str, tuple[str, Amounts]] = {}
        self._rebuild()

    def _rebuild(self) -> None:
        state, dirty_nodes = self.state, dict(self.state.dirty_nodes)
        for view in state.objects["gpuclasses"].values():
            self.ranked.setdefault(view.resource, [])  # type: ignore[union-attr]  # classes alone
        for name in state.objects["nodes"]:
            self._rank(name)
        for uid, gpu_set in state.sets.items():
            self._index_set(uid, None, gpu_set)
        for kind in ("virtualmachineinstances", "persistentvolumeclaims", "pods"):
            for key, view in state.objects[kind].items():
                self._index_object(kind, key, None, view)
        for uid, admitted in state.admitted.items():
            self.deadlines.append((admitted.at_ns + ADMITTED_KEPT_NS, uid))
        heapq.heapify(self.deadlines)
        # Deriving marks nodes as touched; what was dirty is part of the state and stays as it was.
        state.dirty_nodes = dirty_nodes

    def free(self, node: NodeView, resource: str) -> int:
        """Return what is left of a resource on a node; below zero where more is used than offered."""
        used = self.used.get(node.name)
        return node.allocatable.get(resource, 0) - (used.get(resource, 0) if used else 0)

    def roomy(self, resource: str, count: int) -> list[tuple[int, str]]:
        """Return (free, node) of the nodes with at least `count` units free, fullest first, then by name."""
        ranked = self.ranked.get(resource, [])
        return ranked[bisect_left(ranked, (count, "")) :]

    def store(self, kind: str, key: str, view: AnyView | None) -> AnyView | None:
        """Put a view into its table, or take it out (None), and return what stood there."""
        table = self.state.objects[kind]
        before = table.get(key)
        if view is None:
            table.pop(key, None)
        else:
            table[key] = view
        self._index_object(kind, key, before, view)
        return before

    def store_set(self, uid: str, gpu_set: GpuSet | None) -> None:
        """Put a set into the state, or take it out (None)."""
        before = self.state.sets.get(uid)
        if gpu_set is None:
            self.state.sets.pop(uid, None)
        else:
            self.state.sets[uid] = gpu_set
        self._index_set(uid, before, gpu_set)

    def touch(self, node: str, how: Touch) -> None:
        """Mark a node for the next pass."""
        self.state.dirty_nodes[node] = self.state.dirty_nodes.get(node, 0) | how

    def rank_resource(self, resource: str) -> None:
        """Start to keep the nodes of a resource in order: a class counts by it now."""
        if resource not in self.ranked:
            self.ranked[resource] = []
            for name in self.state.objects["nodes"]:
                self._rank_one(name, resource)

    def _index_object(self, kind: str, key: str, before: AnyView | None, view: AnyView | None) -> None:
        match kind:
            case "nodes":
                self._rank(key)
            case "pods":
                self._index_pod(key, _pod(before), _pod(view))
            case "virtualmachineinstances":
                self._index_vmi(key, _vmi(before), _vmi(view))
            case "persistentvolumeclaims":
                self._index_pvc(key, _pvc(before), _pvc(view))
            case "gpuclasses":
                if view is not None:
                    self.rank_resource(view.resource)  # type: ignore[union-attr]  # classes alone
            case _:
                pass

    def _index_pod(self, key: str, before: PodView | None, view: PodView | None) -> None:
        if before is not None and before.owner_uid:
            _drop(self.pods_by_vmi, before.owner_uid, key)
        if view is not None and view.owner_uid:
            self.pods_by_vmi.setdefault(view.owner_uid, {})[key] = True
        share = None
        if view is not None and view.node and not view.ended and not self._is_booked(view):
            share = (view.node, view.requests)
        self._share(self._pod_share, key, share)

    def _is_booked(self, pod: PodView) -> bool:
        """Say whether a set's booking already counts this pod: its launcher, on the node it was placed on."""
        gpu_set = self.state.sets.get(pod.owner_uid) if pod.owner_uid else None
        return gpu_set is not None and gpu_set.pod_uid == pod.uid and gpu_set.node == pod.node

    def _index_vmi(self, key: str, before: VmiView | None, view: VmiView | None) -> None:
        if before is not None:
            self.vmi_keys.pop(before.uid, None)
            for name in before.volumes:
                _drop(self.pvc_vmis, f"{before.namespace}/{name}", before.uid)
        if view is not None:
            self.vmi_keys[view.uid] = key
            for name in view.volumes:
                self.pvc_vmis.setdefault(f"{view.namespace}/{name}", {})[view.uid] = True

    def _index_pvc(self, key: str, before: PvcView | None, view: PvcView | None) -> None:
        if before is not None and before.volume:
            _drop(self.volume_pvcs, before.volume, key)
        if view is not None and view.volume:
            self.volume_pvcs.setdefault(view.volume, {})[key] = True

    def _index_set(self, uid: str, before: GpuSet | None, after: GpuSet | None) -> None:
        if before is not None and before.reason is not None and not before.node:
            for resource, count in units(before).items():
                self.waiting[resource][count].pop(uid, None)
        if after is not None and after.reason is not None and not after.node:
            for resource, count in units(after).items():
                self.waiting.setdefault(resource, {}).setdefault(count, {})[uid] = True
        for claim in before.claims if before else ():
            self.claim_sets.pop(f"{before.vmi.namespace}/{claim.name}", None)  # type: ignore[union-attr]  # loop is empty
        for claim in after.claims if after else ():
            self.claim_sets[f"{after.vmi.namespace}/{claim.name}"] = uid  # type: ignore[union-attr]  # loop is empty
        if after is not None and after.retry_ns and (before is None or before.retry_ns != after.retry_ns):
            heapq.heappush(self.deadlines, (after.retry_ns, uid))
        share = (after.node, after.requests) if after is not None and after.node else None
        if self._share(self._set_share, uid, share):
            self._recount_pods(uid)

    def _recount_pods(self, uid: str) -> None:
        """Count a VMI's pods anew: its booking came, went or moved."""
        for key in self.pods_by_vmi.get(uid, ()):
            pod = self.state.pod(key)
            self._index_pod(key, pod, pod)

    def _share(
        self, shares: dict[str, tuple[str, Amounts]], key: str, share: tuple[str, Amounts] | None
    ) -> bool:
        before = shares.get(key)
        if before == share:
            return False
        if before is not None:
            del shares[key]
            self._use(before[0], before[1], -1)
        if share is not None:
            shares[key] = share
            self._use(share[0], share[1], 1)
        return True

    def _use(self, node: str, amounts: Amounts, sign: int) -> None:
        used = self.used.setdefault(node, {})
        for resource, amount in amounts.items():
            used[resource] = used.get(resource, 0) + sign * amount
            if not used[resource]:
                del used[resource]
            if resource in self.ranked:
                self._rank_one(node, resource)
        if not used:
            del self.used[node]
        self.touch(node, Touch.GROWN if sign < 0 else Touch.SHRUNK)

    def _rank(self, name: str) -> None:
        for resource in self.ranked:
            self._rank_one(name, resource)

    def _rank_one(self, name: str, resource: str) -> None:
        """Keep one node's place in the order of one resource."""
        node = self.state.node(name)
        offers = node is not None and node.allocatable.get(resource, 0) > 0
        now = self.free(node, resource) if node is not None and offers else None
        known = self._free.setdefault(resource, {})
        before = known.get(name)
        if before == now:
            return
        ranked = self.ranked[resource]
        if before is not None:
            del ranked[bisect_left(ranked, (before, name))]
            del known[name]
        if now is not None:
            insort(ranked, (now, name))
            known[name] = now


ADMITTED_KEPT_NS = 600 * 1_000_000_000
"""Logical time for which an answered launcher create is remembered while its VMI was never seen."""


def units(gpu_set: GpuSet) -> Amounts:
    """Return the units a set asks of each resource: two classes may share one (C54)."""
    total: Amounts = {}
    for claim in gpu_set.claims:
        total[claim.resource] = total.get(claim.resource, 0) + claim.count
    return total


def _drop(index: dict[str, dict[str, bool]], key: str, member: str) -> None:
    members = index.get(key)
    if members is not None:
        members.pop(member, None)
        if not members:
            del index[key]


def _pod(view: AnyView | None) -> PodView | None:
    return view if isinstance(view, PodView) else None


def _vmi(view: AnyView | None) -> VmiView | None:
    return view if isinstance(view, VmiView) else None


def _pvc(view: AnyView | None) -> PvcView | None:
    return view if isinstance(view, PvcView) else None
