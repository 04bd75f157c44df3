"""What fits where, as the API server shows nodes and pods, and the log held claims: apart from our own books."""

from collections.abc import Iterable

from deploy.world import fitting
from deploy.world.manifests import Obj, deleting, dig, meta, pod_ended
from schemas.kinds import GPU_CLASS, NODE, POD, PV, PVC
from tests.simulation.held import Held
from tests.simulation.laws.pins import is_gated, is_launcher
from tests.simulation.picture import Picture
from tests.simulation.world import World


class Rooms:
    """Room on the nodes of a world, as it is now."""

    def __init__(self, world: World, picture: Picture) -> None:
        self._world, self._picture = world, picture

    def fits(self, pod: Obj, node: Obj, claims: Iterable[str] = ()) -> bool:
        """Say whether a launcher fits on a node, beside all that is bound, let go or held there now but by `claims`."""
        owner = next((one["uid"] for one in meta(pod).get("ownerReferences") or ()), "")
        taken = self._taken(node, pod_uid=meta(pod)["uid"], owner=owner, claims=claims)
        offered = fitting.allocatable_of(node)
        asked = fitting.requests_of(pod)
        room = all(taken.get(one, 0) + amount <= offered.get(one, 0) for one, amount in asked.items() if amount)
        tolerated = fitting.tolerates(pod, fitting.taints_of(node))
        return room and tolerated and fitting.selects(pod, node) and not deleting(node) and self._reached(pod, node)

    def takes(self, node: Obj, held: Iterable[Held]) -> bool:
        """Say whether a node takes held claims together that no VM uses: each class tolerates it, and all have room."""
        claims = list(held)
        keys = {one.key for one in claims}
        taken, offered = self._taken(node, claims=keys), fitting.allocatable_of(node)
        for one in claims:
            found = self._world.cluster.find(GPU_CLASS, one.class_name)
            if found is None:
                return False
            resource = one.resource or dig(found, "spec", "resourceName")
            taken[resource] = taken.get(resource, 0) + 1000 * one.count
            if taken[resource] > offered.get(resource, 0):
                return False
            if not fitting.tolerates({"spec": found["spec"]}, fitting.taints_of(node)):
                return False
        return not deleting(node)

    def tolerated(self, node: Obj, classes: Iterable[str]) -> bool:
        """Say whether each class by itself tolerates a node's taints."""
        found = [self._world.cluster.find(GPU_CLASS, name) for name in classes]
        taints = fitting.taints_of(node)
        return all(view is not None and fitting.tolerates({"spec": view["spec"]}, taints) for view in found)

    def _taken(self, node: Obj, *, pod_uid: str = "", owner: str = "", claims: Iterable[str] = ()) -> dict[str, int]:
        """Return what is taken of a node, in thousandths, but by one pod, its VMI's held claims, or some claims."""
        name, taken = meta(node)["name"], dict[str, int]()
        standing: dict[str, bool] = {}
        for other in self._world.cluster.objects(POD):
            if meta(other)["uid"] == pod_uid or pod_ended(other):
                continue
            pinned = fitting.pinned_to(other) if is_launcher(other) and not is_gated(other) else None
            if other["spec"].get("nodeName") == name or pinned == [name]:
                standing.update((one["uid"], True) for one in meta(other).get("ownerReferences") or ())
                for resource, amount in fitting.requests_of(other).items():
                    taken[resource] = taken.get(resource, 0) + amount
        for one in self._picture.held.claims.values():
            own = one.key in claims or (owner and one.attached == owner)
            if one.node == name and not own and one.attached not in standing:
                taken[one.resource] = taken.get(one.resource, 0) + 1000 * one.count
        return taken

    def _reached(self, pod: Obj, node: Obj) -> bool:
        for volume in pod["spec"].get("volumes") or ():
            name = dig(volume, "persistentVolumeClaim", "claimName")
            claim = self._world.cluster.find(PVC, f"{meta(pod)['namespace']}/{name}") if name else None
            bound = self._world.cluster.find(PV, dig(claim or {}, "spec", "volumeName") or "")
            terms = dig(bound or {}, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
            if terms is not None and not fitting.matches_terms(terms, node):
                return False
        return True

    def nodes(self) -> list[Obj]:
        """Return all nodes."""
        return self._world.cluster.objects(NODE)
