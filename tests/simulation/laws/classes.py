"""Classes: counts are true, the elder keeps a resource name, units that of their decision, each tolerates alone."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from typing_extensions import override

from deploy.world import fitting
from deploy.world.manifests import Obj, dig, key_of, meta
from schemas import decisions as d
from schemas.kinds import GPU_CLAIM, GPU_CLASS, NODE
from schemas.objects import ClassView, Stamp
from schemas.reasons import Placing
from tests.simulation.laws.law import Law
from tests.simulation.laws.recount import Recount
from tests.simulation.picture import Picture
from tests.simulation.world import World

CONFLICT = "ResourceNameConflict"


class Elder(Law):
    """At rest a class says ResourceNameConflict just where an older one has its resource name (K1)."""

    @override
    def pending(self) -> Iterator[str]:
        classes = self.world.cluster.objects(GPU_CLASS)
        for one in classes:
            told = {said["type"]: said["status"] for said in dig(one, "status", "conditions") or ()}
            elder = elder_of(one, classes)
            if (told.get(CONFLICT) == "True") != (elder is not None):
                yield f"class {key_of(one)} says {told}, the elder of its name is {elder and key_of(elder)}"


def elder_of(one: Obj, classes: Iterable[Obj]) -> Obj | None:
    """Return the class that keeps the resource name of another: older by creation, then by name; None where none is."""
    older = [
        other
        for other in classes
        if dig(other, "spec", "resourceName") == dig(one, "spec", "resourceName") and _age(other) < _age(one)
    ]
    return min(older, key=_age, default=None)


def _age(one: Obj) -> tuple[str, str]:
    return meta(one)["creationTimestamp"], meta(one)["name"]


class Counted(Law):
    """At rest each class shows how many units nodes offer of it, and how many are booked and held (T24)."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._recount = Recount(picture)

    @override
    def pending(self) -> Iterator[str]:
        held: Counter[str] = Counter()
        for uid, claims in self.picture.claims.items():
            for claim in claims if self._recount.counts(uid) else ():
                held[claim.resource] += claim.count
        for one in self.picture.held.claims.values():
            if one.node:
                held[one.resource] += one.count
        nodes = self.world.cluster.objects(NODE)
        for one_class in self.world.cluster.objects(GPU_CLASS):
            resource = dig(one_class, "spec", "resourceName")
            offered = sum(fitting.allocatable_of(node).get(resource, 0) for node in nodes) // 1000
            shown = dig(one_class, "status", "allocatable"), dig(one_class, "status", "held")
            if shown != (offered, held[resource]):
                yield f"class {key_of(one_class)} shows {shown}, nodes offer {offered}, {held[resource]} are held"


class Named(Law):
    """What was bound keeps the resource name it was decided under, whatever its class is edited to (T24, C45)."""

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        match decision:
            case d.SetOpened() if decision.vmi.uid in self.picture.bookings:
                known = {one.name: one.resource for one in self.picture.claims.get(decision.vmi.uid, ())}
                for claim in decision.claims:
                    if known.get(claim.name, claim.resource) != claim.resource:
                        self.found.append(
                            f"{stamp}: {claim.name} is booked as {known[claim.name]}, not {claim.resource}"
                        )
                self._held(stamp, decision.vmi.namespace, decision.held)
            case d.HeldPlaced() | d.HeldLost():
                self._held(stamp, decision.namespace, decision.claims)
            case _:
                pass

    def _held(self, stamp: Stamp, namespace: str, claims: tuple[d.HeldClaim, ...]) -> None:
        for claim, one in self.picture.held.named(namespace, claims):
            if one.was_placed and one.resource != claim.resource:
                self.found.append(f"{stamp}: {one.key} is held as {one.resource}, and said to be {claim.resource}")

    @override
    def rest(self) -> Iterator[str]:
        due = {key: one.resource for key, one in self.picture.held.claims.items() if one.was_placed}
        for uid in self.picture.bookings:
            claims, vmi = self.picture.claims.get(uid, ()), self.picture.names[uid]
            due.update((f"{vmi.namespace}/{one.name}", one.resource) for one in claims)
        for claim in self.world.cluster.objects(GPU_CLAIM):
            shown, resource = dig(claim, "status", "resourceName"), due.get(key_of(claim))
            if resource is not None and shown != resource:
                yield f"claim {key_of(claim)} shows resource {shown}, it is counted as {resource}"


class Tolerated(Law):
    """A node serves a set only if each class by itself tolerates the node's taints (C19)."""

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        match decision:
            case d.SetPlaced() if decision.vmi.uid not in self.picture.bookings:
                uid = decision.vmi.uid
                names = [one.class_name for one in self.picture.claims.get(uid, ())]
                names += [one.class_name for one in self.picture.held.of(uid)]
                self._ask(stamp, decision.node, names)
            case d.HeldPlaced() if decision.why is not Placing.AGAIN:
                self._ask(stamp, decision.node, [claim.class_name for claim in decision.claims])
            case _:
                pass

    def _ask(self, stamp: Stamp, name: str, classes: list[str]) -> None:
        node = self.picture.node(name)
        taints = msgspec.to_builtins(node.taints) if node is not None else []
        for one in Counter(classes):
            view = self.picture.objects.get("gpuclasses", {}).get(one)
            tolerations = msgspec.to_builtins(view.tolerations) if isinstance(view, ClassView) else []
            if not fitting.tolerates({"spec": {"tolerations": tolerations}}, taints):
                self.found.append(
                    f"{stamp}: class {one} is placed on {name}, whose taints {taints} it does not tolerate"
                )
