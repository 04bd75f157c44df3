"""The limit of one namespace: its flood waits behind itself, other namespaces pass."""

import asyncio

import pytest

from tests.webhooks.given import opened, vmi
from webhooks.limits import NamespaceLimit
from webhooks.reviews import TurnedAway
from webhooks.service import Patience


async def test_a_flood_waits_behind_itself() -> None:
    """While one namespace fills its slots another is answered; what is over the queue is refused at once (T13)."""
    async with opened(Patience(at_once=2, waiting=3)) as desk:
        held = asyncio.Event()
        desk.api.troubles["gpuclasses"] = held
        flood = [asyncio.create_task(desk.vmi(vmi(), namespace="tenant-a")) for _ in range(8)]
        over = await next(asyncio.as_completed(flood))
        del desk.api.troubles["gpuclasses"]

        other = await desk.vmi(vmi(), namespace="tenant-b")
        held.set()
        answers = await asyncio.gather(*flood)

    assert other.allowed
    assert (over.allowed, over.code, over.reason) == (False, 429, "TooManyRequests")
    assert "in namespace tenant-a" in over.message
    assert sorted(answer.allowed for answer in answers) == [False] * 3 + [True] * 5


async def test_a_turn_that_does_not_come_is_a_refusal() -> None:
    """Waiting ends at the deadline, with a sentence."""
    limit = NamespaceLimit(at_once=1, waiting=5)
    now = asyncio.get_running_loop().time()

    async with limit.turn("tenant-a", now + 60):
        with pytest.raises(TurnedAway, match="in namespace tenant-a at this moment: try again later"):
            async with limit.turn("tenant-a", now + 0.05):
                pass

    assert limit.namespaces == 0


async def test_nothing_is_remembered_of_who_left() -> None:
    """Namespaces come and go: a limit holds only those that are inside."""
    limit = NamespaceLimit(at_once=1, waiting=0)
    deadline = asyncio.get_running_loop().time() + 60

    for number in range(50):
        async with limit.turn(f"n{number}", deadline):
            assert limit.namespaces == 1

    assert limit.namespaces == 0
