"""Parts side by side: who ends whom, and who rests once an end is near."""

import asyncio

import pytest

from binder.together import together, until


async def test_a_part_rests_once_the_end_is_near() -> None:
    """It is cancelled at the word, and neither it nor what runs beside it ends of that."""
    ending, told = asyncio.Event(), list[str]()

    async def looks() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append("looks no more")

    async def answers() -> None:
        ending.set()
        while not told:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        told.append("answered")

    await together(lambda: until(ending, looks), answers)

    assert told == ["looks no more", "answered"]


async def test_a_part_that_fails_is_heard() -> None:
    """What it raises ends the others, as without the word."""

    async def fails() -> None:
        raise LookupError("gone")

    async def rests() -> None:
        await asyncio.Event().wait()

    with pytest.raises(LookupError, match="gone"):
        await together(lambda: until(asyncio.Event(), fails), rests)
