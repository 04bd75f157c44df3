"""A desk for each test that asks."""

from collections.abc import AsyncIterator

import pytest

from tests.webhooks.given import Desk, opened


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """A front desk with a clerk at work."""
    async with opened() as standing:
        yield standing
