"""At rest everyone that fits runs, and what was deleted is gone."""

from collections import Counter
from collections.abc import Iterable, Iterator

from typing_extensions import override

from deploy.world import fitting
from deploy.world.manifests import Obj, controller_of, deleting, dig, key_of, meta, pod_ended
from schemas.kinds import GPU_CLAIM, GPU_CLASS, NAMESPACE, NODE, POD, SECRET, VM, VMI, Resource
from schemas.names import POLICY_REFUSE
from tests.simulation.acts.strangers import FOREIGN_GATE
from tests.simulation.hardware import is_silent
from tests.simulation.held import Held
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
    """Every VM that is to run does, and a VMI without one; or it waits behind our gate as it fits on no node (D7)."""

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
        for vmi in self.world.cluster.objects(VMI):
            phase = dig(vmi, "status", "phase") or "Pending"
            owner = controller_of(vmi)
            alone = owner is None or owner["kind"] != VM.kind
            if alone and not deleting(vmi) and phase not in {"Running", "Failed", "Succeeded"}:
                yield from () if self._may_still_run(vmi) else self._waits(vmi, phase)

    def _finds_no_place(self, vm: Obj) -> bool:
        """Say whether policy Refuse keeps a VM from starting: a claim, a budget of its line, or every node does."""
        if self.world.setting.policy != POLICY_REFUSE:
            return False
        template, home = vm["spec"]["template"], meta(vm)["namespace"]
        claims = [self.picture.held.claims.get(f"{home}/{name}") for name in named_claims(template)]
        held = [one for one in claims if one is not None]
        if len(held) < len(claims) or any(self._is_taken(one, key_of(vm)) for one in held):
            return True
        entries = [(one["className"], one["count"]) for one in entries_of(template) if "className" in one]
        if not self._affords.new(home, entries, held):
            return True
        return not list(self._takers(self._foreseen(vm, entries, held), [name for name, _ in entries], held))

    def _is_taken(self, one: Held, vm: str) -> bool:
        """Say whether a held claim is freed, another VMI's, or an older VM's."""
        return one.freed or bool(one.attached) or oldest_namer(self, one.key) not in {"", vm}

    def _foreseen(self, vm: Obj, entries: list[tuple[str, int]], held: list[Held]) -> Obj:
        """Return the launcher that KubeVirt would make for a VM, as far as it decides where that fits."""
        classes = [*(name for name, _ in entries), *(one.class_name for one in held)]
        found = {name: self.world.cluster.find(GPU_CLASS, name) for name in classes}
        requests: Counter[str] = Counter()
        for name, count in entries:
            requests[dig(found[name] or {}, "spec", "resourceName") or ""] += count
        for one in held:
            requests[one.resource or dig(found[one.class_name] or {}, "spec", "resourceName") or ""] += one.count
        spec = vm["spec"]["template"]["spec"]
        volumes = [dig(volume, "dataVolume", "name") for volume in spec.get("volumes") or ()]
        disks = [{"persistentVolumeClaim": {"claimName": name}} for name in volumes if name]
        return {
            "metadata": {"name": meta(vm)["name"], "namespace": meta(vm)["namespace"], "uid": ""},
            "spec": {
                "containers": [{"resources": {"requests": {name: str(n) for name, n in requests.items()}}}],
                "nodeSelector": spec.get("nodeSelector") or {},
                "tolerations": [
                    one for view in found.values() if view for one in view["spec"].get("tolerations") or ()
                ],
                "volumes": [*disks, *(spec.get("volumes") or ())],
            },
        }

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

    def _takers(self, pod: Obj, classes: list[str], held: Iterable[Held] = ()) -> Iterator[str]:
        own = [one.key for one in held]
        classes = [*classes, *(one.class_name for one in held)]
        for node in self.world.cluster.objects(NODE):
            fits = self._rooms.fits(pod, node, own) and self._rooms.tolerated(node, classes)
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
