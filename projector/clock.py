"""The wall's clock: what conditions and events say as their time, and nothing is decided by."""

from datetime import UTC, datetime


def wall() -> datetime:
    """Return the time now, for the times of conditions and events; nothing is decided by it."""
    return datetime.now(UTC)
