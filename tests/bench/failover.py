"""Production's settings: three NATS servers, a standby beside the leader; how fast, and how soon after a death.

Admission, gate to pin and burst as elsewhere, beside one server. Then the leader of all roles is killed, and
later the NATS server that leads the log, each several times: from the kill to the pin of a VM whose start is
asked for at that moment. The webhooks have a process of their own, which is the API server's one address here.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import fmean

from deploy.child import Child
from deploy.local import LocalNatsCluster
from schemas.streams import DECISIONS
from tests.bench import admission, burst
from tests.bench.figures import Figure, beside, median, percentile
from tests.bench.ground import Ground, Say, program
from tests.bench.observer import Observer, Sight, observing
from tests.bench.starts import Starts
from tests.e2e.process import answers
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.servers import stream_leader

NODES, UNITS = 50, 8
RATE, STRETCH_S = 3, 20
ROUNDS = 5
SECONDS = 120.0
CALM_S = 6.0
"""Between two deaths: longer than any lease, and enough for who came back to have read the log."""
WORKERS = ("binder", "ingest", "projector")
PAIR = {"one": WORKERS, "two": WORKERS, "door": ("webhooks",)}
AIM_S = 5.0


async def measure(here: Ground, say: Say) -> list[Figure]:
    """Measure what three servers cost, then what a death costs."""
    alone, three = await _quiet(here, say, cluster=False), await _quiet(here, say, cluster=True)
    figures = [beside(f"{name}, beside one", three[name], "ms", alone[name]) for name in three]
    say("burst: one server, then three")
    one = await burst.with_program(here)
    many = await burst.with_program(here, cluster=True)
    figures.append(beside(f"three NATS servers: burst of {burst.VMS} VMs, beside one", many, burst.UNIT, one))
    leader = await _deaths(here, say, "leader killed", _kill_leader)
    frozen = await _deaths(here, say, "leader frozen", _freeze_leader)
    server = await _deaths(here, say, "NATS leader killed", _kill_server)
    return [
        *figures,
        *_costs("leader killed, warm standby: next pin", leader, AIM_S),
        *_costs("leader frozen or its machine lost, warm standby: next pin", frozen, AIM_S),
        *_costs("NATS server that leads the log killed: next pin", server),
    ]


def _costs(name: str, seconds: list[float], aim: float | None = None) -> list[Figure]:
    """Return the median and the worst of what deaths cost; the median beside its aim, where there is one."""
    middle = median(seconds)
    first = Figure(f"{name}, median", middle, "s") if aim is None else beside(f"{name}, median", middle, "s", aim)
    return [first, Figure(f"{name}, worst of {len(seconds)}", max(seconds), "s")]


async def _quiet(here: Ground, say: Say, *, cluster: bool) -> dict[str, float]:
    """Return admission and gate to pin in milliseconds, nothing failing, of a steady and moderate stream."""
    say(f"{RATE} VMs a second and {admission.RATE} reviews a second, {'three servers' if cluster else 'one server'}")
    async with program(here, NODES, UNITS, processes=PAIR, cluster=cluster) as ready:
        async with Starts(here.plane, ready.tenant) as starts, observing(here.plane.kubeconfig(), ready.tenant) as eye:
            gated = [1000 * (one.ungated - one.gated) for one in await _stream(starts, eye) if one.gated]
        async with admission.asking(here, ready) as asked:
            await asyncio.sleep(STRETCH_S)
        waits = [1000 * (one.answered - one.sent) for one in asked]
    head = "three NATS servers"
    return {
        f"{head}: admission, p50": percentile(waits, 0.5),
        f"{head}: admission, p99": percentile(waits, 0.99),
        f"{head}: gate to pin at {RATE} VMs/s, p50": percentile(gated, 0.5),
        f"{head}: gate to pin at {RATE} VMs/s, p95": percentile(gated, 0.95),
    }


async def _stream(starts: Starts, eye: Observer) -> list[Sight]:
    """Start VMs at a steady rate; return what was seen of them."""
    count = RATE * STRETCH_S
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(starts.start(f"vm-{number:03}"))
            await asyncio.sleep(1 / RATE)
    return await eye.bound(count, SECONDS)


Kill = Callable[[Stack], Awaitable[Callable[[], Awaitable[None]]]]
"""Kills something and returns what brings it back."""


async def _deaths(here: Ground, say: Say, what: str, kill: Kill) -> list[float]:
    """Return the seconds from each death to the pin of a VM that is started at that moment."""
    seconds: list[float] = []
    async with (
        program(here, NODES, UNITS, processes=PAIR, cluster=True) as ready,
        Starts(here.plane, ready.tenant) as starts,
        observing(here.plane.kubeconfig(), ready.tenant) as eye,
    ):
        for number in range(ROUNDS):
            await asyncio.sleep(CALM_S)
            mend = await kill(ready)
            began = time.monotonic()
            await starts.start(f"vm-{number}")
            [seen] = await eye.bound(1, SECONDS)
            seconds.append(seen.ungated - began)
            say(f"{what}, {number + 1} of {ROUNDS}: next pin after {seconds[-1]:.1f} s, mean {fmean(seconds):.1f} s")
            await mend()
    return seconds


async def _leader(ready: Stack) -> tuple[Child, int]:
    """Return the process that leads every role, the other one being warm, and the port of its status page."""
    child = ready.processes.children[await eventually(lambda: ready.holder("binder"), "the binder is led")]
    return child, int(child.argv[child.argv.index("--status-port") + 1])


async def _kill_leader(ready: Stack) -> Callable[[], Awaitable[None]]:
    child, port = await _leader(ready)

    async def mend() -> None:
        child.spawn()

        async def warm() -> bool:
            return await asyncio.to_thread(answers, port, "/readyz")

        await eventually(warm, f"{child.name} follows the log again")

    child.kill()
    return mend


async def _freeze_leader(ready: Stack) -> Callable[[], Awaitable[None]]:
    """Freeze it: to everyone else that is a machine that went without a word."""
    child, _ = await _leader(ready)

    async def mend() -> None:
        child.resume()

    child.pause()
    return mend


async def _kill_server(ready: Stack) -> Callable[[], Awaitable[None]]:
    """Kill the NATS server that leads DECISIONS."""
    assert isinstance(ready.nats, LocalNatsCluster)
    server = await stream_leader(ready.nats, DECISIONS)
    server.kill()
    return server.start
