"""The ledger alone: filling a cluster, refusing what can't fit, leaving a node, giving out what became free.

`python -m tests.bench.ledger` prints a table. Each figure stands beside the same in a cluster of a tenth, or with
a tenth waiting: what one input costs is to stay with what it touches.
"""

import asyncio
import gc
import statistics
import sys
from collections.abc import Callable, Iterable

from msgspec.structs import replace
from rich.console import Console

from binder.evolve import SETS_PER_INPUT_MAX
from schemas import decisions as d
from schemas.events import Continue
from schemas.objects import ClaimView, ClassView, NodeView, Taint
from schemas.reasons import Placing, Wait
from tests.bench.figures import Figure, beside, table
from tests.bench.heart import NAMESPACE, RESOURCE, Cluster
from tests.bench.timing import Timed

UNITS = 8
SMALL, LARGE = (50, 400), (500, 4_000)
WAITING = (100, 1_000)
HUGE = 80
GRACE_S, TICK_S = 300, 30
ROUNDS = 20


class Filling:
    """VMs that start one after the other until a cluster is full."""

    def __init__(self, nodes: int, vms: int) -> None:
        self.cluster = Cluster(nodes, 0, units=UNITS)
        self.timed = Timed(self.cluster.scene)
        for _ in range(vms):
            self.cluster.start()
        placed = [gpu_set.node for gpu_set in self.cluster.scene.book.state.sets.values()]
        assert len(placed) == vms
        assert all(placed)

    def tenth(self, which: int) -> float:
        """Return the microseconds of one input, the median of the `which`-th tenth (0 to 9)."""
        length = len(self.timed.seconds) // 10
        return 1e6 * statistics.median(self.timed.seconds[which * length : (which + 1) * length])


def verdict(full: Cluster) -> float:
    """Return the microseconds from the listing of a launcher that fits nowhere to the reason it is told."""
    took = []
    # Two classes of one resource: an entry asks for 64 units at most.
    full.scene.show(ClassView("l40s-too", "", "", resource=RESOURCE))
    entries = f'[{{"className":"l40s","count":64}},{{"className":"l40s-too","count":{HUGE - 64}}}]'
    for _ in range(ROUNDS):
        timed = Timed(full.scene)
        vmi = full.start(entries, HUGE)
        assert full.scene.book.state.sets[vmi.uid].reason is Wait.NO_SUCH_DEVICE
        took.append(timed.seconds[-1])
        full.stop(vmi.name)
    return 1e6 * statistics.median(took)


def drain(nodes: int) -> float:
    """Return the microseconds of the input that moves the eight held claims of a tainted node to another one."""
    cluster = Cluster(nodes, 0, units=UNITS)
    scene = cluster.scene
    for number in range(UNITS * (nodes - 1)):
        scene.show(ClaimView(f"held-{number}", "", "", NAMESPACE, class_name="l40s", created=number + 1))
    took = []
    for _ in range(ROUNDS):
        name = scene.book.state.holdings[f"{NAMESPACE}/held-0"].node
        node = scene.objects["nodes"][name]
        assert isinstance(node, NodeView)
        scene.show(replace(node, taints=(Taint("maintenance", "", "NoSchedule"),)))
        for _ in range(GRACE_S // TICK_S - 1):
            scene.tick(TICK_S)
        timed = Timed(scene)
        moved = scene.tick(TICK_S)
        assert sum(isinstance(one, d.HeldPlaced) and one.why is Placing.MOVED for one in moved) == UNITS
        took.append(timed.seconds[-1])
        scene.show(replace(node, taints=()))
    return 1e6 * statistics.median(took)


def one_freed(waiting: int) -> float:
    """Return the microseconds of the input that frees a unit, and gives it to the first of those who wait."""
    full = Cluster(*LARGE, waiting=waiting, units=UNITS)
    took = []
    for name in full.running[:ROUNDS]:
        timed = Timed(full.scene)
        full.stop(name)
        took.append(max(timed.seconds))
    return 1e6 * statistics.median(took)


def all_freed(waiting: int) -> float:
    """Return the microseconds for each set, when a class's units come back for all who wait for them."""
    cluster = Cluster(waiting // UNITS + 1, 0, units=UNITS)
    scene = cluster.scene
    nodes = [node for node in scene.objects["nodes"].values() if isinstance(node, NodeView)]
    scene.show(*(replace(node, allocatable={**node.allocatable, RESOURCE: 0}) for node in nodes))
    for _ in range(waiting):
        cluster.start()
    timed = Timed(scene)
    placed = _placed(scene.show(*nodes))
    while len(timed.told) and placed < waiting:
        placed += _placed(scene.send(Continue()))
        assert len(timed.told[-1]) <= 3 * SETS_PER_INPUT_MAX
    return 1e6 * sum(timed.seconds) / waiting


def _placed(decided: Iterable[d.Decision]) -> int:
    return sum(isinstance(one, d.SetPlaced) for one in decided)


async def measure(_: object, say: Callable[[str], None]) -> list[Figure]:
    """Measure the ledger's big inputs, each beside a cluster or a queue of a tenth."""
    say("filling clusters")
    small, large = Filling(*SMALL), Filling(*LARGE)
    gc.collect()
    gc.freeze()
    say("asking for what can't be, draining, freeing")
    few, many = WAITING
    return [
        beside(
            "fill 500 nodes x 8 with 4,000 VMs: last tenth, of the first", large.tenth(9), "us/input", large.tenth(0)
        ),
        beside("the same, last tenth, of 50 nodes and 400 VMs", large.tenth(9), "us/input", small.tenth(9)),
        Figure("the same, altogether", sum(large.timed.seconds), "s"),
        beside(f"verdict on a set of {HUGE} units, of a tenth", verdict(large.cluster), "us", verdict(small.cluster)),
        beside("eight held claims leave a tainted node of 500, of a tenth", drain(LARGE[0]), "us", drain(SMALL[0])),
        beside(f"a unit freed, {many:,} sets wait, of {few}", one_freed(many), "us", one_freed(few)),
        beside(f"a class back for {many:,} who wait, of {few}", all_freed(many), "us/set", all_freed(few)),
    ]


def main() -> int:
    """Print the table."""
    console = Console()
    console.print(table(asyncio.run(measure(None, console.print))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
