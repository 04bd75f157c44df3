"""Clocks of the world: the wall's, and the event loop's, which a test can let fly.

The emulators never read time elsewhere: under a loop whose time jumps from timer to timer, a back-off
of five minutes costs a test nothing.
"""

import asyncio
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Seconds since 1970, and a way to wait for some to pass."""

    def now(self) -> float:
        """Return the present, in seconds since 1970."""

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""


class WallClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return the present, in seconds since 1970."""
        return datetime.now(UTC).timestamp()

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        await asyncio.sleep(seconds)


class LoopClock:
    """The running loop's time, counted from a chosen hour: as quick as the loop's own clock."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start

    def now(self) -> float:
        """Return the present, in seconds since 1970."""
        return self._start + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of the loop's time."""
        await asyncio.sleep(seconds)


def stamp(seconds: float) -> str:
    """Return the time as the API server prints it: whole seconds, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unstamp(text: str) -> float:
    """Return the seconds since 1970 of a time as the API server prints it."""
    return datetime.fromisoformat(text).timestamp()
