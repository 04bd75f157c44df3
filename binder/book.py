"""The state with its indexes: who uses what, which node has how much left, who waits for it.

Every change of a table goes through here, so that an index can't fall behind; `Book(state)` derives
all of them anew, and `invariants.check` compares the two.
"""

import heapq
from typing import cast

from binder.declaring import VMIS, VMS
from binder.holdings import share_of
from binder.launchers import claim_names
from binder.licence_copies import LicenceCopy
from binder.picture import Picture
from binder.settings import settings_of
from binder.skips import deadlines_of
from binder.state import DECLARING_KINDS, NEEDED_KINDS, Admitted, GpuSet, Holding, Session, State, Touch, is_current
from binder.usage import Share, booking_of, claims_of
from schemas.objects import AnyView, BudgetView, ClassView, PodView, TenantView, VmView

ADMITTED_KEPT_NS = 600 * 1_000_000_000
"""Logical time for which an answered launcher is waited for where its VMI was never seen, or has ended."""

INDEXED_FIRST = (
    "gpubudgets",
    "helmreleases",
    "gpuclasses",
    "nodes",
    "virtualmachines",
    "virtualmachineinstances",
    "persistentvolumeclaims",
    "gpuclaims",
    "virtualmachinepools",
    "virtualmachineinstancereplicasets",
)
DECLARING = (VMS, VMIS, *DECLARING_KINDS)
GROWN, SHRUNK = int(Touch.GROWN), int(Touch.SHRUNK)


