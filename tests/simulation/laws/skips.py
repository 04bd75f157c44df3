"""A node that refused a launcher is left alone by its VM for a while, also by the next VMI (D7, C13, C14, C41)."""

from typing_extensions import override

from binder.skips import HOLD_NS_FIRST, SKIP_NS
from schemas import decisions as d
from schemas.objects import Stamp
from schemas.reasons import Order
from tests.simulation.laws.law import Law
from tests.simulation.picture import Picture
from tests.simulation.world import World

REFUSALS_MAX = 6
"""So many launchers of a VM may a node refuse within ten minutes, however it flaps (C41)."""

Pair = tuple[str, str]
"""A VM, namespace/name, and a node."""


class Spared(Law):
    """A launcher goes to a node that refused one of its VM only after ten minutes, or after a change of the node."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._refused: dict[Pair, list[tuple[int, int]]] = {}

    @override
    def anew(self) -> None:
        self._refused.clear()

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        match decision:
            case d.NodeSkipped():
                self._skipped(stamp, _pair(decision.vmi, decision.node))
            case d.SetPlaced():
                self._placed(stamp, _pair(decision.vmi, decision.node))
            case d.SetReleased():
                booking = self.picture.bookings.get(decision.vmi.uid)
                pod = self.picture.pod(f"{decision.vmi.namespace}/{booking.pod}") if booking is not None else None
                if pod is None or pod.ran:
                    # It ran there, or may have: what the node refused before is forgiven.
                    self._refused.pop(_pair(decision.vmi, decision.node), None)
            case d.Commanded(order=Order.UNSKIP):
                self._refused = {pair: when for pair, when in self._refused.items() if not _is_meant(pair, decision)}
            case _:
                pass

    def _skipped(self, stamp: Stamp, pair: Pair) -> None:
        when = self._refused.setdefault(pair, [])
        when.append((self.picture.now_ns, self.picture.sequence))
        if len([at_ns for at_ns, _ in when if at_ns > self.picture.now_ns - SKIP_NS]) > REFUSALS_MAX:
            self.found.append(f"{stamp}: {pair[1]} refused more than {REFUSALS_MAX} launchers of {pair[0]}")

    def _placed(self, stamp: Stamp, pair: Pair) -> None:
        when = self._refused.get(pair)
        if not when:
            return
        at_ns, sequence = when[-1]
        waited_ns = self.picture.now_ns - at_ns
        changed = self.picture.changed.get(pair[1], 0) > sequence
        if waited_ns < SKIP_NS and not changed:
            self.found.append(f"{stamp}: {pair[0]} goes to {pair[1]} again {waited_ns} ns after it was refused there")
        if waited_ns < HOLD_NS_FIRST and len(when) > 1 and at_ns - when[-2][0] < SKIP_NS:
            self.found.append(f"{stamp}: {pair[0]} goes to {pair[1]} {waited_ns} ns after its second refusal in a row")


def _pair(vmi: d.VmiId, node: str) -> Pair:
    return f"{vmi.namespace}/{vmi.name}", node


def _is_meant(pair: Pair, command: d.Commanded) -> bool:
    """Say whether a command to end skips means this VM and node; an empty node means all."""
    return pair[0] == f"{command.namespace}/{command.name}" and command.node in {"", pair[1]}
