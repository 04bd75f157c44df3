"""What can go wrong with nodes for a while, and what an operator does about bookings, told by numbers."""

from msgspec.structs import replace

from schemas import events as e
from schemas.objects import NodeView, PodView, Taint
from schemas.reasons import Order
from tests.binder.claim_acts import ClaimActs
from tests.binder.cluster_acts import NAMESPACES, RESOURCES

DEAD = Taint("dead", "", "NoExecute")


class NodeActs(ClaimActs):
    """Acts on nodes that hold something, and on bookings."""

    def _trouble(self, a: int, b: int, c: int, d: int) -> None:
        """Something goes wrong with a node that holds something; time passes, and mostly it is over then."""
        state = self.scene.book.state
        booked = [one.node for one in state.sets.values()] + [one.node for one in state.holdings.values()]
        names = sorted({name: True for name in booked if name})
        view = self.scene.objects["nodes"].get(names[a % len(names)]) if names else None
        if not isinstance(view, NodeView):
            return
        offers = view.allocatable
        half = {name: amount // 2 if name in RESOURCES else amount for name, amount in offers.items()}
        one_kind = {name: amount for name, amount in offers.items() if name != RESOURCES[d % 2]}
        match b % 6:
            case 0:
                self.scene.remove("nodes", view.key)
            case 1:
                self.scene.show(replace(view, ready=False))
            case 2:
                self.scene.show(replace(view, taints=(*view.taints, DEAD)))
            case 3:
                self.scene.show(replace(view, allocatable=half))
            case 4:
                self.scene.show(replace(view, allocatable=one_kind))
            case _:
                raw = {RESOURCES[d % 2]: 1}
                self.scene.show(PodView(f"raw{d % 3}", "", "", "kube-system", node=view.name, requests=raw))
        for _halfminute in range(c % 14):
            self.scene.tick(30)
        if d % 3 == 0:
            self.scene.show(replace(view, uid=f"again{self.count}" if d % 2 else view.uid))

    def _runs(self, a: int, *_: int) -> None:
        """A launcher's containers are started."""
        pod = self._pinned(a, node=True)
        if pod is not None:
            self.scene.show(replace(pod, phase="Running", ran=True))

    def _by_hand(self, a: int, b: int, c: int, d: int) -> None:
        """An operator moves or releases something."""
        order = (Order.MOVE, Order.RELEASE)[a % 2]
        known = [key for key, one in sorted(self.scene.book.state.holdings.items()) if one.node]
        known += [f"{one.vmi.namespace}/{one.vmi.name}" for _, one in sorted(self.scene.book.state.sets.items())]
        key = known[c % len(known)] if known and b % 8 else f"{NAMESPACES[0]}/nobody"
        namespace, name = key.split("/")
        self.scene.send(e.Command(order, "ops", namespace, name, f"n{d % 3}" if d % 2 else ""))
