"""Waiting with a deadline for what a test needs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

SECONDS = 120.0
T = TypeVar("T")


async def until(look: Callable[[], Awaitable[T | None]], *, seconds: float = SECONDS) -> T:
    """Ask again until something true is found, and return it. Raises `TimeoutError`."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):
            await asyncio.sleep(0.05)
        return found
