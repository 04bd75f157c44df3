"""Machines on one clock that jumps: an event loop each, so that one can freeze or die at any await while others go on.

A lane is a whole asyncio loop without sockets and threads. The director runs what is ready on every lane in
turn; once nothing is, time jumps to the next timer. A frozen lane runs nothing, its timers included, until it
thaws, as a stopped process does; a dead one never runs again.
"""

import asyncio
import heapq
import math
import sys
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from typing_extensions import override

TURNS_AT_ONE_TIME_MAX = 20_000
"""So many turns without a step of the clock are a loop that never rests."""

DRAIN_TURNS_MAX = 10_000
GRAIN_S = 1e-9
Complaint = dict[str, Any]


class NeverRests(Exception):
    """The lanes were busy for ever at one moment."""


class Moment:
    """The time that all lanes share, in seconds from the world's beginning."""

    def __init__(self) -> None:
        self.now = 0.0


class Lane(asyncio.BaseEventLoop):
    """One machine. `complaints`: what asyncio had to report; `handled`: how many callbacks ran."""

    def __init__(self, name: str, moment: Moment) -> None:
        super().__init__()
        self.name = name
        self.frozen_until = 0.0
        self.handled = 0
        self.crash_after = 0
        self._freeze_after = 0
        self._freeze_s = 0.0
        self.dead = False
        self.complaints: list[Complaint] = []
        self.endings: deque[object] = deque(maxlen=64)
        self._moment = moment
        self._ahead = 0.0
        self._finalizer = self._finish
        self.set_exception_handler(lambda _, context: self.complaints.append(context))

    @override
    def time(self) -> float:
        return self._moment.now + self._ahead

    @override
    def run_in_executor(  # type: ignore[override]  # of any arguments, as asyncio calls it
        self,
        executor: object,
        func: Callable[..., Any],
        *args: Any,
    ) -> "asyncio.Future[Any]":
        """Do it at once: there are no threads in this world."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to who awaits
            future.set_exception(error)
        return future

    def enter(self) -> tuple[asyncio.AbstractEventLoop | None, Any]:
        """Become the running loop; return what `leave` takes."""
        before, hooks = events._get_running_loop(), sys.get_asyncgen_hooks()  # noqa: SLF001 - what a loop does
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._finalizer)
        events._set_running_loop(self)  # noqa: SLF001 - the same
        return before, hooks

    def _finish(self, agen: AsyncGenerator[Any, Any]) -> None:
        if not self.is_closed():
            self.endings.append(self.create_task(agen.aclose()))

    def _write_to_self(self) -> None:
        """Wake nobody: the director looks at every lane."""

    def freeze_after(self, turns: int, seconds: float) -> None:
        """Stand still for so long once so many more callbacks have run."""
        self._freeze_after, self._freeze_s = self.handled + turns, seconds

    def thaw(self) -> None:
        """Go on, and forget what was to come."""
        self.frozen_until, self._freeze_after, self.crash_after = 0.0, 0, 0

    def next_timer(self) -> float:
        """Return when this lane's next timer is due, infinity where it has none."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]  # asyncio's own heap
        while timers and timers[0].cancelled():
            heapq.heappop(timers)._scheduled = False  # type: ignore[attr-defined]  # as asyncio does  # noqa: SLF001 - the same
        return timers[0].when() if timers else math.inf

    def turn(self, due: float) -> bool:
        """Run what is ready by a time; False where nothing was."""
        ready = self._ready  # type: ignore[attr-defined]  # asyncio's own queue
        timers = self._scheduled  # type: ignore[attr-defined]  # asyncio's own heap
        while timers and timers[0]._when <= due:  # noqa: SLF001 - the heap's own key
            timer = heapq.heappop(timers)
            timer._scheduled = False  # noqa: SLF001 - as asyncio does
            ready.append(timer)
        if not ready:
            return False
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:  # noqa: SLF001 - what a loop looks at
                self.handled += 1
                handle._run()  # noqa: SLF001 - what a loop does
                if 0 < self._freeze_after <= self.handled:
                    self._freeze_after, self.frozen_until = 0, self._moment.now + self._freeze_s
                    return True
                if 0 < self.crash_after <= self.handled:
                    return True
        return True

    def drain(self) -> None:
        """End all tasks of a machine that died. Its doors are shut, so nobody hears of it."""
        for _ in range(DRAIN_TURNS_MAX):
            tasks = sorted(asyncio.all_tasks(self), key=lambda task: int(task.get_name().rpartition("-")[2]))
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            while self.turn(self.time() + GRAIN_S):
                pass
            due = self.next_timer()
            if not math.isinf(due):
                self._ahead = max(self._ahead, due - self._moment.now)
        self.dead = True
        self.complaints.clear()
        self.close()


