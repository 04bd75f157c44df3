"""A burst: 300 VMs at once on 50 nodes, from the first VMI to the last bound launcher.

Beside it, in turns, the same VMs with a straight loop in the program's place (the limit: the same writes,
nothing else), and without any gate (kube-scheduler alone). Each figure is the median of the rounds.
KubeVirt's part is its least (`tests.bench.starts`); `measure_emulated` has all of it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from tests.bench.figures import Figure, beside, median
from tests.bench.ground import CLASS, Ground, Say, bystanders, program
from tests.bench.observer import Sight, observing
from tests.bench.starts import Starts
from tests.bench.straight_loop import straight_loop
from tests.e2e.stack import Stack

VMS, NODES, UNITS = 300, 50, 8
ROUNDS = 3
SECONDS = 600.0
UNIT = "pods/s"

Start = Callable[[str], Coroutine[None, None, None]]


async def measure(here: Ground, say: Say) -> list[Figure]:
    """Run the rounds in turns and return the figures."""
    ours, limit, plain = [], [], []
    for number in range(1, ROUNDS + 1):
        ours.append(await with_program(here))
        limit.append(await with_loop(here))
        plain.append(await scheduler_alone(here))
        said = f"the program {ours[-1]:.1f}, straight loop {limit[-1]:.1f}, kube-scheduler alone {plain[-1]:.1f} {UNIT}"
        say(f"round {number} of {ROUNDS}: {said}")
    rate = median(ours)
    head = f"burst of {VMS} VMs on {NODES} nodes"
    return [
        beside(f"{head}, beside the straight loop", rate, UNIT, median(limit)),
        beside(f"{head}, beside kube-scheduler alone", rate, UNIT, median(plain)),
        Figure(f"{head}: straight loop, the same writes", median(limit), UNIT),
        Figure(f"{head}: kube-scheduler alone, ungated", median(plain), UNIT),
    ]


async def measure_emulated(here: Ground, say: Say) -> list[Figure]:
    """Run one round with the whole emulated KubeVirt, whose writes are then most of the work."""
    ours = await with_program(here, bare=False)
    say(f"the program {ours:.1f} {UNIT}")
    limit = await with_loop(here, bare=False)
    head = f"burst of {VMS} VMs, all of KubeVirt emulated"
    return [
        beside(f"{head}, beside the straight loop", ours, UNIT, limit),
        Figure(f"{head}: straight loop, the same writes", limit, UNIT),
    ]


async def with_program(here: Ground, *, bare: bool = True, cluster: bool = False) -> float:
    """Return launchers a second that the program has bound. `cluster`: on three NATS servers."""
    async with program(here, NODES, UNITS, bare=bare, cluster=cluster) as ready, _starting(ready, bare=bare) as start:
        return await _burst(here, ready, start)


async def with_loop(here: Ground, *, bare: bool = True) -> float:
    """Return launchers a second with the straight loop in the program's place."""
    async with (
        bystanders(here, NODES, UNITS, bare=bare) as there,
        straight_loop(here, there, UNITS),
        _starting(there.stack, bare=bare) as start,
    ):
        return await _burst(here, there.stack, start)


async def scheduler_alone(here: Ground) -> float:
    """Return launchers a second that nothing holds back."""
    async with bystanders(here, NODES, UNITS) as there, Starts(here.plane, there.stack.tenant) as starts:
        return await _burst(here, there.stack, lambda name: starts.start(name, plain=True))


@asynccontextmanager
async def _starting(ready: Stack, *, bare: bool) -> AsyncIterator[Start]:
    if bare:
        async with Starts(ready.plane, ready.tenant) as starts:
            yield starts.start
    else:
        yield lambda name: ready.vm(name, [(CLASS, 1)])


async def _burst(here: Ground, ready: Stack, start: Start) -> float:
    """Start the VMs at once and return how many launchers were bound in each second of it."""
    names = [f"vm-{number:03}" for number in range(VMS)]
    async with observing(here.plane.kubeconfig(), ready.tenant) as observer, asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(start(name))
        try:
            return rate(await observer.bound(VMS, SECONDS))
        except TimeoutError as late:
            raise TimeoutError(f"{late}\n{ready.processes.tails()}") from None


def rate(sights: list[Sight]) -> float:
    """Return launchers a second, from the first VMI seen to the last one bound."""
    began = min(sight.created for sight in sights)
    return len(sights) / (max(sight.bound for sight in sights) - began)
