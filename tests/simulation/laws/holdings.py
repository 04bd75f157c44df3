"""Held claims: on one node each, together where they go together, in one set at a time, and kept until given back."""

from collections.abc import Iterable, Iterator

import msgspec
from typing_extensions import override

from deploy.world.manifests import Obj, dig, key_of, meta
from deploy.world.manifests import deleting as is_going
from schemas import decisions as d
from schemas.kinds import GPU_CLAIM, POD
from schemas.names import GATE, GPUS_ANNOTATION
from schemas.objects import ClaimView, NodeView, Stamp, VmView
from schemas.reasons import Placing, Unkept
from tests.simulation.held import Held
from tests.simulation.laws.law import Law
from tests.simulation.laws.pins import is_let_go
from tests.simulation.picture import Picture
from tests.simulation.world import World


class Holds(Law):
    """A held claim is in one set, leaves its node only where that can't keep it, and is freed once it is unused."""

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        match decision:
            case d.SetOpened():
                self._opened(stamp, decision)
            case d.SetPlaced():
                for one in self.picture.held.of(decision.vmi.uid):
                    if one.freed:
                        self.found.append(f"{stamp}: {decision.vmi.name} is placed with {one.key}, which is freed")
            case d.HeldPlaced():
                self._placed(stamp, decision)
            case d.HeldLost():
                self._lost(stamp, decision)
            case d.HeldFreed():
                self._freed(stamp, decision)
            case _:
                pass

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._said: dict[str, tuple[d.HeldClaim, ...]] = {}

    def _opened(self, stamp: Stamp, decision: d.SetOpened) -> None:
        vmi = decision.vmi
        before = {claim.uid for claim in self._said.get(vmi.uid, ())}
        self._said[vmi.uid] = decision.held
        for claim in decision.held:
            one = self.picture.held.claims.get(f"{vmi.namespace}/{claim.name}")
            if claim.uid in before and (one is None or one.uid != claim.uid or one.freed):
                continue  # Said again of a set whose claim went meanwhile: it takes nothing.
            if one is None or one.uid != claim.uid or one.freed:
                self.found.append(f"{stamp}: {vmi.name} takes claim {claim.name}, which is not there")
            elif one.attached and one.attached != vmi.uid:
                self.found.append(f"{stamp}: {vmi.name} takes claim {claim.name} of the VMI {one.attached}")

    def _loose(self, stamp: Stamp, namespace: str, claims: Iterable[d.HeldClaim]) -> list[Held]:
        """Return claims that move: none of them is used by a booked launcher."""
        found = [one for _, one in self.picture.held.named(namespace, claims)]
        for one in found:
            if one.attached in self.picture.bookings:
                self.found.append(f"{stamp}: claim {one.key} is moved under the launcher of its VMI")
        return found

    def _placed(self, stamp: Stamp, decision: d.HeldPlaced) -> None:
        moving = self._loose(stamp, decision.namespace, decision.claims)
        node = self.picture.node(decision.node)
        if decision.why is Placing.AGAIN:
            if any(one.node != decision.node for one in moving):
                self.found.append(f"{stamp}: {moving[0].key} is said again to be on another node, {decision.node}")
            return
        if node is None or not node.ready or node.unschedulable:
            self.found.append(
                f"{stamp}: claims of {decision.namespace} are placed on {decision.node}, which takes none"
            )
            return
        wanted: dict[str, int] = {}
        for claim in decision.claims:
            wanted[claim.resource] = wanted.get(claim.resource, 0) + claim.count
        for resource, units in wanted.items():
            own = sum(one.count for one in moving if one.node == decision.node and one.resource == resource)
            used = self.picture.used(decision.node, resource) - own
            if used + units > node.allocatable.get(resource, 0):
                self.found.append(
                    f"{stamp}: claims of {decision.namespace} take {units} of {resource} on {decision.node}, "
                    f"where {used} of {node.allocatable.get(resource, 0)} are used"
                )

    def _lost(self, stamp: Stamp, decision: d.HeldLost) -> None:
        for one in self._loose(stamp, decision.namespace, decision.claims):
            node = self.picture.node(one.node)
            if one.node and not one.lost and not self._is_cause(decision.reason, node, one):
                self.found.append(f"{stamp}: claim {one.key} is lost ({decision.reason}), and {one.node} keeps it")

    def _is_cause(self, reason: Unkept, node: NodeView | None, one: Held) -> bool:
        match reason:
            case Unkept.NODE_GONE:
                return node is None or self.picture.changed.get(one.node, 0) > 0
            case Unkept.NODE_NOT_READY:
                return node is not None and not node.ready
            case Unkept.NODE_TAINTED:
                return node is not None and bool(node.taints)
            case Unkept.UNITS_GONE:
                offered = node.allocatable.get(one.resource, 0) if node is not None else 0
                return self.picture.used(one.node, one.resource) > offered
            case _:
                return True

    def _freed(self, stamp: Stamp, decision: d.HeldFreed) -> None:
        key = f"{decision.namespace}/{decision.name}"
        one, view = self.picture.held.claims.get(key), self.picture.objects.get("gpuclaims", {}).get(key)
        if not isinstance(view, ClaimView) or not view.deleting or view.uid != decision.uid:
            self.found.append(f"{stamp}: claim {key} is freed, and nobody deletes it")
        booking = self.picture.bookings.get(one.attached) if one is not None else None
        pod = self.picture.pod(f"{decision.namespace}/{booking.pod}") if booking is not None else None
        stands = booking is not None and pod is not None and pod.uid == booking.pod_uid
        if pod is not None and stands and not pod.ended and GATE not in pod.gates:
            self.found.append(f"{stamp}: claim {key} is freed, and {pod.key} may run with it")

    @override
    def step(self) -> Iterator[str]:
        for one in self.picture.held.claims.values():
            booking = self.picture.bookings.get(one.attached)
            if booking is not None and one.node != booking.node:
                yield f"claim {one.key} is on {one.node or 'no node'}, its VMI is booked on {booking.node}"
        users: dict[str, dict[str, bool]] = {}
        for pod in self.world.cluster.objects(POD):
            if is_let_go(pod):
                owner = meta(pod)["ownerReferences"][0]["uid"]
                for name in named_claims(pod):
                    users.setdefault(f"{meta(pod)['namespace']}/{name}", {})[owner] = True
        for key, vmis in users.items():
            if len(vmis) > 1:
                yield f"claim {key} is used by {len(vmis)} VMIs at once: {', '.join(vmis)}"


