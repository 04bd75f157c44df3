"""Real NATS servers for tests: a fresh one, or a fresh cluster of three, for each test that asks.

A plugin of the test suite: `nats` starts in about 0.05 s, `nats_cluster` in 0.5 to 6 s (an election).
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from deploy.local import LocalNats, LocalNatsCluster, NatsServer

LED_SECONDS = 60.0


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


async def stream_leader(cluster: LocalNatsCluster, stream: str) -> NatsServer:
    """Wait until a stream has a leader and return that member. Raises TimeoutError."""
    async with asyncio.timeout(LED_SECONDS):
        while True:
            member = next(server for server in cluster.servers if server.child.running)
            page = await member.page("/jsz?streams=true")
            details = [entry for account in page["account_details"] for entry in account["stream_detail"]]
            leaders = [entry["cluster"].get("leader", "") for entry in details if entry["name"] == stream]
            if any(leaders):
                return cluster.named(leaders[0])
            await asyncio.sleep(0.05)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a server, so that `-m "not nats"` leaves it out without a mark by hand."""
    for item in items:
        if {"nats", "nats_cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("nats")
