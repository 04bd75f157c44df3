"""A whole set-up for each test that asks for one: `program` runs in one process, `parts` wait to be started."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from deploy.local import LocalNats, LocalNatsCluster
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.nodes import Nodes
from tests.e2e.stack import Stack, all_roles, stack
from tests.e2e.tenants import Tenants, two_tenants


@pytest_asyncio.fixture
async def parts(
    control_plane: ControlPlane, api: Api, nodes: Nodes, nats: LocalNats, namespace: str, tmp_path: Path
) -> AsyncIterator[Stack]:
    """Everything but our roles: the test starts and kills them."""
    async with stack(control_plane, api, nodes, nats, namespace, tmp_path) as here:
        yield here


@pytest_asyncio.fixture
async def program(parts: Stack) -> Stack:
    """Everything, our roles in one process."""
    await all_roles(parts)
    return parts


@pytest_asyncio.fixture
async def clustered(
    control_plane: ControlPlane, api: Api, nodes: Nodes, nats_cluster: LocalNatsCluster, namespace: str, tmp_path: Path
) -> AsyncIterator[Stack]:
    """As `parts`, on a NATS cluster of three."""
    async with stack(control_plane, api, nodes, nats_cluster, namespace, tmp_path) as here:
        yield here


@pytest_asyncio.fixture
async def tenants(parts: Stack) -> AsyncIterator[Tenants]:
    """Our roles apart, webhooks of every sort registered, two tenants, a class and a node with four units."""
    async with two_tenants(parts) as here:
        yield here
