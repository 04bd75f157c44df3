"""The log proves itself: chain, inputs, decisions made anew, and the state that was lived."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from typing_extensions import override

from binder.anchor import Anchor
from binder.audit import Auditor
from binder.invariants import check
from binder.snapshot import state_digest
from binder.snapshots import StateSnapshots
from binder.state import State
from binder.tip import START, Tip
from tests.simulation.labels import SYSTEM
from tests.simulation.laws.law import Law
from tests.simulation.processes import PROGRAM

T = TypeVar("T")
AUDIT_MAX_S = 60.0
"""An audit waits a moment before it says that something is lost; else it reads what stands at once."""


class Promises(Law):
    """The state of every binder keeps its promises, indexes included."""

    @override
    def step(self) -> Iterator[str]:
        for process in self.world.processes.values():
            follower = process.binder.follower if process.binder is not None else None
            if follower is not None:
                yield from (f"{process.name}: {said}" for said in check(follower.book))


class Proven(Law):
    """At rest the log is whole, and folding it gives the very state that every binder lives in (T1, T4, T10)."""

    @override
    def rest(self) -> Iterator[str]:
        anchor = self.now(Anchor(self.world.cluster.api, SYSTEM).read)
        whole, digest = self.audited(None, START, anchor)
        yield from whole
        snapshots = StateSnapshots(self.world.journal, PROGRAM)
        kept = self.now(snapshots.newest)
        if kept is not None:
            whole, later = self.audited(*kept, anchor)
            yield from (f"from a snapshot: {said}" for said in whole)
            if later != digest:
                yield "going on from a snapshot gives another state"
        for process in self.world.processes.values():
            follower = process.binder.follower if process.binder is not None else None
            if process.role == "binder" and (follower is None or state_digest(follower.book.state) != digest):
                yield f"{process.name} lives in another state than the log tells"

    def audited(self, state: State | None, tip: Tip, anchor: Tip | None) -> tuple[list[str], str]:
        """Return what an audit finds, and the digest of the state it comes to."""
        auditor = Auditor(self.world.journal, state, tip)
        report = self.now(lambda: auditor.verify(anchor))
        found = [] if report.whole else [f"{report.finding}{report.difference or ''}"]
        if report.uncovered:
            found.append(f"{report.uncovered} inputs are not decided on")
        if not report.anchored:
            found.append("the log is not anchored")
        return found, state_digest(auditor.follower.book.state)

    def now(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what a call gives that needs hardly any time to pass."""
        director = self.world.director
        lane = director.lane("auditor")

        async def called() -> T:
            return await call()

        task = lane.create_task(called())
        if not director.run_until(task.done, 0.0):
            director.run_until(task.done, AUDIT_MAX_S, every_s=0.5)
        assert task.done(), "an audit of what stands must come to its end"
        director.kill(lane)
        return task.result()
