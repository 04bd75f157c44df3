"""A desk for each test that asks, and a server before it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.webhooks.given import Desk, opened
from tests.webhooks.standing import Stand, standing


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """A front desk with a clerk at work."""
    async with opened() as at_work:
        yield at_work


@pytest.fixture
async def stand(desk: Desk, tmp_path: Path) -> AsyncIterator[Stand]:
    """A server before the desk, with metrics."""
    async with standing(desk, tmp_path, metrics_port=0, read_s=60.0) as served:
        yield served
