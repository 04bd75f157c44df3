"""What the state says at a glance: launchers, the queue, and what the next pass has to look at.

Read by whoever decides; `binder.book` keeps it in step with the tables.
"""

from collections.abc import Iterable

from binder.budgets import Budgets
from binder.charging import Charging
from binder.class_use import ClassUse
from binder.declaring import Declared
from binder.holdings import Holdings, own_units
from binder.indexes import Indexes
from binder.launchers import gated_launchers, may_be_served, newest
from binder.order import (
    DIRTY,
    ENDS,
    PATIENT,
    ROOM_REASONS,
    WAITING,
    Group,
    Line,
    Rank,
    budget_groups,
    rank_of,
    woken_by,
)
from binder.patience import Patience
from binder.settings import settings_of
from binder.skips import Skips
from binder.starts import Starts
from binder.state import NEEDED_KINDS, State, is_absent, is_current
from binder.troubles import Troubles
from binder.usage import Usage, units
from schemas.objects import NodeView, PodView, VmiView


class Picture:
    """State plus indexes. `usage` counts amounts, `line` keeps the sets that a pass may have to look at.

    `held`: the groups of held claims, with their line. `budgets`: what tenants may hold and do hold,
    `declared`: what they declare. `starts`: sets that were booked at admission, and whose VMIs are not seen yet.
    `behind`: kinds that are not synced, or showed no life in this epoch: while there are any, nothing is placed,
    unless all of them are KubeVirt's and not served: then claims that no VMI holds are.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.usage = Usage(state.objects["nodes"])
        self._line = Line()
        self._moved: dict[str, bool] = {}
        self.index = Indexes()
        self.held = Holdings(state, self.index, self.goes_with_set)
        self.budgets = Budgets(state)
        self.declared = Declared()
        self.charging = Charging(state, self.index, self.budgets, self.declared)
        self.class_use = ClassUse(state, self.index)
        self.claim_sets: dict[str, str] = {}
        self.starts = Starts(state)
        self.class_resources: dict[str, int] = {}
        self.deadlines: list[tuple[int, str]] = []
        self.licence_dues: list[tuple[int, str]] = []
        self.skips = Skips(state)
        self.patience = Patience(state)
        self.troubles = Troubles(state, self.usage)
        self.settings = settings_of(state)
        self.behind = {kind: True for kind in NEEDED_KINDS if not is_current(state, kind)}

    def may_place_claims(self) -> bool:
        """Say whether held claims that no VMI holds may be placed: these need nothing of KubeVirt."""
        return not self.behind or all(is_absent(self.state, kind) for kind in self.behind)

    def is_held_up(self, group: str) -> bool:
        """Say whether claims have to wait for KubeVirt's kinds to be served: a VMI holds them."""
        return bool(self.behind) and any(one.attached is not None for one in self.held.of(group))

    def free(self, node: NodeView, resource: str) -> int:
        """Return what is left of a resource on a node; below zero where more is used than offered."""
        return self.usage.free(node, resource)

    def vmi_of(self, uid: str) -> VmiView | None:
        """Return the VMI with that uid, as long as it is seen."""
        return self.index.vmis.get(uid)

    def launcher_of(self, vmi: VmiView) -> PodView | None:
        """Return the VMI's admitted, listed, living launcher that still stands behind our gate."""
        known = self.state.admitted.get(vmi.uid)
        if known is None or not vmi.active_pods:
            return None
        listed = gated_launchers(self.state, vmi, self.index.pods_by_vmi.of(vmi.uid))
        honest = [pod for pod in listed if pod.admission in known.requests and not self.is_copied(pod)]
        return newest(honest) if len(honest) > 1 else honest[0] if honest else None

    def is_copied(self, pod: PodView) -> bool:
        """Say whether another pod of the namespace carries the pod's stamp: then neither is believed (T25)."""
        return self.index.pods_by_stamp.count(f"{pod.namespace}/{pod.admission}") > 1

    def in_line(self, uids: Iterable[str]) -> list[str]:
        """Return the sets in the order they are served."""
        return sorted(uids, key=self.rank)

    def rank(self, uid: str) -> Rank:
        """Return a set's place in the queue."""
        vmi = self.vmi_of(uid)
        return rank_of(self.state, uid, vmi.key if vmi else "", self.launcher_of(vmi) if vmi else None)

    def mark_namers(self, key: str) -> None:
        """Mark the sets of the VMIs that name a held claim."""
        for uid in self.index.claim_vmis.of(key):
            self.mark(uid)

    def goes_with_set(self, group: str) -> bool:
        """Say whether a group of held claims is served with the set of its VMI: booked, or behind our gate."""
        gpu_set, vmi = self.state.sets.get(group), self.vmi_of(group)
        if gpu_set is None or gpu_set.node:
            return gpu_set is not None
        return vmi is not None and may_be_served(vmi) and self.launcher_of(vmi) is not None

    def touch(self, name: str, how: int) -> None:
        """Mark a node for the next pass, if it offers anything that is counted."""
        if self.usage.offers(self.state.node(name)):
            self.state.dirty_nodes[name] = self.state.dirty_nodes.get(name, 0) | how

    def mark(self, uid: str) -> None:
        """Mark a set for the next pass. Of a VMI without set and listed pod, nothing can be decided yet."""
        if uid in self.state.dirty_sets:
            return
        vmi = self.vmi_of(uid)
        if uid in self.state.sets or (vmi is not None and vmi.active_pods):
            self.state.dirty_sets[uid] = True
            self.line_up(uid)
            if self.state.holdings:
                self.held.mark_group(uid)

    def is_dirty(self, uid: str) -> bool:
        """Say whether a set is to be looked at whatever the nodes do."""
        return uid in self.state.dirty_sets

    def unmark(self, uid: str) -> None:
        """Say that a set was looked at."""
        if self.state.dirty_sets.pop(uid, None):
            self.line_up(uid)

    @property
    def line(self) -> Line:
        """Return the line as it stands: whoever moved since it was last asked for gets its place first."""
        if self._moved:
            moved, self._moved = self._moved, {}
            for uid in moved:
                self._line_up(uid)
        return self._line

    def line_up(self, uid: str) -> None:
        """Say that something about a set's place in the line changed."""
        self._moved[uid] = True
        if self.state.holdings and self.held.members.count(uid):
            self.held.line_up(uid)

    def _line_up(self, uid: str) -> None:
        if uid not in self.state.dirty_sets and uid not in self.state.sets:
            self._line.drop(uid)
            return
        vmi, gpu_set, dirty = self.vmi_of(uid), self.state.sets.get(uid), uid in self.state.dirty_sets
        key = vmi.key if vmi is not None else ""
        if vmi is None or (gpu_set is not None and gpu_set.node):
            # Nothing to be gated for: at most its booking ends.
            if dirty:
                ends = (DIRTY,) if gpu_set is None else (DIRTY, ENDS)
                self._line.put(uid, rank_of(self.state, uid, key, None), ends)
            else:
                self._line.drop(uid)
            return
        pod = self.launcher_of(vmi)
        groups: tuple[Group, ...] = (DIRTY,) if dirty else ()
        if gpu_set is not None and gpu_set.reason is not None and pod is not None and may_be_served(vmi):
            own = own_units(self.held.of(uid)) if gpu_set.held else {}
            groups += (WAITING, *woken_by(gpu_set.reason, units(gpu_set), own.values()))
            groups += budget_groups(gpu_set.reason, gpu_set.over)
            if gpu_set.reason in ROOM_REASONS and self.patience.is_over(key):
                groups += (PATIENT,)
        self._line.put(uid, rank_of(self.state, uid, key, pod), groups)
