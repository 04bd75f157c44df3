"""A cluster that is taken over goes on as it stood: who was let go is booked where it is, before all else (T4)."""

from collections import Counter
from collections.abc import Iterator

import msgspec
from typing_extensions import override

from schemas import decisions as d
from schemas.names import GATE, NODE_NAME_FIELD
from schemas.objects import ClaimView, PodView, Stamp, VmiView
from tests.simulation.labels import DEVICES
from tests.simulation.laws.law import Law

MAY_BE_FIRST = (
    d.Rejected, d.VmiAdmitted, d.PodAdmitted, d.Refused, d.StartHeld, d.WritePassed, d.Commanded, d.LauncherAdopted,
    d.SetAdopted, d.HeldAdopted, d.Adopted,
)  # fmt: skip


class TakenOver(Law):
    """Adoption books what launchers, pins and claims show, each unit once, before anything else is decided."""

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        if self.picture.adopting and not isinstance(decision, MAY_BE_FIRST):
            self.found.append(f"{stamp}: {type(decision).__name__} is decided before the cluster was taken over")
        match decision:
            case d.SetAdopted():
                self._set(stamp, decision)
            case d.HeldAdopted():
                self._held(stamp, decision)
            case d.Adopted():
                self.found += [f"{stamp}: {said}" for said in self._left_out()]
            case _:
                pass

    def _set(self, stamp: Stamp, decision: d.SetAdopted) -> None:
        who = f"{stamp}: {decision.vmi.name}"
        pod, vmi = self.picture.pod(f"{decision.vmi.namespace}/{decision.pod}"), self._vmi(decision.vmi)
        if pod is None or vmi is None or pod.uid != decision.pod_uid or not is_let_go(pod, vmi):
            self.found.append(f"{who} is taken over with {decision.pod}, which was not let go, or is not its launcher")
            return
        if place_of(pod) != decision.node:
            self.found.append(f"{who} is taken over on {decision.node}, its launcher is on {place_of(pod)}")
        asked: Counter[str] = Counter()
        units = [(one.resource, one.count) for one in decision.claims]
        units += [(one.resource, one.count) for one in decision.held]
        for resource, count in units:
            asked[resource] += count
        if {name: pod.requests.get(name, 0) for name in asked} != asked:
            self.found.append(f"{who} is taken over with {dict(asked)}, its launcher requests {pod.requests}")
        for claim in decision.claims:
            shown = self._claim(f"{decision.vmi.namespace}/{claim.name}")
            if shown is not None and shown.resource not in {"", claim.resource}:
                self.found.append(
                    f"{who}: claim {claim.name} shows {shown.resource}, and is taken for {claim.resource}"
                )

    def _held(self, stamp: Stamp, decision: d.HeldAdopted) -> None:
        for claim in decision.claims:
            key = f"{decision.namespace}/{claim.name}"
            shown, node = self._claim(key), self.picture.node(decision.node)
            if shown is None or (decision.node and (shown.phase, shown.node) != ("Bound", decision.node)):
                self.found.append(f"{stamp}: claim {key} is taken over on {decision.node}, and shows {shown}")
                continue
            used = self.picture.used(decision.node, claim.resource) if node is not None else 0
            offered = node.allocatable.get(claim.resource, 0) if node is not None else 0
            if offered and used + claim.count > offered:
                self.found.append(
                    f"{stamp}: claim {key} is taken over on {decision.node}, where {used} of {offered} are used"
                )

    def _left_out(self) -> Iterator[str]:
        """Name who has units and is not booked: somebody else could be given them."""
        for vmi in self.picture.objects.get("virtualmachineinstances", {}).values():
            assert isinstance(vmi, VmiView)
            booking = self.picture.bookings.get(vmi.uid)
            for pod in self._pods(vmi):
                covered = booking is not None and pod.uid in {booking.pod_uid, booking.former}
                if booking is None and (not pod.node or self._is_whole(vmi, pod)):
                    yield f"launcher {pod.key} is on or pinned to {place_of(pod)}, and not booked"
                if booking is not None and covered and booking.node != place_of(pod):
                    yield f"launcher {pod.key} is on {place_of(pod)}, and booked on {booking.node}"
        for key, one in self.picture.held.claims.items():
            shown = self._claim(key)
            if shown is not None and shown.phase in {"Bound", "Lost"} and not (one.node or one.lost):
                yield f"claim {key} shows {shown.phase} {shown.node}, and is taken over as if it never was"

    def _is_whole(self, vmi: VmiView, pod: PodView) -> bool:
        """Say whether a launcher requests just the units that its VMI names, and nobody else has one of its claims."""
        asked = 0
        for entry in msgspec.json.decode(vmi.gpus):
            if "className" in entry:
                known = self.picture.objects.get("gpuclasses", {}).get(entry["className"])
                asked += entry["count"] if known is not None else -1000
                continue
            one = self.picture.held.claims.get(f"{vmi.namespace}/{entry['claimName']}")
            asked += one.count if one is not None and not one.attached else -1000
        return asked == sum(pod.requests.get(name, 0) for name in DEVICES)

    def _pods(self, vmi: VmiView) -> Iterator[PodView]:
        for pod in self.picture.objects.get("pods", {}).values():
            assert isinstance(pod, PodView)
            if pod.owner_uid == vmi.uid and is_let_go(pod, vmi) and any(pod.requests.get(one) for one in DEVICES):
                yield pod

    def _vmi(self, vmi: d.VmiId) -> VmiView | None:
        found = self.picture.objects.get("virtualmachineinstances", {}).get(f"{vmi.namespace}/{vmi.name}")
        return found if isinstance(found, VmiView) and found.uid == vmi.uid else None

    def _claim(self, key: str) -> ClaimView | None:
        found = self.picture.objects.get("gpuclaims", {}).get(key)
        return found if isinstance(found, ClaimView) else None

    @override
    def pending(self) -> Iterator[str]:
        if self.world.stopped or self.picture.adopting:
            yield "the cluster is not taken over yet"


def is_let_go(pod: PodView, vmi: VmiView) -> bool:
    """Say whether a pod may run as the VMI's launcher: listed, without our gate, with a place of its own."""
    return (
        pod.launcher and not pod.ended and GATE not in pod.gates and pod.uid in vmi.active_pods and bool(place_of(pod))
    )


def place_of(pod: PodView) -> str:
    """Return where a pod is, or the one node that all its terms name; '' where that is open."""
    named = {
        one.values[0] if one.operator == "In" and len(one.values) == 1 else ""
        for term in pod.terms or ()
        for one in term.match_fields
        if one.key == NODE_NAME_FIELD
    }
    every = all(any(one.key == NODE_NAME_FIELD for one in term.match_fields) for term in pod.terms or ())
    return pod.node or (named.pop() if every and len(named) == 1 else "")
