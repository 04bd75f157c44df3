"""NATS killed, frozen and replaced by its peers while VMs start: nothing is lost, nothing is decided twice (T3)."""

import asyncio
import gc

import pytest

from deploy.local import LocalNats, LocalNatsCluster
from schemas.streams import DECISIONS, EVENTS
from tests.cluster.nodes import L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.test_kills import STEPS, whole
from tests.servers import stream_leader


async def test_nats_killed_at_each_step_costs_nothing(parts: Stack) -> None:
    """R1: the one server dies at each step of the path and comes back; our processes go on by themselves."""
    program = parts
    assert isinstance(program.nats, LocalNats)
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 6})
    children = program.processes.children
    for number, step in enumerate(STEPS):
        vm = f"vm{number}"
        if step.frozen:
            children[step.frozen].pause()
        await program.vm(vm, [("l40s", 1)])
        await step.reached(program, vm)
        program.nats.server.kill()
        if step.frozen:
            children[step.frozen].resume()
        await program.nats.server.start()
        try:
            await program.running(vm)
        except TimeoutError as error:
            error.add_note(f"NATS was killed when {step.name}")
            raise

    await whole(program, running=len(STEPS))


# The client library leaves a connection to a frozen server, which never says hello, to the garbage collector.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <function StreamWriter.__del__:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("stream", [DECISIONS, EVENTS])
async def test_a_cluster_that_loses_a_stream_s_leader_goes_on(clustered: Stack, stream: str) -> None:
    """Of three servers the one that leads a stream is killed in a burst, later another freezes: no VM is lost."""
    program = clustered
    assert isinstance(program.nats, LocalNatsCluster)
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 8})
    names = [f"vm{number}" for number in range(8)]
    await asyncio.gather(*(program.vm(name, [("l40s", 1)]) for name in names[:4]))
    await eventually(program.gated, "some launcher is gated")
    killed = await stream_leader(program.nats, stream)
    killed.kill()
    await asyncio.gather(*(program.running(name) for name in names[:4]))
    await killed.start()

    await asyncio.gather(*(program.vm(name, [("l40s", 1)]) for name in names[4:]))
    frozen = await stream_leader(program.nats, stream)
    frozen.pause()
    await asyncio.gather(*(program.running(name) for name in names[4:]))
    frozen.resume()

    await whole(program, running=8)
    # Now, not in the middle of another test, which knows nothing of it.
    gc.collect()
