"""Who has waited so long that a node is kept for it, and when that has to be looked at: derived from the state.

A VM waits since it was first told a reason, whatever the reason was; that outlives its VMIs.
"""

import heapq

from binder.records import Kept
from binder.state import GpuSet, State

PATIENCE_NS = 600 * 1_000_000_000
"""So much logical time the first in line waits before a node is kept for it; then the choice is reviewed as often."""


class Patience:
    """When which set (by uid) becomes impatient, or the choice of the node kept for it is due for a review."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[str, int] = {}
        self.due: list[tuple[int, str]] = []
        for gpu_set in state.sets.values():
            self.expect(gpu_set)
        if state.kept is not None:
            self.review(state.kept)

    def is_over(self, key: str) -> bool:
        """Say whether the VM `key` (namespace/name) has waited long enough."""
        first = self._state.first_wait.get(key)
        return first is not None and first + PATIENCE_NS <= self._state.now_ns

    def expect(self, gpu_set: GpuSet) -> None:
        """Note when a set that waits will have waited long enough."""
        at_ns, uid = self._end_of(gpu_set), gpu_set.vmi.uid
        if at_ns > self._state.now_ns and self._known.get(uid) != at_ns:
            self._known[uid] = at_ns
            heapq.heappush(self.due, (at_ns, uid))

    def review(self, kept: Kept) -> None:
        """Note when it is to be asked again which node is nearest for the one that a node is kept for."""
        if kept.node:
            rounds = (self._state.now_ns - kept.at_ns) // PATIENCE_NS + 1
            heapq.heappush(self.due, (kept.at_ns + rounds * PATIENCE_NS, kept.vmi.uid))

    def ended(self) -> list[str]:
        """Return the sets that must be looked at by now, in the order of their times."""
        if not self.due or self.due[0][0] > self._state.now_ns:
            # This is asked at every input.
            return []
        found = dict[str, bool]()
        kept, reviewed = self._state.kept, False
        while self.due and self.due[0][0] <= self._state.now_ns:
            due = heapq.heappop(self.due)
            self._known.pop(due[1], None)
            if self._stands(due):
                found[due[1]] = True
                reviewed = reviewed or self._is_review(due)
        if kept is not None and reviewed:
            self.review(kept)
        return list(found)

    def open_dues(self) -> list[tuple[int, str]]:
        """Return what is still to come, each once: the rest is left over from what was overtaken."""
        return sorted({due for due in self.due if due[0] > self._state.now_ns and self._stands(due)})

    def _stands(self, due: tuple[int, str]) -> bool:
        gpu_set = self._state.sets.get(due[1])
        return gpu_set is not None and (self._end_of(gpu_set) == due[0] or self._is_review(due))

    def _is_review(self, due: tuple[int, str]) -> bool:
        at_ns, uid = due
        kept = self._state.kept
        return kept is not None and bool(kept.node) and kept.vmi.uid == uid and not (at_ns - kept.at_ns) % PATIENCE_NS

    def _end_of(self, gpu_set: GpuSet) -> int:
        """Return when a set's patience ends, 0 where it does not wait."""
        if gpu_set.node or gpu_set.reason is None:
            return 0
        first = self._state.first_wait.get(f"{gpu_set.vmi.namespace}/{gpu_set.vmi.name}")
        return first + PATIENCE_NS if first is not None else 0
