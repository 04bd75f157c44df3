"""Shared reads: one for all who ask at the same moment, and never one that began before the question."""

import asyncio

import pytest
from typing_extensions import override

from binder.pace import Pace
from tests.webhooks.given import until
from webhooks.shared_reads import SharedRead

pytestmark = pytest.mark.looptime


class Source:
    """Something to read that changes, and whose reads end when they are told to."""

    def __init__(self) -> None:
        self.value = 0
        self.begun = 0
        self.goes = asyncio.Event()
        self.fails: Exception | None = None

    async def read(self) -> int:
        """Return the value as it was when the read began."""
        self.begun += 1
        found = self.value
        await self.goes.wait()
        if self.fails:
            raise self.fails
        return found


async def begun(source: Source, count: int) -> None:
    """Wait until so many reads have begun."""

    async def many() -> bool:
        return source.begun >= count

    await until(many)


async def test_who_asks_at_once_shares_one_read() -> None:
    """Ten questions at one moment cost one read."""
    source = Source()
    shared = SharedRead(source.read)
    source.goes.set()

    assert await asyncio.gather(*(shared.get() for _ in range(10))) == [0] * 10
    assert source.begun == 1
    assert shared.idle


async def test_no_answer_is_older_than_its_question() -> None:
    """Who asks while a read is under way is told of what changed since that one began (A8)."""
    source = Source()
    shared = SharedRead(source.read)
    first = asyncio.create_task(shared.get())
    await begun(source, 1)
    source.value = 1
    late = [asyncio.create_task(shared.get()) for _ in range(3)]
    source.goes.set()

    assert await first == 0
    assert await asyncio.gather(*late) == [1, 1, 1]
    assert source.begun == 2


class Gate(Pace):
    """A pace that the test sets: each beginning takes one of `leave`."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.leave = asyncio.Semaphore(1)

    @override
    async def begin(self) -> None:
        """Wait for leave."""
        await self.leave.acquire()


async def test_who_asks_shortly_after_a_read_began_shares_the_next() -> None:
    """Reads begin at a pace: what is asked in between is read once, after all of them asked (A8, T17)."""
    source, gate = Source(), Gate()
    shared = SharedRead(source.read, gate)
    source.goes.set()
    assert await shared.get() == 0

    first = asyncio.create_task(shared.get())
    await asyncio.sleep(0)
    source.value = 1
    others = [asyncio.create_task(shared.get()) for _ in range(3)]
    await asyncio.sleep(0)
    assert source.begun == 1
    gate.leave.release()

    assert await asyncio.gather(first, *others) == [1, 1, 1, 1]
    assert source.begun == 2


async def test_a_read_that_hangs_does_not_hold_up_the_next() -> None:
    """The next read begins soon, whether the one before it has ended or not."""
    source = Source()
    shared = SharedRead(source.read)
    hanging = asyncio.create_task(shared.get())
    await begun(source, 1)
    source.value = 1

    waiting = asyncio.create_task(shared.get())
    await begun(source, 2)
    assert not hanging.done()
    source.goes.set()
    assert (await hanging, await waiting) == (0, 1)


async def test_who_gives_up_leaves_the_read_to_the_others() -> None:
    """A caller whose time is up takes nobody else's answer away."""
    source = Source()
    shared = SharedRead(source.read)
    impatient, patient = asyncio.create_task(shared.get()), asyncio.create_task(shared.get())
    await begun(source, 1)
    impatient.cancel()
    source.goes.set()

    assert await patient == 0
    assert impatient.cancelled()


async def test_all_who_share_a_read_are_told_why_it_failed() -> None:
    """A refusal is everyone's, and the next read is made anew."""
    source = Source()
    shared = SharedRead(source.read)
    source.fails = ValueError("no")
    source.goes.set()

    found = await asyncio.gather(shared.get(), shared.get(), return_exceptions=True)
    assert [str(one) for one in found] == ["no", "no"]
    source.fails = None
    assert await shared.get() == 0
