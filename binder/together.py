"""Parts that run side by side and end together: none goes on where another is missing."""

import asyncio
from collections.abc import Awaitable, Callable


async def together(*parts: Callable[[], Awaitable[None]]) -> None:
    """Run parts side by side; the first that ends or fails ends the others, its error is raised."""
    tasks = [asyncio.ensure_future(part()) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def until(ending: asyncio.Event, part: Callable[[], Awaitable[None]]) -> None:
    """Run a part that has no end until something is about to end, then rest until cancelled. Raises what it raises."""
    doing, told = asyncio.ensure_future(part()), asyncio.ensure_future(ending.wait())
    try:
        await asyncio.wait({doing, told}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            await doing
    finally:
        for task in (doing, told):
            task.cancel()
        await asyncio.gather(doing, told, return_exceptions=True)
    await asyncio.Event().wait()
