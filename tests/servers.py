"""Real NATS servers for tests: a fresh one, or a fresh cluster of three, for each test that asks.

A plugin of the test suite: `nats` starts in about 0.05 s, `nats_cluster` in 0.5 to 6 s (an election).
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from deploy.local import LocalNats, LocalNatsCluster, NatsServer

LED_SECONDS = 120.0
_START_SERVERS = {"nats", "nats_cluster", "demo_log"}
"""Fixtures that start a server: `demo_log` as the command line does."""


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
            for member in cluster.servers:
                # Others may still name the one before.
                if await _leader_told(member, stream) == member.name:
                    return member
            await asyncio.sleep(0.05)


async def _leader_told(member: NatsServer, stream: str) -> str:
    """Return whom a member takes for the stream's leader, '' where it does not answer or knows none."""
    try:
        page = await member.page("/jsz?streams=true")
    except OSError:
        return ""
    details = [entry for account in page.get("account_details", ()) for entry in account.get("stream_detail", ())]
    return next((entry.get("cluster", {}).get("leader", "") for entry in details if entry["name"] == stream), "")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a server, so that `-m "not nats"` leaves it out without a mark by hand."""
    for item in items:
        if _START_SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker("nats")
