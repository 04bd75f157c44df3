"""Waiting in tests: polls with a deadline, never a time that decides."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from binder.journal import Unavailable, Unclear

Answer = TypeVar("Answer")

SECONDS = 120.0
"""How long a test waits for what must come."""


async def true(value: bool) -> bool:
    """Return a value as something to await, for a condition that needs no await of its own."""
    return value


async def eventually(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = SECONDS) -> None:
    """Poll until `holds()`; fail with `what` at the deadline."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not await holds():
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(0.02)


async def patient(ask: Callable[[], Awaitable[Answer]], seconds: float = SECONDS) -> Answer:
    """Ask again while the server is away or has no leader."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await ask()
        except (Unavailable, Unclear):
            assert asyncio.get_running_loop().time() < deadline, f"no answer within {seconds:g} s"
            await asyncio.sleep(0.05)
