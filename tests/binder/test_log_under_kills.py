"""The server that leads the log is killed or frozen under a writer: each frame once, in order (T3)."""

import asyncio
import gc
from collections.abc import Callable

import pytest

from schemas.streams import DECISIONS
from tests.binder.conftest import NatsStand
from tests.binder.leading import begin, covered, draft
from tests.binder.waiting import eventually, true


async def _grown(sequence: Callable[[], int], frames: int) -> None:
    before = sequence()
    await eventually(lambda: true(sequence() > before + frames), "appends go on")


# The client library leaves a connection to a frozen server, which never says hello, to the garbage collector.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <function StreamWriter.__del__:pytest.PytestUnraisableExceptionWarning"
)
async def test_a_leader_that_freezes_and_wakes_costs_no_frame(stand: NatsStand) -> None:
    """T3: the server that leads the log stands still and wakes up as a former leader: each frame once, in order."""
    await stand.fresh()
    journal = await stand.journal(call_seconds=1)
    writer = await begin(journal)
    done = asyncio.Event()

    async def write() -> None:
        while not done.is_set():
            await writer.append(draft(writer.tip))

    writing = asyncio.create_task(write())
    await _grown(lambda: writer.tip.sequence, 20)
    leader = await stand.servers.leader(DECISIONS)
    leader.pause()
    if stand.servers.replicas > 1:
        await _grown(lambda: writer.tip.sequence, 20)
    leader.resume()
    await _grown(lambda: writer.tip.sequence, 20)
    done.set()
    await writing

    assert await covered(journal) == list(range(1, writer.tip.covers_to + 1))
    # Now, not in the middle of another test, which knows nothing of it.
    gc.collect()


async def test_servers_killed_in_the_middle_cost_no_frame(stand: NatsStand) -> None:
    """T3: kill -9 of the server that leads the log, three times, under appends: each frame once, in order."""
    journal = await stand.fresh()
    writer = await begin(journal)
    done = asyncio.Event()

    async def write() -> None:
        nonlocal writer
        while not done.is_set():
            await writer.append(draft(writer.tip))

    writing = asyncio.create_task(write())
    for _ in range(3):
        await _grown(lambda: writer.tip.sequence, 20)
        await stand.servers.crash(DECISIONS)
    await _grown(lambda: writer.tip.sequence, 20)
    done.set()
    await writing

    assert await covered(journal) == list(range(1, writer.tip.covers_to + 1))
