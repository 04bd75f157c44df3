"""Real NATS servers for tests: a fresh one, or a fresh cluster of three, for each test that asks.

A plugin of the test suite: `nats` starts in about 0.05 s, `nats_cluster` in 0.5 to 6 s (an election).
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from deploy.local import LocalNats, LocalNatsCluster


@pytest_asyncio.fixture
async def nats(tmp_path: Path) -> AsyncIterator[LocalNats]:
    """One server with an empty store of its own (R1 streams)."""
    async with LocalNats(tmp_path / "nats") as server:
        yield server


@pytest_asyncio.fixture
async def nats_cluster(tmp_path: Path) -> AsyncIterator[LocalNatsCluster]:
    """Three servers with empty stores and a leader (R3 streams)."""
    async with LocalNatsCluster(tmp_path / "nats") as cluster:
        yield cluster


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a server, so that `-m "not nats"` leaves it out without a mark by hand."""
    for item in items:
        if {"nats", "nats_cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("nats")
