"""The limit of one namespace: its flood waits behind itself, other namespaces pass."""

import asyncio

import pytest

from tests.webhooks.declaring import vm
from tests.webhooks.given import Desk, opened, until, vmi
from tests.webhooks.test_budget_desk import written
from webhooks.limits import NamespaceLimit
from webhooks.reviews import TurnedAway
from webhooks.service import Patience

pytestmark = pytest.mark.looptime


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


async def test_t13_a_flood_is_no_way_past_a_budget() -> None:
    """T13, T20: one write too many of a namespace is refused while answers flow; in an outage it passes unchecked.

    Starts of the namespace, which can be held for seconds, take no turn from its writes.
    """
    async with opened(Patience(at_once=1, waiting=0, answer_s=5.0, unchecked_s=1.0)) as desk:
        desk.clerk.silent = True
        start = asyncio.create_task(desk.vmi(vmi()))
        await until_asked(desk, 1)
        first = asyncio.create_task(written(desk, vm(1)))
        await until_asked(desk, 2)
        over = await written(desk, vm(9))
        unanswered = await first

        second = asyncio.create_task(written(desk, vm(2)))
        await until_asked(desk, 3)
        passed = await written(desk, vm(9))
        assert (await second).allowed
        start.cancel()
        await asyncio.gather(start, return_exceptions=True)

    assert (over.allowed, over.code, over.reason) == (False, 429, "TooManyRequests")
    for one in (unanswered, passed):
        assert one.allowed
        assert one.warnings[0].startswith("GPU budgets were not checked: ")


async def until_asked(desk: Desk, count: int) -> None:
    """Wait until so many requests stand on EVENTS."""

    async def there() -> bool:
        return len(desk.events()) == count

    await until(there)
