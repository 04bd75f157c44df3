"""At rest every ordered claim that fits somewhere has its units, with all that it goes together with (D6)."""

from collections.abc import Iterator

from typing_extensions import override

from deploy.world.manifests import deleting, meta
from schemas.kinds import GPU_CLAIM, POD, VMI
from tests.simulation.held import Held
from tests.simulation.laws.budgets import Affords
from tests.simulation.laws.holdings import groups
from tests.simulation.laws.law import Law
from tests.simulation.laws.rooms import Rooms
from tests.simulation.picture import Picture
from tests.simulation.world import World


class Ordered(Law):
    """Held claims wait only where no node takes all that go together; what a launcher waits with is its VM's affair."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._rooms = Rooms(world, picture)
        self._affords = Affords(picture)

    @override
    def pending(self) -> Iterator[str]:
        for group, held in groups(self).items():
            waiting = [one for one in held if not one.node]
            if not waiting or self._goes_with_launcher(group, held) or self._is_going(held):
                continue
            if not self._affords.held(held):
                continue
            nodes = [meta(node)["name"] for node in self._rooms.nodes() if self._rooms.takes(node, held)]
            nodes = [name for name in nodes if name != self.picture.kept]
            if nodes:
                yield f"claims {', '.join(one.key for one in waiting)} have no node, and fit on {', '.join(nodes)}"

    def _goes_with_launcher(self, group: str, held: list[Held]) -> bool:
        """Say whether a VMI uses the claims, or waits for them with a launcher of its own."""
        vmi = self.world.cluster.find(VMI, group)
        if any(one.attached for one in held):
            return True
        return vmi is not None and any(
            owner["uid"] == meta(vmi)["uid"]
            for pod in self.world.cluster.objects(POD)
            for owner in meta(pod).get("ownerReferences") or ()
        )

    def _is_going(self, held: list[Held]) -> bool:
        found = [self.world.cluster.find(GPU_CLAIM, one.key) for one in held]
        return any(claim is None or deleting(claim) for claim in found)