class Book(Picture):
    """The picture, and every change of a table beneath it. `rewound`: the newest session of a server that went back."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._rebuild()

    def derive(self) -> None:
        """Derive everything anew from the state's tables, which were exchanged."""
        Book.__init__(self, self.state)

    def _rebuild(self) -> None:
        self.rewound = max((one.number for one in self.state.sessions.values() if one.rewound), default=0)
        state, dirty_nodes, dirty_holdings = self.state, dict(self.state.dirty_nodes), dict(self.state.dirty_holdings)
        dirty_budgets = dict(state.dirty_budgets)
        for kind in INDEXED_FIRST:
            for key, view in state.objects[kind].items():
                self._index_object(kind, key, None, view)
        for uid, gpu_set in state.sets.items():
            self._index_set(uid, None, gpu_set)
        for key, holding in state.holdings.items():
            self._index_holding(key, None, holding)
        for key, view in state.objects["pods"].items():
            self._index_object("pods", key, None, view)
        kept = ((admitted.at_ns + ADMITTED_KEPT_NS, uid) for uid, admitted in state.admitted.items())
        # What is over by now has been acted on: a restart must not act on it again.
        self.deadlines.extend(due for due in kept if due[0] > state.now_ns)
        self.deadlines.extend(self.starts.dues())
        heapq.heapify(self.deadlines)
        for uid in {**state.sets, **state.dirty_sets}:
            self.line_up(uid)
        self.licence_dues.extend((one.retry_ns, key) for key, one in state.licences.items() if one.retry_ns)
        heapq.heapify(self.licence_dues)
        # Deriving marks nodes, claims and budgets as touched; what was dirty is part of the state and stays as it was.
        state.dirty_nodes, state.dirty_holdings, state.dirty_budgets = dirty_nodes, dirty_holdings, dirty_budgets
        self.troubles.begin()

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
        self.line_up(uid)

    def store_holding(self, key: str, holding: Holding | None) -> None:
        """Put what is held of a claim into the state, or take it out (None)."""
        before = self.state.holdings.get(key)
        if holding is None:
            self.state.holdings.pop(key, None)
        else:
            self.state.holdings[key] = holding
        self._index_holding(key, before, holding)
        if _usable(before) != _usable(holding):
            self.mark_namers(key)
        if holding is not None and holding.attached is not None and (before is None or before.node != holding.node):
            # Its set may now find room where it found none, and the other way round.
            self.mark(holding.attached.uid)

    def store_licence(self, key: str, copy: LicenceCopy | None) -> None:
        """Put a copy of a licence into the state, or take it out (None)."""
        if copy is None:
            self.state.licences.pop(key, None)
            return
        self.state.licences[key] = copy
        if copy.retry_ns > self.state.now_ns:
            heapq.heappush(self.licence_dues, (copy.retry_ns, key))

    def store_session(self, kind: str, session: Session) -> None:
        """Put a kind's session into the state."""
        self.state.sessions[kind] = session
        self.rewound = session.number if session.rewound and session.number > self.rewound else self.rewound
        if is_current(self.state, kind):
            self.behind.pop(kind, None)
        elif kind in NEEDED_KINDS:
            self.behind[kind] = True
        for uid in self.starts.overdue(session) if kind == VMIS else ():
            self.mark(uid)
        if kind == VMIS and self.class_use.deleting:
            self.class_use.weigh_leaving()

    def store_admitted(self, uid: str, admitted: Admitted | None) -> None:
        """Remember which launcher creates of a VMI were answered, or forget them (None)."""
        if admitted is None:
            self.state.admitted.pop(uid, None)
        else:
            self.state.admitted[uid] = admitted
            heapq.heappush(self.deadlines, (admitted.at_ns + ADMITTED_KEPT_NS, uid))
        self.charging.set_changed(uid)
        self.line_up(uid)

    def _index_object(self, kind: str, key: str, before: AnyView | None, view: AnyView | None) -> None:
        self.index.move(key, before, view)
        if kind in DECLARING:
            self.declared.changed(kind, before, view)
        match kind:
            case "nodes":
                self.usage.rank(key)
                self.troubles.node_changed(key, before, view)
            case "pods":
                self._index_pod(key, cast("PodView | None", before), cast("PodView | None", view))
            case "virtualmachineinstances":
                for vmi in (before, view):
                    if vmi is not None:
                        self.line_up(vmi.uid)
            case "gpuclasses":
                self._index_class(before, view)
                self.class_use.index_class(key)
            case "gpuclaims":
                self.held.weigh(key)
                self.class_use.index_claim(key, before, view)
            case "virtualmachines":
                self._index_vm(cast("VmView | None", before), cast("VmView | None", view))
            case "gpubudgets" | "helmreleases":
                self.budgets.changed(cast("BudgetView | TenantView", view or before))
            case "configmaps":
                self.settings = settings_of(self.state)
            case _:
                pass

    def _index_pod(self, key: str, before: PodView | None, view: PodView | None) -> None:
        self._count_pod(key, view)
        self.charging.pod_changed(key, before, view)
        # Only a class that is being deleted waits for pods to go.
        if self.class_use.deleting and not self.class_use.are_vmis_served:
            self.class_use.weigh_leaving()
        for owner in {side.owner_uid: True for side in (before, view) if side is not None and self.state.holdings}:
            for claim in self.held.members.of(owner):
                self.held.weigh(claim)
        if before is not None and before.owner_uid and (view is None or before.owner_uid != view.owner_uid):
            self._line_up_owners(before)
        if view is not None and view.owner_uid:
            self._line_up_owners(view)

    def _index_vm(self, before: VmView | None, view: VmView | None) -> None:
        for side in (before, view):
            for name in claim_names(side.gpus) if side is not None else ():
                key = f"{side.namespace}/{name}" if side is not None else ""
                if key in self.state.holdings:
                    self.held.regroup(key)

    def _index_holding(self, key: str, before: Holding | None, after: Holding | None) -> None:
        for side, sign in ((after, 1), (before, -1)):
            if side is not None and side.claim.resource:
                self.usage.refer(side.claim.resource, sign)
        self._await(key, before, after)
        self._take("holdings", key, share_of(self.state, after))
        self.charging.holding_changed(key, after)
        self.troubles.index_holding(key, before, after)
        self.held.regroup(key)
        self.held.weigh(key)
        if key in self.held.group_of:
            self.held.line_up(self.held.group_of[key])
        for side in (before, after):
            if side is not None and side.attached is not None:
                self.line_up(side.attached.uid)
        self.troubles.settle(before, after)

    def _line_up_owners(self, pod: PodView) -> None:
        self.line_up(pod.owner_uid)
        for key in self.index.pods_by_stamp.of(f"{pod.namespace}/{pod.admission}"):
            other = self.state.pod(key)
            if other is not None and other.owner_uid != pod.owner_uid:
                self.line_up(other.owner_uid)

    def _count_pod(self, key: str, pod: PodView | None) -> None:
        """Count a pod that runs on a node, unless the booking of its VMI counts it already."""
        counts = pod is not None and pod.node and not pod.ended and not self._is_booked(pod)
        self._take("pods", key, (pod.node, pod.requests) if pod is not None and counts else None)

    def _is_booked(self, pod: PodView) -> bool:
        """Say whether a booking counts this pod: temporary pod and launcher share one (T25)."""
        gpu_set = self.state.sets.get(pod.owner_uid) if pod.owner_uid else None
        return gpu_set is not None and gpu_set.node == pod.node and pod.uid in {gpu_set.pod_uid, gpu_set.former}

    def _index_class(self, before: AnyView | None, view: AnyView | None) -> None:
        for side, sign in ((view, 1), (before, -1)):
            if isinstance(side, ClassView):
                count = self.class_resources.get(side.resource, 0) + sign
                self.class_resources[side.resource] = count
                if not count:
                    del self.class_resources[side.resource]
                self.usage.refer(side.resource, sign)

    def _index_set(self, uid: str, before: GpuSet | None, after: GpuSet | None) -> None:
        if after is not None and after.reason is not None:
            # Only who was told a reason waits.
            self.patience.expect(after)
        others = before is None or after is None or (before.claims, before.held) != (after.claims, after.held)
        if others:
            self.class_use.index_set(uid, before, after)
            self._index_claims(uid, before, after)
        if (before.node if before else "") != (after.node if after else ""):
            # What the launcher's booking counts is not counted again, and may not go.
            for key in self.held.members.of(uid):
                self._take("holdings", key, share_of(self.state, self.state.holdings[key]))
                self.held.weigh(key)
        self.starts.index_set(uid, before, after)
        self.troubles.index_set(uid, before, after)
        self._await(uid, before, after)
        share = (after.node, after.requests) if after is not None and after.node else None
        moved = self._take("sets", uid, share)
        rebooked = booking_of(before) != booking_of(after)
        for key in self.index.pods_by_vmi.of(uid) if rebooked else ():
            self._count_pod(key, self.state.pod(key))
        if others or rebooked:
            self.charging.set_changed(uid)
        if others or moved:
            self.troubles.settle(before, after)
        elif after is not None:
            # It may be let go now where it could not be before.
            self.troubles.look(after.node)

    def _await(self, key: str, before: GpuSet | Holding | None, after: GpuSet | Holding | None) -> None:
        at = deadlines_of(after)
        known = deadlines_of(before) if at else ()
        for at_ns in at:
            # What is over by now has been acted on: a restart must not act on it again.
            if at_ns not in known and at_ns > self.state.now_ns:
                heapq.heappush(self.deadlines, (at_ns, key))

    def _index_claims(self, uid: str, before: GpuSet | None, after: GpuSet | None) -> None:
        if before is not None:
            for claim in before.claims:
                self.claim_sets.pop(f"{before.vmi.namespace}/{claim.name}", None)
        if after is not None:
            for claim in after.claims:
                self.claim_sets[f"{after.vmi.namespace}/{claim.name}"] = uid
        # Held claims too: one that was never placed is counted by what its set was opened with (T24).
        for side, sign in ((after, 1), (before, -1)):
            for one in claims_of(side) if side is not None else ():
                self.usage.refer(one.resource, sign)

    def _take(self, table: str, key: str, share: Share | None) -> bool:
        """Count what a pod, a set or a claim takes now, and say whether that changed."""
        before, changed = self.usage.take(table, key, share)
        for side, how in ((before, GROWN), (share, SHRUNK)) if changed else ():
            if side is not None:
                self.touch(side[0], how)
                if table == "pods":
                    self.troubles.refresh(side[0])
        return changed


def _usable(holding: Holding | None) -> tuple[object, ...]:
    """Return what decides who may use a claim."""
    return (holding.claim.uid, holding.attached, holding.freed) if holding is not None else ()
