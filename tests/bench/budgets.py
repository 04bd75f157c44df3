"""Budgets alone: what an input costs among a thousand tenants, and what it costs to free a unit that many wait for.

`python -m tests.bench.budgets` prints a table. A cluster is filled with orders; then orders are given back and
others placed, each change a message of its own. Tenants stand four levels deep, each with a budget of its own.
"""

import asyncio
import gc
import statistics
import sys
from collections.abc import Callable

from msgspec.structs import replace
from rich.console import Console

from schemas import decisions as d
from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL, CLASS_FINALIZER, TENANT_ROOT
from schemas.objects import BudgetView, ClaimView, ClassView, NodeView
from tests.bench.figures import Figure, beside, table
from tests.bench.heart import RESOURCE
from tests.bench.timing import Timed
from tests.binder.scene import Decisions, Scene

UNITS = 16
SMALL, LARGE = (10, 100), (1_000, 50_000)
WAITING = (100, 1_000)
CHANGES = 400
FREED = 20
CLASS_KEY = f"{BUDGET_CLASS_PREFIX}l40s"


def tenants(count: int) -> list[str]:
    """Return so many tenants, four levels deep below the root: each with up to ten children, the upper ones first."""
    names, level = list[str](), ["tenant"]
    while len(names) < count:
        level = [f"{above}-{chr(97 + number)}" for above in level for number in range(10)]
        names += level
        if level[0].count("-") == 4:
            break
    return names[:count]


class Orders:
    """A cluster full of orders of one unit each. `budgets`: whether tenants have any, of as much as they hold."""

    def __init__(self, count: int, claims: int, *, budgets: bool = True) -> None:
        self.scene = scene = Scene(synced=False, lawful=False)
        self.tenants = tenants(count)
        self.names = iter(range(10_000_000))
        scene.newer(ClassView("l40s", "", "", resource=RESOURCE, finalizers=(CLASS_FINALIZER,)))
        for number in range(claims // UNITS + 4):
            scene.newer(NodeView(f"node-{number}", "", "", ready=True, allocatable={RESOURCE: UNITS}))
        self.live = [self._claim(self.tenants[number % count]) for number in range(claims)]
        for tenant in [TENANT_ROOT, *self.tenants] if budgets else ():
            hard = {CLASS_KEY: claims + UNITS, BUDGET_TOTAL: claims + UNITS}
            scene.newer(BudgetView("b", "", "", tenant, hard=hard))
        for kind in scene.objects:
            scene.relist(kind)
        scene.settled()
        assert sum(bool(one.node) for one in scene.book.state.holdings.values()) == claims

    def _claim(self, tenant: str) -> ClaimView:
        name = f"claim-{next(self.names)}"
        return self.scene.newer(ClaimView(name, f"uid-{name}", "", tenant, class_name="l40s"))

    def order(self, tenant: str) -> Decisions:
        """Order a unit."""
        claim = self._claim(tenant)
        self.live.append(claim)
        return self.scene.watch("gpuclaims", [claim])

    def give_back(self, claim: ClaimView) -> Decisions:
        """Delete an order; return what that led to."""
        told = self.scene.show(replace(claim, deleting=True))
        return told + self.scene.remove("gpuclaims", claim.key)


def change(orders: Orders) -> float:
    """Return the microseconds of one input, orders being given back and others placed."""
    timed = Timed(orders.scene)
    for number in range(CHANGES):
        claim = orders.live[number]
        orders.give_back(claim)
        said = orders.order(orders.tenants[-1 - number % len(orders.tenants)])
        assert any(isinstance(one, d.HeldPlaced) for one in said)
    return 1e6 * statistics.median(timed.seconds)


def freed(waiting: int) -> float:
    """Return the microseconds of the input that frees a unit of the root's budget, which so many orders wait for."""
    orders = Orders(100, 1_000)
    scene = orders.scene
    scene.show(BudgetView("b", "", "", TENANT_ROOT, hard={BUDGET_TOTAL: 1_000}))
    for number in range(waiting):
        orders.order(orders.tenants[number % 100])
    took = []
    for claim in orders.live[:FREED]:
        timed = Timed(scene)
        said = orders.give_back(claim)
        assert sum(isinstance(one, d.HeldPlaced) for one in said) == 1
        took.append(max(timed.seconds))
    return 1e6 * statistics.median(took)


async def measure(_: object, say: Callable[[str], None]) -> list[Figure]:
    """Measure an input of budgets among few and many tenants, and a unit freed for few and many who wait."""
    say("filling clusters with orders")
    small, large, free = Orders(*SMALL), Orders(*LARGE), Orders(*LARGE, budgets=False)
    gc.collect()
    gc.freeze()
    say("giving back and ordering")
    few, many = WAITING
    (count, claims), large_us = LARGE, change(large)
    return [
        beside(
            f"an order among {count:,} tenants, {claims:,} claims, of {SMALL[0]} and {SMALL[1]}",
            large_us, "us/input", change(small),
        ),
        beside("the same, of no budgets", large_us, "us/input", change(free)),
        beside(f"a unit freed, {many:,} wait for the root's budget, of {few}", freed(many), "us", freed(few)),
    ]  # fmt: skip


def main() -> int:
    """Print the table."""
    console = Console()
    console.print(table(asyncio.run(measure(None, console.print))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
