"""Lanes: the newest item of a key wins, one at a time, and what failed comes again later."""

import asyncio

import pytest

from projector.lanes import QUICKLY, SLOWLY, Lanes
from tests.projector.scene import time_passes

pytestmark = pytest.mark.looptime


async def taken(lanes: Lanes[int]) -> tuple[str, int] | None:
    """The next item, or None when none comes within an hour."""
    try:
        return await asyncio.wait_for(lanes.take(), 3600)
    except TimeoutError:
        return None


async def test_the_newest_item_wins() -> None:
    """Older items of the key that nobody has taken are never seen."""
    lanes = Lanes[int]()
    lanes.put("a", 1)
    lanes.put("a", 2)

    assert await taken(lanes) == ("a", 2)
    lanes.done("a")
    assert await taken(lanes) is None


async def test_a_key_is_worked_on_once_at_a_time() -> None:
    """A newer item waits until the older one is given back; its worker can see that it was overtaken."""
    lanes = Lanes[int]()
    lanes.put("a", 1)
    assert await taken(lanes) == ("a", 1)
    assert not lanes.overtaken("a")
    lanes.put("a", 2)

    assert lanes.overtaken("a")
    assert await taken(lanes) is None
    lanes.done("a")
    assert await taken(lanes) == ("a", 2)


async def test_keys_go_side_by_side_in_order() -> None:
    """Another key is handed out while one is being worked on, first come first."""
    lanes = Lanes[int]()
    for number, key in enumerate("abc"):
        lanes.put(key, number)

    assert [await taken(lanes) for _ in range(3)] == [("a", 0), ("b", 1), ("c", 2)]


async def test_what_failed_comes_again_ever_later() -> None:
    """The delay doubles up to its limit, for ever."""
    lanes = Lanes[int]()
    lanes.put("a", 1)
    clock, gaps = asyncio.get_running_loop(), []
    for _ in range(10):
        before = clock.time()
        assert await taken(lanes) == ("a", 1)
        gaps.append(round(clock.time() - before, 1))
        lanes.again("a", 1)

    assert gaps == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, QUICKLY.most]


async def test_a_newer_item_does_not_wait_for_the_failed_one() -> None:
    """A new item takes the place of the delayed one at once, whether it came before or after the failure."""
    lanes = Lanes[int]()
    lanes.put("a", 1)
    await taken(lanes)
    lanes.put("a", 2)
    lanes.again("a", 1)
    assert await taken(lanes) == ("a", 2)
    lanes.again("a", 2)
    lanes.put("a", 3)

    assert await taken(lanes) == ("a", 3)
    lanes.done("a")
    assert await taken(lanes) is None


async def test_idle_means_nothing_waits_is_delayed_or_worked_on() -> None:
    """`idle` holds only when all that was put is done."""
    lanes = Lanes[int]()
    lanes.put("a", 1)
    idle = asyncio.ensure_future(lanes.idle())
    await taken(lanes)
    lanes.again("a", 1)
    await taken(lanes)
    await time_passes(3600)
    assert not idle.done()

    lanes.done("a")
    await asyncio.wait_for(idle, 3600)


@pytest.mark.looptime
async def test_what_was_refused_comes_again_and_keeps_nobody_waiting() -> None:
    """T23: a refused item is tried again ever more slowly, and meanwhile its lanes are idle."""
    lanes: Lanes[int] = Lanes()
    lanes.put("a", 1)
    gaps, last = list[float](), asyncio.get_running_loop().time()
    for _ in range(9):
        assert await lanes.take() == ("a", 1)
        now = asyncio.get_running_loop().time()
        gaps.append(round(now - last, 3))
        last = now
        lanes.again("a", 1, SLOWLY)
        await lanes.idle()

    assert gaps == [0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]
