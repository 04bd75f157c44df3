"""At rest everyone that fits runs, and what was deleted is gone."""

from collections.abc import Iterator

from typing_extensions import override

from deploy.world import fitting
from deploy.world.manifests import Obj, controller_of, deleting, dig, key_of, meta, pod_ended
from schemas.kinds import GPU_CLAIM, GPU_CLASS, NAMESPACE, NODE, POD, SECRET, VM, VMI, Resource
from schemas.names import POLICY_REFUSE
from tests.simulation.acts.strangers import FOREIGN_GATE
from tests.simulation.hardware import is_silent
from tests.simulation.laws.budgets import Affords
from tests.simulation.laws.holdings import entries_of, named_claims, oldest_namer
from tests.simulation.laws.law import Law
from tests.simulation.laws.pins import is_gated
from tests.simulation.laws.refused import classes_of, is_refused
from tests.simulation.laws.rooms import Rooms
from tests.simulation.picture import Picture
from tests.simulation.world import World

KINDS: tuple[Resource, ...] = (VM, VMI, POD, GPU_CLAIM, GPU_CLASS, NODE, NAMESPACE)


class Gone(Law):
    """What was deleted is gone, and nothing of ours is left of it."""

    @override
    def pending(self) -> Iterator[str]:
        alive = {meta(vmi)["uid"] for vmi in self.world.cluster.objects(VMI)}
        stuck = set(self._stuck())
        for resource in KINDS:
            for obj in self.world.cluster.objects(resource):
                if deleting(obj) and key_of(obj) not in stuck:
                    yield f"{resource.kind} {key_of(obj)} is still going"
        for claim in self.world.cluster.objects(GPU_CLAIM):
            owners = meta(claim).get("ownerReferences") or ()
            if owners and not any(owner["uid"] in alive for owner in owners):
                yield f"claim {key_of(claim)} outlived its VMI"
        for uid in self.picture.bookings:
            if uid not in alive:
                yield f"the VMI {uid} is gone and still booked"

    def _stuck(self) -> Iterator[str]:
        """Name what waits for something that does not end: a silent node's pod, a VM that runs, a claim of a class."""
        for pod in self.world.cluster.objects(POD):
            if deleting(pod) and is_silent(self.world.cluster, pod["spec"].get("nodeName", "")):
                yield from (key_of(pod), meta(pod)["namespace"])
                owner = controller_of(pod)
                if owner is not None:
                    yield f"{meta(pod)['namespace']}/{owner['name']}"
        for claim in self.world.cluster.objects(GPU_CLAIM):
            yield str(dig(claim, "spec", "className"))
            one = self.picture.held.claims.get(key_of(claim))
            if one is not None and one.attached in self.picture.bookings:
                yield key_of(claim)


class Served(Law):
    """Every VM that is to run does, or waits behind our gate as it fits on no node: let go is not enough (D7)."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._rooms = Rooms(world, picture)
        self._affords = Affords(picture)

    @override
    def pending(self) -> Iterator[str]:
        for vm in self.world.cluster.objects(VM):
            if vm["spec"].get("runStrategy") != "Always" or deleting(vm):
                continue
            vmi = self.world.cluster.find(VMI, key_of(vm))
            phase = dig(vmi, "status", "phase") if vmi is not None else "missing"
            if vmi is not None and self._may_still_run(vmi):
                continue
            if vmi is None or deleting(vmi) or phase in {"Failed", "Succeeded"}:
                if not is_refused(self.world.cluster, vm) and not self._finds_no_place(vm):
                    yield f"VM {key_of(vm)} is to run, its VMI is {phase}"
            elif phase != "Running":
                yield from self._waits(vmi, str(phase))

    def _finds_no_place(self, vm: Obj) -> bool:
        """Say whether policy Refuse keeps a VM from starting: no node has room; who names claims may be excused."""
        if self.world.setting.policy != POLICY_REFUSE:
            return False
        entries = entries_of(vm["spec"]["template"])
        if any("claimName" in entry for entry in entries):
            return True
        classes = [self.world.cluster.find(GPU_CLASS, entry["className"]) for entry in entries]
        requests = dict[str, int]()
        for entry, found in zip(entries, classes, strict=True):
            if found is not None:
                by = found["spec"]["resourceName"]
                requests[by] = requests.get(by, 0) + entry["count"]
        spec = vm["spec"]["template"]["spec"]
        tolerations = [one for found in classes if found for one in found["spec"].get("tolerations") or ()]
        volumes = [dig(volume, "dataVolume", "name") for volume in spec.get("volumes") or ()]
        claims = [{"persistentVolumeClaim": {"claimName": name}} for name in volumes if name]
        pod = {
            "metadata": {"name": meta(vm)["name"], "namespace": meta(vm)["namespace"], "uid": ""},
            "spec": {
                "containers": [{"resources": {"requests": {name: str(n) for name, n in requests.items()}}}],
                "nodeSelector": spec.get("nodeSelector") or {},
                "tolerations": tolerations,
                "volumes": [*claims, *(spec.get("volumes") or ())],
            },
        }
        return not list(self._takers(pod, [entry["className"] for entry in entries]))

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
        classes = classes_of(self.world.cluster, vmi)
        for pod in pods:
            if self._waits_for_licence(pod):
                continue
            if not is_gated(pod):
                yield f"launcher {key_of(pod)} was let go onto {fitting.pinned_to(pod)} and does not run"
            elif any(gate["name"] == FOREIGN_GATE for gate in pod["spec"]["schedulingGates"]):
                continue
            elif (
                not self._lacks(vmi)
                and self._affords.set_of(meta(vmi)["uid"])
                and (nodes := list(self._takers(pod, classes)))
            ):
                yield f"launcher {key_of(pod)} waits, and fits on {', '.join(nodes)}"

    def _waits_for_licence(self, pod: Obj) -> bool:
        """Say whether kubelet waits with a launcher for a Secret that nobody has put there (L3, L5)."""
        names = [dig(volume, "secret", "secretName") for volume in pod["spec"].get("volumes") or ()]
        home = meta(pod)["namespace"]
        return any(name and self.world.cluster.find(SECRET, f"{home}/{name}") is None for name in names)

    def _takers(self, pod: Obj, classes: list[str]) -> Iterator[str]:
        for node in self.world.cluster.objects(NODE):
            fits = self._rooms.fits(pod, node) and self._rooms.tolerated(node, classes)
            if fits and meta(node)["name"] != self.picture.kept:
                yield meta(node)["name"]

    def _lacks(self, vmi: Obj) -> bool:
        """Say whether a VMI waits for a claim or class that it names: gone, going, another VMI's or an older VM's."""
        namespace = meta(vmi)["namespace"]
        for name in named_claims(vmi):
            one = self.picture.held.claims.get(f"{namespace}/{name}")
            found = self.world.cluster.find(GPU_CLAIM, f"{namespace}/{name}")
            if one is None or one.freed or found is None or deleting(found):
                return True
            if one.attached not in {"", meta(vmi)["uid"]}:
                return True
            if not one.attached and oldest_namer(self, one.key) not in {"", key_of(vmi)}:
                return True
        names = [entry["className"] for entry in entries_of(vmi) if "className" in entry]
        return any(self.world.cluster.find(GPU_CLASS, name) is None for name in names)


def _is_of(pod: Obj, vmi: Obj) -> bool:
    return any(owner["uid"] == meta(vmi)["uid"] for owner in meta(pod).get("ownerReferences") or ())
