"""No node is over-committed by our doing, and a unit is free only once its launcher is gone or ended."""

from typing_extensions import override

from schemas import decisions as d
from schemas.names import GATE
from schemas.objects import PodView, Stamp
from tests.simulation.laws.law import Law
from tests.simulation.picture import Booking, Picture
from tests.simulation.world import World

ENDS = (d.SetReleased, d.VmiGivenUp)


class Room(Law):
    """What is booked fits into what the node offers beside all others, as far as the log had seen by then (D2, T14)."""

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        if isinstance(decision, d.SetBooked) and decision.vmi.uid not in self.picture.bookings:
            self._fits(stamp, decision, decision.requests)
        if not isinstance(decision, d.SetPlaced):
            return
        uid = decision.vmi.uid
        before = self.picture.bookings.get(uid)
        if before is not None:
            if before.node != decision.node:
                self.found.append(
                    f"{stamp}: {decision.vmi.name} is booked on {before.node}, and moved to {decision.node}"
                )
            return
        node = self.picture.node(decision.node)
        pod = self.picture.pod(f"{decision.vmi.namespace}/{decision.pod}")
        if node is None or pod is None or pod.uid != decision.pod_uid:
            self.found.append(f"{stamp}: {decision.vmi.name} is placed on {decision.node}: node or pod unknown")
            return
        self._fits(stamp, decision, pod.requests)

    def _fits(self, stamp: Stamp, decision: d.SetPlaced | d.SetBooked, requests: dict[str, int]) -> None:
        node, own = self.picture.node(decision.node), dict[str, int]()
        for one in decision.held if isinstance(decision, d.SetBooked) else ():
            # What it names and nobody uses is there already, if it is on that node.
            known = self.picture.held.claims.get(f"{decision.vmi.namespace}/{one.name}")
            if known is not None and known.node == decision.node and not known.attached:
                own[one.resource] = own.get(one.resource, 0) + one.count
        for resource, amount in requests.items():
            used = self.picture.used(decision.node, resource, without=decision.vmi.uid) - own.get(resource, 0)
            offered = node.allocatable.get(resource, 0) if node is not None else 0
            if amount and used + amount > offered:
                self.found.append(
                    f"{stamp}: {decision.vmi.name} takes {amount} of {resource} on {decision.node}, "
                    f"where {used} of {offered} are used"
                )


class Kept(Law):
    """Units stay booked while a launcher that was let go may run, and what ran is not given up (D8, C35)."""

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        booking = self.picture.bookings.get(decision.vmi.uid) if isinstance(decision, ENDS) else None
        if isinstance(decision, d.VmiGivenUp) and booking is not None and self._may_have_run(decision.vmi, booking):
            name = booking.pod or "a launcher of it"
            self.found.append(f"{stamp}: {decision.vmi.name} is given up, and {name} ran on {booking.node}")
        if isinstance(decision, d.SetOpened) and decision.vmi.uid not in self.picture.bookings:
            self._followed[decision.vmi.uid] = self._stands(decision.vmi)
        if not isinstance(decision, d.SetReleased):
            return
        if booking is None and self._followed.pop(decision.vmi.uid, False):
            return
        if booking is None:
            self.found.append(f"{stamp}: {decision.vmi.name} is released, and was not booked")
        elif self._runs(decision.vmi.namespace, booking):
            self.found.append(
                f"{stamp}: {decision.vmi.name} is released ({decision.reason}), and {booking.pod} may run"
            )

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._followed: dict[str, bool] = {}

    def _stands(self, vmi: d.VmiId) -> bool:
        """Say whether a launcher that we answered stands, let go: its set is said again, and is where that is (T23)."""
        pods = [pod for pod in self.picture.objects.get("pods", {}).values() if isinstance(pod, PodView)]
        answered = self.picture.admitted.get(vmi.uid, ())
        own = [pod for pod in pods if pod.owner_uid == vmi.uid and pod.launcher and pod.admission in answered]
        return any(not pod.ended and GATE not in pod.gates for pod in own)

    def _may_have_run(self, vmi: d.VmiId, booking: Booking) -> bool:
        """Say whether the launcher ran, or is not seen; under Refuse no decision names it, it is pinned when made."""
        pods = [pod for pod in self.picture.objects.get("pods", {}).values() if isinstance(pod, PodView)]
        own = [pod for pod in pods if (pod.name == booking.pod if booking.pod else pod.owner_uid == vmi.uid)]
        seen = [pod for pod in own if pod.namespace == vmi.namespace]
        return not seen or any(pod.ran for pod in seen)

    def _runs(self, namespace: str, booking: Booking) -> bool:
        pod = self.picture.pod(f"{namespace}/{booking.pod}")
        return (
            pod is not None
            and pod.uid == booking.pod_uid
            and not pod.ended
            and GATE not in pod.gates
            and not pod.temporary
        )
