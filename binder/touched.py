"""The nodes that changed since the last pass, and which of the waiting sets they can concern.

A set that waits for nodes was told its reason over all of them. Only a changed node can take it, or
change its reason: by more room, by less of what it was short of, or by anything else that is tested.
"""

from typing import Protocol

from binder.book import Book
from binder.order import DIRTY, FIRST, ON_NODES, Group, Line, short_group
from binder.state import Loosened, Touch
from binder.usage import most_free
from schemas.objects import NodeView

NODES_ONE_BY_ONE_MAX = 64
"""Where more nodes changed, they are not asked one by one: looking at all is no dearer."""

LIMIT = int(Loosened.LIMIT)
GROWN, SHRUNK, STATIC = int(Touch.GROWN), int(Touch.SHRUNK), int(Touch.STATIC)
CHANGED_SETS: tuple[Group, ...] = (DIRTY,)


class Queue(Protocol):
    """Who waits in a line, and who of them is to be looked at whatever the nodes do."""

    @property
    def line(self) -> Line:
        """Return the line as it stands."""

    def is_dirty(self, key: str, /) -> bool:
        """Say whether one of the line is to be looked at."""


class Touched:
    """What the dirty nodes of the state mean for a line, of sets or of held claims; it grows while a pass decides."""

    def __init__(self, book: Book, queue: Queue) -> None:
        self._book = book
        self._queue = queue
        self._groups: tuple[Group, ...] | None = None

    def look_again(self) -> None:
        """Forget what was found: something was placed since."""
        self._groups = None

    def among(self, uid: str) -> list[str] | None:
        """Return the only nodes that matter to one of the line, None for all of them."""
        state = self._book.state
        _, waits = self._queue.line.places.get(uid, (FIRST, ()))
        if self._queue.is_dirty(uid) or ON_NODES not in waits or len(state.dirty_nodes) > NODES_ONE_BY_ONE_MAX:
            return None
        return sorted(state.dirty_nodes)

    def groups(self) -> tuple[Group, ...]:
        """Return the groups of the line that a pass has to serve."""
        if self._groups is None:
            line, nodes = self._queue.line, self._book.state.dirty_nodes.values()
            if ON_NODES not in line.groups or not nodes:
                self._groups = CHANGED_SETS
            elif any(how & STATIC for how in nodes):
                self._groups = (DIRTY, ON_NODES)
            else:
                self._groups = (DIRTY, *self._roomy())
            self._groups += self._loosened()
        return self._groups

    def _loosened(self) -> tuple[Group, ...]:
        """Name the groups that budgets may let through: all of one that was edited, else those it has units for."""
        line, loosened = self._queue.line, self._book.state.dirty_budgets
        if not line.bounds or not loosened:
            return ()
        found: list[Group] = []
        for bound in line.bounds if len(line.bounds) < len(loosened) else loosened:
            how = loosened.get(bound, 0)
            groups = line.waiting_for(bound) if how else []
            left = self._book.budgets.left(bound) if groups else 0
            found += [group for group in groups if how & LIMIT or left is None or group[2] <= left]
        return tuple(found)

    def shrunk(self) -> list[str]:
        """Return the resources offered by nodes that have less of something now."""
        groups = self._queue.line.groups
        waiting = sorted({group[1]: True for group in groups if group == short_group(group[1])})
        if not waiting:
            return waiting
        nodes = self._nodes(SHRUNK)
        return [name for name in waiting if any(node.allocatable.get(name) for node in nodes)]

    def _roomy(self) -> list[Group]:
        """Name the groups that wait for no more units than a grown node has free."""
        rooms = [group for group in self._queue.line.groups if group[0] == "room"]
        nodes = self._nodes(GROWN) if rooms else []
        if len(nodes) > NODES_ONE_BY_ONE_MAX:
            return rooms
        free = {name: most_free(self._book.usage, nodes, name) for name in {group[1]: True for group in rooms}}
        return [group for group in rooms if group[2] <= free[group[1]]]

    def _nodes(self, how: int) -> list[NodeView]:
        state = self._book.state
        names = [name for name, touch in state.dirty_nodes.items() if how & touch]
        return [node for name in names if (node := state.node(name)) is not None]
