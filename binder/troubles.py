"""What is wrong with a node for what is booked on it, and since when: a dip is borne, what lasts is acted on.

A node is gone, not ready, has a hard taint that a booked class does not tolerate, or offers fewer units
than are used. Kept for nodes with bookings alone; `binder.keeping` says what follows once a grace is over.
"""

import heapq
from collections.abc import Iterable, Iterator

from binder.members import Members
from binder.rules.serving import HARD_EFFECTS, tolerates
from binder.state import GpuSet, Holding, State, Touch
from binder.usage import Usage, claims_of
from schemas.objects import AnyView, NodeView, Taint

SECOND = 1_000_000_000
GONE_NS = 60 * SECOND
"""For so much logical time a node may be gone before its bookings are: it may be registered anew at once (C44)."""

GRACE_NS = 300 * SECOND
"""For so much logical time anything else may be wrong: plugins restart and show zero meanwhile, nodes reboot (C16)."""

GONE, NOT_READY, TAINT, SHORT = "gone", "not-ready:", "taint:", "short:"
UNREADY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""What Kubernetes taints a node with that is not ready: while it is, they say nothing more."""

OVERDUE = int(Touch.OVERDUE)


def end_of_grace(word: str, since_ns: int) -> int:
    """Return the logical time at which a trouble is borne no longer."""
    return since_ns + (GONE_NS if word == GONE else GRACE_NS)


def overdue(state: State, node: str) -> list[str]:
    """Return what has been wrong with a node for longer than it is borne, in the order of the words."""
    words = state.troubles.get(node)
    if not words:
        return []
    return sorted(word for word, since_ns in words.items() if end_of_grace(word, since_ns) <= state.now_ns)


def taint_word(taint: Taint) -> str:
    """Return how a taint is named among troubles."""
    return f"{TAINT}{taint.key}={taint.value}:{taint.effect}"


def short_of(word: str) -> tuple[str, int]:
    """Return the resource that a node is short of, and how many units are missing; ('', 0) for another trouble."""
    resource, _, missing = word.removeprefix(SHORT).rpartition("=") if word.startswith(SHORT) else ("", "", "0")
    return resource, int(missing)


def _since(known: dict[str, int], word: str, now_ns: int) -> int:
    """Return since when a trouble lasts; of units that are missing, since no fewer are."""
    resource, missing = short_of(word)
    if not resource:
        return known.get(word, now_ns)
    before = ((short_of(one), since_ns) for one, since_ns in known.items())
    return next((since_ns for short, since_ns in before if short[0] == resource and short[1] >= missing), now_ns)


def is_borne(state: State, taint: Taint, classes: Iterable[str]) -> bool:
    """Say whether each of these classes tolerates a taint by itself; of one that is not there, nothing is known."""
    known = (state.gpu_class(name) for name in classes)
    return all(tolerates(view.tolerations, taint) for view in known if view is not None)


class Troubles:
    """The state's troubles with their indexes: what is booked on which node, and when which grace is over.

    `sets`, `holdings`: uids and keys by node; `ready`: the nodes that are, by each resource they offer. While it is
    `derived` from a state, nothing is noted anew.
    """

    def __init__(self, state: State, usage: Usage) -> None:
        self._state, self._usage = state, usage
        self.sets, self.holdings, self.ready = Members(), Members(), Members()
        self.due: list[tuple[int, str]] = []
        self.derived = False

    def begin(self) -> None:
        """Go on from the state as it stands: what is overdue by now has been acted on."""
        self.derived = True
        for name, words in self._state.troubles.items():
            for word, since_ns in words.items():
                self._await(name, end_of_grace(word, since_ns))

    def index_set(self, uid: str, before: GpuSet | None, after: GpuSet | None) -> None:
        """Keep where a set is booked; `settle` follows once its share is counted."""
        _move(self.sets, uid, before.node if before else "", after.node if after else "")

    def index_holding(self, key: str, before: Holding | None, after: Holding | None) -> None:
        """Keep where a holding's units are; `settle` follows once its share is counted."""
        _move(self.holdings, key, before.node if before else "", after.node if after else "")

    def settle(self, before: GpuSet | Holding | None, after: GpuSet | Holding | None) -> None:
        """Look at the nodes of a booking that came, went, or asks for something else now."""
        for name in {side.node: True for side in (before, after) if side is not None}:
            self.refresh(name)

    def node_changed(self, name: str, before: AnyView | None, after: AnyView | None) -> None:
        """Look at a node that came, changed or went; another machine of the same name has its own time (C44)."""
        if before is not None and after is not None and before.uid != after.uid and self.derived:
            self._state.troubles.pop(name, None)
        turned = self._follow_ready(name, before, after)
        self.refresh(name)
        for other in {**self.sets.table(), **self.holdings.table()} if turned and self.derived else ():
            node = self._usage.node(other)
            if node is not None and not node.ready:
                self.refresh(other)

    def _follow_ready(self, name: str, before: AnyView | None, after: AnyView | None) -> bool:
        """Keep who is ready and offers what; say whether of anything the first one came, or the last one went."""
        was, now = _offered(before), _offered(after)
        turned = False
        for resource in was:
            if resource not in now:
                self.ready.drop(resource, name)
                turned = turned or not self.ready.count(resource)
        for resource in now:
            if resource not in was:
                turned = turned or not self.ready.count(resource)
                self.ready.add(resource, name)
        return turned

    def classes_changed(self) -> None:
        """Look at every node with bookings: what its classes tolerate may differ."""
        for name in {**self.sets.table(), **self.holdings.table()}:
            self.refresh(name)

    def refresh(self, name: str) -> None:
        """Note what is wrong with a node now; each trouble keeps the time since which it has lasted."""
        if not self.derived or not name:
            return
        known = self._state.troubles.get(name)
        words = list(self.words(name))
        if not words:
            if known is not None:
                del self._state.troubles[name]
            return
        now_ns = self._state.now_ns
        since = {word: _since(known or {}, word, now_ns) for word in words}
        for word, since_ns in since.items() if since != known else ():
            self._await(name, end_of_grace(word, since_ns))
        self._state.troubles[name] = since
        self.look(name)

    def look(self, name: str) -> None:
        """Mark a node for the next pass, if it can't keep what is booked on it."""
        if name in self._state.troubles and overdue(self._state, name):
            self._state.dirty_nodes[name] = self._state.dirty_nodes.get(name, 0) | OVERDUE

    def look_everywhere(self) -> None:
        """Mark every node that can't keep what is booked on it: acting on it was paused."""
        for name in self._state.troubles:
            self.look(name)

    def wake(self) -> None:
        """Mark the nodes whose grace is over by now."""
        while self.due and self.due[0][0] <= self._state.now_ns:
            due = heapq.heappop(self.due)
            if self._stands(due):
                self.look(due[1])

    def words(self, name: str) -> Iterator[str]:
        """Tell what is wrong with a node for what is booked on it, from the tables as they stand."""
        state, uids, keys = self._state, self.sets.of(name), self.holdings.of(name)
        if not uids and not keys:
            return
        node = self._usage.node(name)
        if node is None:
            yield GONE
            return
        hard = [taint for taint in node.taints if taint.effect in HARD_EFFECTS]
        if not node.ready:
            hard = [taint for taint in hard if taint.key not in UNREADY_TAINTS]
        overused = self._usage.overused(node)
        if node.ready and not hard and not overused:
            # Nearly always; what is booked on the node need not be gone through.
            return
        booked = [claim for uid in uids for claim in claims_of(state.sets[uid])]
        booked += [state.holdings[key].claim for key in keys]
        classes, resources = {claim.class_name: True for claim in booked}, {claim.resource: True for claim in booked}
        if not node.ready:
            # Where nobody else who offers a resource is ready, it is more likely that nodes can't be heard.
            yield from (f"{NOT_READY}{resource}" for resource in sorted(resources) if self.ready.count(resource))
        yield from sorted(dict.fromkeys(taint_word(one) for one in hard if not is_borne(state, one, classes)))
        yield from (f"{SHORT}{resource}={overused[resource]}" for resource in sorted(resources) if resource in overused)

    def open_dues(self) -> list[tuple[int, str]]:
        """Return the ends of graces that are still to come, each once."""
        now_ns = self._state.now_ns
        return sorted({due for due in self.due if due[0] > now_ns and self._stands(due)})

    def _stands(self, due: tuple[int, str]) -> bool:
        words = self._state.troubles.get(due[1], {})
        return any(end_of_grace(word, since_ns) == due[0] for word, since_ns in words.items())

    def _await(self, name: str, at_ns: int) -> None:
        if at_ns > self._state.now_ns:
            heapq.heappush(self.due, (at_ns, name))


def _offered(view: AnyView | None) -> dict[str, bool]:
    """Return what a node offers that is ready."""
    if not isinstance(view, NodeView) or not view.ready:
        return {}
    return {resource: True for resource, amount in view.allocatable.items() if amount > 0}


def _move(members: Members, member: str, before: str, after: str) -> None:
    if before == after:
        return
    if before:
        members.drop(before, member)
    if after:
        members.add(after, member)
