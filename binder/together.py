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
