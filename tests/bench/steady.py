"""A steady stream: 20 VMs a second for a minute, and how long each launcher stands behind our gate.

From the moment a watch shows the launcher gated to the moment it shows it without. VMs end some
seconds after they were bound, so that there is always room. KubeVirt's part is its least. Beside it: the
same stretch with a straight loop in the program's place, which needs not wait for KubeVirt's word that the
launcher is the VMI's.
"""

import asyncio

from tests.bench.figures import Figure, beside, percentile
from tests.bench.ground import Ground, Say, bystanders, program
from tests.bench.observer import Sight, observing
from tests.bench.starts import Starts
from tests.bench.straight_loop import straight_loop

RATE, STRETCH_S = 20, 60
NODES, UNITS = 50, 8
WARM_UP = 2 * RATE
SHARES = (0.5, 0.95, 0.99)
LIFE_S = 4.0
PATIENCE_S = 600.0


async def measure(here: Ground, say: Say) -> list[Figure]:
    """Run one stretch with the program and one with the straight loop, and return the figures."""
    say(f"{RATE} VMs a second for {STRETCH_S} s: the program")
    async with program(here, NODES, UNITS) as ready, Starts(here.plane, ready.tenant) as starts:
        ours = await _stretch(here, starts, ready.tenant)
    say(f"{RATE} VMs a second for {STRETCH_S} s: the straight loop")
    async with (
        bystanders(here, NODES, UNITS) as there,
        straight_loop(here, there, UNITS),
        Starts(here.plane, there.stack.tenant) as starts,
    ):
        limit = await _stretch(here, starts, there.stack.tenant)
    head = f"{RATE} VMs/s for {STRETCH_S} s"
    waits, shortest = _waits(ours), _waits(limit)
    return [
        *(
            beside(
                f"{head}, gate to pin, p{int(100 * share)}", percentile(waits, share), "ms", percentile(shortest, share)
            )
            for share in SHARES
        ),
        beside(f"{head}, reached", reached(ours), "VMs/s", RATE),
        Figure(f"{head}, reached by the straight loop", reached(limit), "VMs/s"),
    ]


def _waits(sights: list[Sight]) -> list[float]:
    """Return the milliseconds that each launcher was seen gated, without the first ones."""
    return [1000 * (sight.ungated - sight.gated) for sight in sights[WARM_UP:] if sight.gated]


def reached(sights: list[Sight]) -> float:
    """Return VMs a second, from the first VMI seen to the last launcher bound; never more than were started."""
    seconds = max(sight.bound for sight in sights) - min(sight.created for sight in sights)
    return min(RATE, len(sights) / seconds)


async def _stretch(here: Ground, starts: Starts, namespace: str) -> list[Sight]:
    count, sights = RATE * STRETCH_S, list[Sight]()
    async with observing(here.plane.kubeconfig(), namespace) as observer, asyncio.TaskGroup() as tasks:
        tasks.create_task(_create(starts, count, tasks))
        try:
            async with asyncio.timeout(STRETCH_S + PATIENCE_S):
                while len(sights) < count:
                    sights.append(await observer.next())
                    tasks.create_task(_end(starts, sights[-1].vm))
        except TimeoutError:
            late = (
                f"{len(sights)} of {count} launchers were bound in {STRETCH_S + PATIENCE_S:g} s: is the machine busy?"
            )
            raise TimeoutError(late) from None
    return sights


async def _create(starts: Starts, count: int, tasks: asyncio.TaskGroup) -> None:
    """Start VMs on time, however long each takes: a slow server must not slow the stream."""
    began = asyncio.get_running_loop().time()
    for number in range(count):
        tasks.create_task(starts.start(f"vm-{number:04}"))
        await asyncio.sleep(began + (number + 1) / RATE - asyncio.get_running_loop().time())


async def _end(starts: Starts, name: str) -> None:
    await asyncio.sleep(LIFE_S)
    await starts.end(name)
