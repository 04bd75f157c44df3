"""Where ties are broken: the order in which sets are served, kept for those that a pass may look at (T10)."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from binder.budgets import bound_of
from binder.state import State
from binder.usage import Amounts
from schemas.decisions import Over
from schemas.objects import PodView
from schemas.reasons import Wait

Rank = tuple[int, int, str, str, str]
"""A set's place in the queue: priority class, the VM's first wait, namespace, name, uid; least is first."""

Group = tuple[str, str, int]
"""Sets that one kind of change wakes: what wakes them, a resource, a count of units."""

FIRST: Rank = (-(1 << 62), 0, "", "", "")
NEVER_WAITED = 1 << 62
"""Stands for the first wait of a VM that was never told to wait: behind all that were."""

DIRTY: Group = ("dirty", "", 0)
ENDS: Group = ("ends", "", 0)
ON_NODES: Group = ("nodes", "", 0)
BUDGET = "budget"
APART: Group = ("apart", "", 0)
AGAIN: Group = ("again", "", 0)
WAITING: Group = ("waiting", "", 0)
"""Everyone who was told to wait and would be served, whatever it waits for: a place in here is the place in line."""
PATIENT: Group = ("patient", "", 0)
"""Sets that have waited so long that a node is kept for the first of them that room alone keeps from its place."""


ON_NODES_REASONS = (
    Wait.NO_SUCH_DEVICE,
    Wait.NODE_NOT_READY,
    Wait.TAINT_NOT_TOLERATED,
    Wait.NODE_AFFINITY,
    Wait.VOLUME_ELSEWHERE,
    Wait.NO_ROOM,
    Wait.NODE_KEPT,
    Wait.NO_ROOM_OTHER,
    Wait.NODE_SKIPPED,
)
"""Reasons that a change of nodes alone can end."""

ROOM_REASONS = (Wait.NO_ROOM, Wait.NODE_KEPT, Wait.NO_ROOM_OTHER, Wait.NODE_SKIPPED)
"""Reasons that room on a node can end: a node serves the set, and is full."""


def room_group(resource: str, count: int) -> Group:
    """Name the sets that wait for this many free units."""
    return ("room", resource, count)


def short_group(resource: str) -> Group:
    """Name the sets that found units: a node that has less of something now may no more be the nearest."""
    return ("short", resource, 0)


def budget_groups(reason: Wait | None, over: Over | None) -> tuple[Group, ...]:
    """Name the group of one that waits for a budget: so many units more of one key of one namespace (B3)."""
    if reason is not Wait.OVER_BUDGET or over is None:
        return ()
    return ((BUDGET, bound_of(over.namespace, over.key), over.asked),)


def rank_of(state: State, uid: str, key: str, pod: PodView | None) -> Rank:
    """Return the place of the VMI `key` (namespace/name) with that uid and launcher."""
    namespace, _, name = key.partition("/")
    first = state.first_wait.get(key, NEVER_WAITED)
    return (-(pod.priority if pod is not None else 0), first, namespace, name, uid)


def woken_by(reason: Wait | None, asked: Amounts, own: Iterable[Amounts] = ()) -> tuple[Group, ...]:
    """Name the groups of one that waits for nodes: why, what it asks, and what it has on one node or another."""
    if reason not in ON_NODES_REASONS or not asked:
        return ()
    if reason not in ROOM_REASONS:
        return (ON_NODES,)
    resource, count = min(asked.items())
    # On the node where some of its own units are, it needs the others alone.
    room = room_group(resource, count - max((amounts.get(resource, 0) for amounts in own), default=0))
    return (ON_NODES, room) if reason is Wait.NO_ROOM else (ON_NODES, room, short_group(resource))


class Line:
    """Sets by uid in the groups that can wake them, each group in the order of ranks.

    `bounds`: the groups that wait for budgets, by namespace and key (`budgets.bound_of`) and by units asked.
    """

    def __init__(self) -> None:
        self.groups: dict[Group, list[Rank]] = {}
        self.places: dict[str, tuple[Rank, tuple[Group, ...]]] = {}
        self.bounds: dict[str, dict[int, Group]] = {}

    def put(self, uid: str, rank: Rank, groups: tuple[Group, ...]) -> None:
        """Let a set stand in these groups alone; in none, it is forgotten."""
        if self.places.get(uid) == (rank, groups):
            return
        self.drop(uid)
        if groups:
            self.places[uid] = (rank, groups)
        for group in groups:
            insort(self.groups.setdefault(group, []), rank)
            if group[0] == BUDGET:
                self.bounds.setdefault(group[1], {})[group[2]] = group

    def drop(self, uid: str) -> None:
        """Take a set out of the line."""
        rank, groups = self.places.pop(uid, (FIRST, ()))
        for group in groups:
            ranks = self.groups[group]
            del ranks[bisect_left(ranks, rank)]
            if not ranks:
                del self.groups[group]
                if group[0] == BUDGET:
                    del self.bounds[group[1]][group[2]]
                    if not self.bounds[group[1]]:
                        del self.bounds[group[1]]

    def place(self, uid: str) -> int:
        """Return the position from 1 of one among those who wait, 0 where it does not."""
        rank, groups = self.places.get(uid, (FIRST, ()))
        return bisect_left(self.groups[WAITING], rank) + 1 if WAITING in groups else 0

    def after(self, group: Group, rank: Rank) -> Rank | None:
        """Return the next one of a group behind `rank`."""
        ranks = self.groups.get(group)
        if ranks is None:
            return None
        place = bisect_right(ranks, rank)
        return ranks[place] if place < len(ranks) else None

    def waiting_for(self, bound: str) -> list[Group]:
        """Return the groups that wait for one key of one namespace's budgets, least asked first."""
        return [group for _, group in sorted(self.bounds.get(bound, {}).items())]

    def members(self, group: Group) -> list[str]:
        """Return the uids of a group in their order."""
        return [rank[-1] for rank in self.groups.get(group, ())]

    def first(self, count: int) -> list[str]:
        """Return the uids of those who wait longest in line, in their order, this many at most."""
        return [rank[-1] for rank in self.groups.get(WAITING, ())[:count]]
