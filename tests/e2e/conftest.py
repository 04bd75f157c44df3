"""A whole set-up for each test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from deploy.local import LocalNats
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.nodes import Nodes
from tests.e2e.stack import Stack, all_roles, stack


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
