"""Beginnings at a pace: the first waits for nothing, the next ones for what is left of theirs."""

import asyncio
from itertools import pairwise

import pytest

from binder.pace import Pace

EVERY_S = 0.02


async def test_beginnings_are_kept_apart() -> None:
    """Each begins no sooner than so long after the one before it."""
    loop, pace = asyncio.get_running_loop(), Pace(EVERY_S)
    times = []
    for _ in range(4):
        await pace.begin()
        times.append(loop.time())

    # A timer may fire within the clock's own resolution.
    assert all(later - sooner > 0.9 * EVERY_S for sooner, later in pairwise(times))


async def test_after_a_pause_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first beginning, and one after a longer pause, does not sleep at all."""
    slept = asyncio.sleep

    async def never(_seconds: float) -> None:
        raise AssertionError("it slept")

    pace = Pace(EVERY_S)
    with monkeypatch.context() as patched:
        patched.setattr("binder.pace.asyncio.sleep", never)
        await pace.begin()
    await slept(2 * EVERY_S)
    with monkeypatch.context() as patched:
        patched.setattr("binder.pace.asyncio.sleep", never)
        await pace.begin()
