"""The projector keeps its promises on a real API server."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from binder.kube_client import KubeClient
from tests.cluster.given import Cluster
from tests.cluster.users import GPUBINDER
from tests.projector.scene import Scene

pytest.register_assert_rewrite("tests.projector.promises")

from tests.projector.promises import *  # noqa: E402, F403 - each promise is a test of this module


@pytest_asyncio.fixture
async def scene(cluster: Cluster, namespace: str) -> AsyncIterator[Scene]:
    """A namespace of the real API server, as gpubinder's own user sees it."""
    client = await KubeClient.connect(kubeconfig=str(cluster.kubeconfig(GPUBINDER)))
    yield Scene(client, namespace)
    await client.close()
