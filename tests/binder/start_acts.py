"""What can happen to starts under policy Refuse, told by numbers: asked for, withdrawn, stored or not, launched."""

from msgspec.structs import replace

from schemas import decisions as d
from schemas import events as e
from schemas.names import NODE_NAME_FIELD, POLICY_REFUSE
from schemas.objects import Foreseen, NodeSelectorTerm, PodView, Requirement, VmiView
from tests.binder.cluster_acts import ENTRIES, NAMESPACES, TERMS
from tests.binder.histories import History
from tests.binder.scene import Scene, launcher


class StartHistory(History):
    """A history in which VMs start under Refuse as well. `admitted`: VMIs that may be stored, by their uid."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.admitted: dict[str, tuple[VmiView, str]] = {}
        # What takes the whole cluster away comes seldom here: starts are refused there, and nothing else happens.
        self.acts = (
            self._node, self._node_gone, self._gpu_class, self._start, self._start, self._vmi_phase, self._vmi_gone,
            self._vmi_gone, self._vm, self._stranger, self._listed, self._listed, self._bind, self._bind,
            self._stuck, self._end, self._end, self._refused, self._pod_gone, self._pod_gone, self._raw_pod,
            self._volume, self._bound_volume, self._settings, self._tick, self._tick, self._tick, self._progress,
            self._progress, self._progress, self._epoch, self._session, self._relist, self._relist, self._outcome,
            self._claim, self._claim_gone, self._missed, self._order, self._order, self._order_ends,
            self._names_claims, self._uses_claims, self._trouble, self._runs, self._by_hand, self._budget,
            self._budget_gone, self._budget_gone, self._minute,
            self._ask, self._ask, self._ask, self._ask, self._withdraw, self._store, self._store, self._store,
            self._goes_well, self._goes_well, self._goes_well, self._goes_well, self._goes_well, self._goes_well,
            self._launch, self._launch, self._launch, self._runs_on, self._runs_on, self._runs_on, self._runs_on,
        )  # fmt: skip

    def _minute(self, *_: int) -> None:
        """The time of whoever was admitted and never stored is over, and the watches say that they went on."""
        for _halfminute in range(3):
            self.scene.tick(30)
        self.scene.progress()

    def _ask(self, a: int, b: int, c: int, d_: int) -> VmiView | None:
        """The validating webhook asks; rarely once more for the same VMI."""
        if self.admitted and a % 13 == 12:
            vmi = self.admitted[sorted(self.admitted)[b % len(self.admitted)]][0]
        else:
            uid, gpus = f"vmi{self.count}", ENTRIES[c % (len(ENTRIES) if d_ % 4 == 0 else 4)]
            vmi = VmiView(f"vm{a % 9}", uid, "", NAMESPACES[b % 2], gpus=gpus, policy=POLICY_REFUSE)
        foreseen = Foreseen(
            {"cpu": 1000 * (d_ % 3)},
            {"zone": "east"} if d_ % 10 == 9 else {},
            TERMS[(c * d_) % 4] if d_ % 2 else None,
            (f"disk{d_ % 3}",) if d_ % 8 == 7 else (),
        )
        asked = self.scene.start_request(vmi, f"s{self.count}")
        said = self.scene.send(replace(asked, launcher=foreseen))
        booked = [one for one in said if isinstance(one, d.SetBooked) and one.vmi.uid == vmi.uid]
        if booked:
            self.admitted[vmi.uid] = (replace(vmi, volumes=foreseen.volumes), f"s{self.count}")
        return self.admitted[vmi.uid][0] if booked else None

    def _withdraw(self, a: int, b: int, *_: int) -> None:
        """Whoever asked gives up: mostly of one that waits, else of one that was booked."""
        waiting = [one.event for _, one in sorted(self.scene.book.state.asked.items())]
        if waiting and b % 3:
            event = waiting[a % len(waiting)]
            self.scene.send(e.StartWithdrawn(event.request, event.vmi))
        elif self.admitted:
            vmi, request = self.admitted[sorted(self.admitted)[a % len(self.admitted)]]
            self.scene.send(e.StartWithdrawn(request, d.VmiId(vmi.namespace, vmi.name, vmi.uid)))

    def _store(self, a: int, b: int, *_: int) -> VmiView | None:
        """A VMI that was admitted is stored, also late; or it never is."""
        if not self.admitted:
            return None
        uid = sorted(self.admitted)[a % len(self.admitted)]
        vmi = self.admitted.pop(uid)[0]
        if b % 6 == 5 or vmi.key in self.scene.objects["virtualmachineinstances"]:
            return None
        return self._stored(vmi)

    def _stored(self, vmi: VmiView) -> VmiView:
        fresh = self.scene.newer(vmi)
        self.scene.watch("virtualmachineinstances", [fresh])
        return fresh

    def _goes_well(self, a: int, b: int, c: int, d_: int) -> None:
        """Asked for, stored, launched and listed; the launcher may be seen before its VMI."""
        vmi = self._ask(a, b, c, d_)
        if vmi is None or vmi.key in self.scene.objects["virtualmachineinstances"]:
            return
        self.admitted.pop(vmi.uid, None)
        fresh = self.scene.newer(vmi)
        if d_ % 4 == 3:
            self._launched(fresh, c, d_)
            self.scene.watch("virtualmachineinstances", [fresh])
        else:
            self.scene.watch("virtualmachineinstances", [fresh])
            self._launched(fresh, c, d_)
        self._listed_all(fresh)

    def _launch(self, a: int, _b: int, c: int, d_: int) -> None:
        """KubeVirt makes a launcher of a VMI under Refuse: the first, the one after a temporary pod, a target."""
        vmis = [
            view
            for _, view in sorted(self.scene.objects["virtualmachineinstances"].items())
            if isinstance(view, VmiView) and view.policy == POLICY_REFUSE
        ]
        if vmis:
            self._launched(vmis[a % len(vmis)], c, d_)

    def _launched(self, vmi: VmiView, c: int, d_: int) -> None:
        request, temporary, migration = f"r{self.count}", d_ % 5 == 4, c % 7 == 6
        said = self.scene.admit(vmi, request, temporary=temporary, migration=migration)
        answer = next((one for one in said if isinstance(one, d.PodAdmitted)), None)
        if answer is None:
            return
        units = self._units(vmi)
        pod = launcher(vmi, f"pod{self.count}", request, {"cpu": 1000 * (d_ % 3), **units})
        pin = NodeSelectorTerm(match_fields=(Requirement(NODE_NAME_FIELD, "In", (answer.node,)),))
        gates = pod.gates if answer.gate else ()
        terms = (pin,) if answer.node else None
        self.scene.show(
            replace(
                pod, uid=f"pod{self.count}", gates=gates, terms=terms, temporary=temporary, migration=migration,
                created=self.count // 4,
            )
        )  # fmt: skip

    def _runs_on(self, a: int, b: int, *_: int) -> None:
        """The scheduler binds a pod that is pinned and not gated."""
        pods = [
            view
            for _, view in sorted(self.scene.objects["pods"].items())
            if isinstance(view, PodView) and not view.gates and not view.node and view.terms and not view.ended
        ]
        pinned = [pod for pod in pods if pod.terms and pod.terms[0].match_fields]
        if pinned:
            pod = pinned[a % len(pinned)]
            node = (pod.terms or ())[0].match_fields[0].values[0]
            self.scene.show(replace(pod, node=node, phase="Running", ran=b % 2 == 0))