class Together(Law):
    """At rest claims that go together are on one node or lost together, and each shows what was decided of it."""

    @override
    def rest(self) -> Iterator[str]:
        for group, held in groups(self).items():
            nodes = sorted({one.node for one in held if one.node})
            if len(nodes) > 1 or (nodes and any(one.lost for one in held)):
                yield f"claims of {group} are split: {[(one.key, one.node or one.lost) for one in held]}"
        for claim in self.world.cluster.objects(GPU_CLAIM):
            one = self.picture.held.claims.get(key_of(claim))
            if one is not None:
                yield from _shows(claim, one)
            elif not meta(claim).get("ownerReferences"):
                yield f"claim {key_of(claim)} is there, and unknown"


def _shows(claim: Obj, one: Held) -> Iterator[str]:
    phase = "Bound" if one.node else "Lost" if one.lost else "Pending"
    said = tuple(dig(claim, "status", name) or "" for name in ("phase", "nodeName"))
    if said != (phase, one.node) and not (one.freed or is_going(claim)):
        yield f"claim {one.key} shows {said}, decided is {(phase, one.node)}"
    holder = dig(claim, "status", "attachedTo", "uid") or ""
    if holder != one.attached and not one.freed:
        yield f"claim {one.key} shows that {holder or 'nobody'} holds it, decided is {one.attached or 'nobody'}"


def entries_of(marked: Obj) -> list[Obj]:
    """Return the entries of an object's annotation."""
    text = (meta(marked).get("annotations") or {}).get(GPUS_ANNOTATION)
    found: list[Obj] = msgspec.json.decode(text) if text else []
    return found


def named_claims(marked: Obj) -> list[str]:
    """Return the names of the held claims that an object's annotation names."""
    return [entry["claimName"] for entry in entries_of(marked) if "claimName" in entry]


def oldest_namer(law: Law, key: str) -> str:
    """Return the key of the oldest VM that names a claim, as the log knows VMs; '' where none does."""
    namespace, _, name = key.partition("/")
    vms = [
        (view.created, view.uid, view.key)
        for view in law.picture.objects.get("virtualmachines", {}).values()
        if isinstance(view, VmView) and view.namespace == namespace and f'"{name}"' in view.gpus
    ]
    return min(vms)[2] if vms else ""


def groups(law: Law) -> dict[str, list[Held]]:
    """Return held claims by what they go together with: the VMI that holds them, the oldest VM, or nothing."""
    found: dict[str, list[Held]] = {}
    for one in law.picture.held.claims.values():
        if not one.freed:
            group = one.attached or oldest_namer(law, one.key) or one.key
            found.setdefault(group, []).append(one)
    return found
