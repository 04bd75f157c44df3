"""What can happen to VMs, their launchers and their claims, told by numbers."""

import msgspec
from msgspec.structs import replace

from binder.usage import claims_of
from schemas import events as e
from schemas.names import GATE, POLICY_SCHEDULE
from schemas.objects import ClaimView, ClassView, PodView, Stamp, VmiView, VmView
from tests.binder.cluster_acts import ENTRIES, NAMESPACES, TERMS, ClusterActs
from tests.binder.scene import launcher

FAILURES = ("OutOfcpu", "UnexpectedAdmissionError", "OutOfnvidia.com/A", "Evicted", "", "TopologyAffinityError")


class MachineActs(ClusterActs):
    """Acts on VMs, VMIs, launchers, claims and the writes of the projector."""

    def _start(self, a: int, b: int, c: int, d: int) -> None:
        """A VMI, its admitted launcher and its listing, as they come when all goes well."""
        vmi = self._vmi(a, b, c, d)
        if vmi is not None:
            request = f"r{self.count}"
            self.scene.admit(vmi, request)
            self._pod(vmi, request, c, d)
            self._listed_all(vmi)

    def _vmi(self, a: int, b: int, c: int, d: int) -> VmiView | None:
        """A VMI, new or known; a name comes back with another uid only after it was gone."""
        namespace, name = NAMESPACES[b % 2], f"vm{a % 5}"
        known = self.scene.objects["virtualmachineinstances"].get(f"{namespace}/{name}")
        if known is not None:
            return known if isinstance(known, VmiView) else None
        view = VmiView(
            name,
            f"vmi{self.count}",
            "",
            namespace,
            gpus=ENTRIES[c % len(ENTRIES)],
            policy=POLICY_SCHEDULE if d % 11 == 10 else "",
            volumes=(f"disk{d % 3}",) if d % 8 == 7 else (),
        )
        fresh = self.scene.newer(view)
        self.scene.watch("virtualmachineinstances", [fresh])
        return fresh

    def _vmi_phase(self, a: int, b: int, *_: int) -> None:
        view = self._pick("virtualmachineinstances", a)
        if isinstance(view, VmiView):
            phase = ("Pending", "Scheduling", "Running", "Succeeded", "Failed")[b % 5]
            self.scene.show(replace(view, phase=phase, deleting=view.deleting or b % 7 == 6))

    def _vmi_gone(self, a: int, *_: int) -> None:
        view = self._pick("virtualmachineinstances", a)
        if isinstance(view, VmiView):
            self.scene.remove("virtualmachineinstances", view.key)

    def _vm(self, a: int, b: int, c: int, *_: int) -> None:
        key = f"{NAMESPACES[b % 2]}/vm{a % 5}"
        if c % 2 and key in self.scene.objects["virtualmachines"]:
            self.scene.remove("virtualmachines", key)
        else:
            namespace, name = key.split("/")
            self.scene.show(VmView(name, f"vm-{self.count}", "", namespace, gpus=ENTRIES[0]))

    def _admit(self, a: int, b: int, *_: int) -> None:
        view = self._pick("virtualmachineinstances", a)
        if isinstance(view, VmiView):
            known = self.scene.book.state.admitted.get(view.uid)
            self.scene.admit(view, known.requests[-1] if known and b % 3 == 0 else f"r{self.count}")

    def _stranger(self, a: int, b: int, c: int, d: int) -> None:
        """Another pod of a VMI: with a stamp of its own, a copied one or none."""
        view = self._pick("virtualmachineinstances", a)
        if isinstance(view, VmiView):
            known = self.scene.book.state.admitted.get(view.uid)
            copied = known.requests[b % len(known.requests)] if known else ""
            self._pod(view, ("", f"r{self.count}", copied, copied)[b % 4], c, d)

    def _pod(self, vmi: VmiView, request: str, c: int, d: int) -> None:
        requests = {"cpu": 1000 * (d % 3)}
        for resource, count in self._units(vmi).items():
            requests[resource] = count + (c % 13 == 12)
        pod = launcher(vmi, f"pod{self.count}", request, requests)
        self.scene.show(
            replace(
                pod,
                uid=f"pod{self.count}",
                temporary=d % 5 == 4,
                migration=d % 17 == 16,
                gates=(GATE, "other.io/gate") if c % 9 == 8 else pod.gates,
                terms=TERMS[(c * d) % 4] if d % 2 else None,
                node_selector={"zone": "east"} if d % 10 == 9 else {},
                pvcs=(f"disk{c % 3}",) if c % 16 == 15 else (),
                priority=c % 2,
                created=self.count // 4,
            )
        )

    def _units(self, vmi: VmiView) -> dict[str, int]:
        """What KubeVirt renders: the class's resource as it was when the set was opened, else now."""
        gpu_set = self.scene.book.state.sets.get(vmi.uid)
        total: dict[str, int] = {}
        if gpu_set is not None and claims_of(gpu_set):
            for claim in claims_of(gpu_set):
                total[claim.resource] = total.get(claim.resource, 0) + claim.count
            return total
        try:
            entries = msgspec.json.decode(vmi.gpus, type=list[dict[str, object]])
        except msgspec.MsgspecError:
            return {}
        for entry in entries:
            if "claimName" in entry:
                self._add_held(total, f"{vmi.namespace}/{entry['claimName']}")
                continue
            view = self.scene.objects["gpuclasses"].get(str(entry["className"]))
            if isinstance(view, ClassView):
                count = entry.get("count", 1)
                total[view.resource] = total.get(view.resource, 0) + (count if isinstance(count, int) else 1)
        return total

    def _add_held(self, total: dict[str, int], key: str) -> None:
        """A held claim is counted by what it was placed under, else by its class's resource of now."""
        view, holding = self.scene.objects["gpuclaims"].get(key), self.scene.book.state.holdings.get(key)
        gpu_class = self.scene.objects["gpuclasses"].get(view.class_name) if isinstance(view, ClaimView) else None
        by = holding.claim.resource if holding is not None else ""
        by = by or (gpu_class.resource if isinstance(gpu_class, ClassView) else "")
        if by and isinstance(view, ClaimView):
            total[by] = total.get(by, 0) + view.count

    def _listed(self, a: int, b: int, *_: int) -> None:
        view = self._pick("virtualmachineinstances", a)
        if isinstance(view, VmiView):
            self._listed_all(view, but=b % 4 == 3)

    def _listed_all(self, vmi: VmiView, *, but: bool = False) -> None:
        pods = [pod for _, pod in sorted(self.scene.objects["pods"].items()) if isinstance(pod, PodView)]
        own = {pod.uid: pod.node for pod in pods if pod.owner_uid == vmi.uid}
        now = self.scene.objects["virtualmachineinstances"][vmi.key]
        assert isinstance(now, VmiView)
        self.scene.show(replace(now, active_pods=dict(list(own.items())[: -1 if but else None])))

    def _bind(self, a: int, b: int, *_: int) -> None:
        """A booked pod is pinned and scheduled; rarely some pod is, wherever."""
        booked = [one for _, one in sorted(self.scene.book.state.sets.items()) if one.node and not one.pinned]
        if booked and b % 6:
            gpu_set = booked[a % len(booked)]
            view = self.scene.objects["pods"].get(f"{gpu_set.vmi.namespace}/{gpu_set.pod}")
            if isinstance(view, PodView) and view.uid == gpu_set.pod_uid:
                self.scene.show(
                    replace(view, gates=(), node=gpu_set.node if b % 5 else "", phase="Running", ran=b % 3 == 0)
                )
        elif b % 6 == 0:
            view = self._pick("pods", a)
            if isinstance(view, PodView):
                gates = tuple(gate for gate in view.gates if gate == GATE) if b % 12 else ()
                self.scene.show(replace(view, gates=gates, node=f"n{b % 3}" if not gates else view.node))

    def _end(self, a: int, *_: int) -> None:
        view = self._pick("pods", a)
        if isinstance(view, PodView):
            self.scene.show(replace(view, ended=True, phase="Succeeded"))

    def _pinned(self, a: int, *, node: bool) -> PodView | None:
        """A booked launcher that is let go, on its node or on none yet."""
        booked = [one for _, one in sorted(self.scene.book.state.sets.items()) if one.node]
        gpu_set = booked[a % len(booked)] if booked else None
        view = self.scene.objects["pods"].get(f"{gpu_set.vmi.namespace}/{gpu_set.pod}") if gpu_set else None
        if gpu_set is None or not isinstance(view, PodView) or view.uid != gpu_set.pod_uid or view.ended:
            return None
        pod = replace(view, gates=(), node=gpu_set.node if node else view.node)
        self.scene.show(pod)
        return pod

    def _refused(self, a: int, b: int, c: int, d: int) -> None:
        """A launcher fails on its node, for a reason of the kubelet's or another; mostly its VM is started again."""
        pod = self._pinned(a, node=b % 5 > 0)
        if pod is None:
            return
        reason = FAILURES[b % len(FAILURES)]
        self.scene.show(replace(pod, ended=True, phase="Failed", reason=reason, ran=pod.ran or b % 11 == 10))
        vmi = self.scene.objects["virtualmachineinstances"].get(f"{pod.namespace}/{pod.owner_name}")
        if c % 4 and isinstance(vmi, VmiView):
            self.scene.remove("pods", pod.key)
            self.scene.remove("virtualmachineinstances", vmi.key)
            again = self.scene.newer(replace(vmi, uid=f"vmi{self.count}", phase="", deleting=False, active_pods={}))
            self.scene.watch("virtualmachineinstances", [again])
            self.scene.admit(again, f"r{self.count}")
            self._pod(again, f"r{self.count}", 0, d)
            self._listed_all(again)

    def _stuck(self, a: int, b: int, *_: int) -> None:
        """kube-scheduler says that it finds no node for a launcher, or takes it back; time may pass."""
        pod = self._pinned(a, node=False) if b % 3 else self._pick("pods", a)
        if isinstance(pod, PodView):
            self.scene.show(replace(pod, unschedulable=b % 8 > 0))
            for _halfminute in range(b % 8):
                self.scene.tick(30)

    def _pod_gone(self, a: int, b: int, *_: int) -> None:
        view = self._pick("pods", a)
        if isinstance(view, PodView):
            if b % 4 == 3:
                self.scene.show(replace(view, deleting=True))
            else:
                self.scene.remove("pods", view.key)

    def _repin(self, a: int, b: int, *_: int) -> None:
        view = self._pick("pods", a)
        if isinstance(view, PodView) and view.gates:
            self.scene.show(replace(view, terms=TERMS[b % 4]))

    def _outcome(self, a: int, b: int, c: int, *_: int) -> None:
        sets = [one for _, one in sorted(self.scene.book.state.sets.items())]
        if sets:
            one = sets[a % len(sets)]
            stamp = one.stamp if b % 4 else Stamp(one.stamp.generation, one.stamp.sequence - 1, 0)
            code = 422 if c % 2 else 0
            name = f"{one.vmi.name}"
            self.scene.send(
                e.Outcomes((e.Outcome("pin", one.vmi.namespace, name, one.vmi.uid, stamp, code, "Invalid"),))
            )

    def _claim(self, a: int, b: int, c: int, *_: int) -> None:
        """A claim as the projector makes it, or one that nobody decided."""
        sets = [one for _, one in sorted(self.scene.book.state.sets.items()) if one.claims]
        if sets and b % 4:
            one = sets[a % len(sets)]
            claim = one.claims[b % len(one.claims)]
            self.scene.show(
                ClaimView(
                    claim.name, f"claim{self.count}", "", one.vmi.namespace, class_name=claim.class_name,
                    count=claim.count + (c % 7 == 6), template=True, owner_uid=one.vmi.uid,
                )
            )  # fmt: skip
        else:
            view = self._pick("virtualmachineinstances", a)
            if isinstance(view, VmiView):
                stray = ClaimView(f"stray{c % 2}", f"claim{self.count}", "", view.namespace, class_name="a")
                self.scene.show(replace(stray, template=True, owner_uid=view.uid))

    def _claim_gone(self, a: int, *_: int) -> None:
        view = self._pick("gpuclaims", a)
        if isinstance(view, ClaimView):
            self.scene.remove("gpuclaims", view.key)