@contextmanager
def running(lane: Lane) -> Iterator[None]:
    """Let a lane be the running loop."""
    before, hooks = lane.enter()
    try:
        yield
    finally:
        leave(before, hooks)


def leave(before: asyncio.AbstractEventLoop | None, hooks: Any) -> None:  # noqa: ANN401 - as `sys` gives them
    """Let the loop run again that did before."""
    events._set_running_loop(before)  # noqa: SLF001 - what a loop does
    sys.set_asyncgen_hooks(*hooks)


class Director:
    """Runs lanes. `on_crash` is told when a lane reached the await it was to die at."""

    def __init__(self) -> None:
        self.moment = Moment()
        self.lanes: list[Lane] = []
        self.on_crash: Callable[[Lane], None] = self.kill

    @property
    def now(self) -> float:
        """Seconds since the world began."""
        return self.moment.now

    def lane(self, name: str) -> Lane:
        """Add a machine."""
        lane = Lane(name, self.moment)
        self.lanes.append(lane)
        return lane

    def kill(self, lane: Lane) -> None:
        """Let a machine die where it stands."""
        if lane in self.lanes:
            self.lanes.remove(lane)
            with running(lane):
                lane.drain()

    def run_for(self, seconds: float) -> None:
        """Let so much time pass."""
        self.run_until(lambda: False, seconds)

    def run_until(self, reached: Callable[[], bool], seconds: float, *, every_s: float = math.inf) -> bool:
        """Let time pass until something is so, looked at so often at least; False where it was not in time."""
        end, look = self.now + seconds, self.now
        while True:
            if self.now >= look:
                if reached():
                    return True
                look = min(self.now + every_s, end)
            self._settle()
            due = min((self._due(lane) for lane in self.lanes), default=math.inf)
            due = min(due, look)
            if due >= end:
                self.moment.now = end
                self._settle()
                return reached()
            self.moment.now = max(self.now, due)

    def _due(self, lane: Lane) -> float:
        return lane.frozen_until if lane.frozen_until > self.now else lane.next_timer()

    def _settle(self) -> None:
        """Run what is ready everywhere until nothing is."""
        now, due = self.moment.now, self.moment.now + GRAIN_S
        for _ in range(TURNS_AT_ONE_TIME_MAX):
            busy = False
            for lane in tuple(self.lanes):
                # Asked at each turn of each lane: most have nothing to do.
                timers = lane._scheduled  # type: ignore[attr-defined]  # asyncio's own heap  # noqa: SLF001 - as above
                if not lane._ready and not (timers and timers[0]._when <= due):  # type: ignore[attr-defined]  # asyncio's own  # noqa: SLF001 - as above
                    continue
                if lane.frozen_until > now or lane.dead:
                    continue
                before, hooks = lane.enter()
                try:
                    busy |= lane.turn(due)
                finally:
                    leave(before, hooks)
                if 0 < lane.crash_after <= lane.handled:
                    lane.crash_after = 0
                    self.on_crash(lane)
            if not busy:
                return
        raise NeverRests(f"at {self.now:.3f} s, after {TURNS_AT_ONE_TIME_MAX} turns")
