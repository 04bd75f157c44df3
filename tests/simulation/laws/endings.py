"""At rest everyone that fits runs, and what was deleted is gone."""

from collections.abc import Iterator

from typing_extensions import override

from deploy.world import fitting
from deploy.world.manifests import Obj, controller_of, deleting, dig, key_of, meta, pod_ended
from schemas.kinds import GPU_CLAIM, NODE, POD, PV, PVC, VM, VMI, Resource
from tests.simulation.acts.strangers import FOREIGN_GATE
from tests.simulation.hardware import is_silent
from tests.simulation.laws.law import Law
from tests.simulation.laws.pins import is_gated, is_launcher

KINDS: tuple[Resource, ...] = (VM, VMI, POD, GPU_CLAIM, NODE)


class Gone(Law):
    """What was deleted is gone, and nothing of ours is left of it."""

    @override
    def rest(self) -> Iterator[str]:
        alive = {meta(vmi)["uid"] for vmi in self.world.cluster.objects(VMI)}
        stuck = set(self._stuck())
        for resource in KINDS:
            for obj in self.world.cluster.objects(resource):
                if deleting(obj) and key_of(obj) not in stuck:
                    yield f"{resource.kind} {key_of(obj)} is still going"
        for claim in self.world.cluster.objects(GPU_CLAIM):
            if not any(owner["uid"] in alive for owner in meta(claim).get("ownerReferences") or ()):
                yield f"claim {key_of(claim)} outlived its VMI"
        for uid in self.picture.bookings:
            if uid not in alive:
                yield f"the VMI {uid} is gone and still booked"

    def _stuck(self) -> Iterator[str]:
        """Name pods that nobody can tell the end of, and the VMIs and VMs that wait for it."""
        for pod in self.world.cluster.objects(POD):
            if deleting(pod) and is_silent(self.world.cluster, pod["spec"].get("nodeName", "")):
                yield key_of(pod)
                owner = controller_of(pod)
                if owner is not None:
                    yield f"{meta(pod)['namespace']}/{owner['name']}"


class Served(Law):
    """Every VM that is to run does, or waits behind our gate as it fits on no node: let go is not enough (D7)."""

    @override
    def rest(self) -> Iterator[str]:
        yield from self.unserved()

    def unserved(self) -> Iterator[str]:
        """Name each VM that neither runs nor waits as it must."""
        for vm in self.world.cluster.objects(VM):
            if vm["spec"].get("runStrategy") != "Always":
                continue
            vmi = self.world.cluster.find(VMI, key_of(vm))
            phase = dig(vmi, "status", "phase") if vmi is not None else "missing"
            if vmi is not None and self._may_still_run(vmi):
                continue
            if vmi is None or deleting(vmi) or phase in {"Failed", "Succeeded"}:
                yield f"VM {key_of(vm)} is to run, its VMI is {phase}"
            elif phase != "Running":
                yield from self._waits(vmi, str(phase))

    def _may_still_run(self, vmi: Obj) -> bool:
        """Say whether a launcher of the VMI stands on a node whose kubelet is silent: no second one is started."""
        return any(
            _is_of(pod, vmi) and is_silent(self.world.cluster, pod["spec"].get("nodeName", ""))
            for pod in self.world.cluster.objects(POD)
        )

    def _waits(self, vmi: Obj, phase: str) -> Iterator[str]:
        pods = [pod for pod in self.world.cluster.objects(POD) if _is_of(pod, vmi) and not pod_ended(pod)]
        if not pods:
            yield f"VMI {key_of(vmi)} is {phase} and has no launcher"
        for pod in pods:
            if not is_gated(pod):
                yield f"launcher {key_of(pod)} was let go onto {fitting.pinned_to(pod)} and does not run"
            elif any(gate["name"] == FOREIGN_GATE for gate in pod["spec"]["schedulingGates"]):
                continue
            elif nodes := [meta(node)["name"] for node in self.world.cluster.objects(NODE) if self.fits(pod, node)]:
                yield f"launcher {key_of(pod)} waits, and fits on {', '.join(nodes)}"

    def fits(self, pod: Obj, node: Obj) -> bool:
        """Say whether a pod fits on a node beside all that is bound, or let go, there now."""
        name = meta(node)["name"]
        taken: dict[str, int] = {}
        for other in self.world.cluster.objects(POD):
            if meta(other)["uid"] == meta(pod)["uid"]:
                continue
            pinned = fitting.pinned_to(other) if is_launcher(other) and not is_gated(other) else None
            if not pod_ended(other) and (other["spec"].get("nodeName") == name or pinned == [name]):
                for resource, amount in fitting.requests_of(other).items():
                    taken[resource] = taken.get(resource, 0) + amount
        offered = fitting.allocatable_of(node)
        asked = fitting.requests_of(pod)
        room = all(taken.get(one, 0) + amount <= offered.get(one, 0) for one, amount in asked.items() if amount)
        tolerated = fitting.tolerates(pod, fitting.taints_of(node))
        return room and tolerated and fitting.selects(pod, node) and not deleting(node) and self._reached(pod, node)

    def _reached(self, pod: Obj, node: Obj) -> bool:
        for volume in pod["spec"].get("volumes") or ():
            name = dig(volume, "persistentVolumeClaim", "claimName")
            claim = self.world.cluster.find(PVC, f"{meta(pod)['namespace']}/{name}") if name else None
            bound = self.world.cluster.find(PV, dig(claim or {}, "spec", "volumeName") or "")
            terms = dig(bound or {}, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
            if terms is not None and not fitting.matches_terms(terms, node):
                return False
        return True


def _is_of(pod: Obj, vmi: Obj) -> bool:
    return any(owner["uid"] == meta(vmi)["uid"] for owner in meta(pod).get("ownerReferences") or ())
