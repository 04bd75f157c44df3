"""Scenes for the projector: on the model API server, with our kinds as their CRDs have them, and on a real one."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import pytest_asyncio
from typing_extensions import override

from binder.kube_client import KubeClient
from deploy.world.apiserver import ApiServer
from deploy.world.clock import WallClock
from deploy.world.own_kinds import install
from schemas.kinds import NAMESPACE, Resource
from tests.cluster.given import Cluster
from tests.cluster.users import GPUBINDER
from tests.projector.scene import NOW, SECONDS, Scene

_SERVICE_ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
SERVER = pytest.param("server", marks=[pytest.mark.cluster, pytest.mark.xdist_group("cluster")])
_NUMBERS = itertools.count(1)


class StoppedClock(WallClock):
    """Time stands still: two worlds that differ, differ in what was done in them."""

    @override
    def now(self) -> float:
        return NOW.timestamp()


async def new_scene(namespace: str = "tenant-a") -> Scene:
    """A fresh model world with one namespace."""
    server = ApiServer(clock=StoppedClock())
    install(server)
    scene = Scene(server, namespace)
    await _make_namespace(scene)
    return scene


@asynccontextmanager
async def real_scene(cluster: Cluster) -> AsyncIterator[Scene]:
    """A namespace of a real API server, as gpubinder's own user sees it."""
    client = await KubeClient.connect(kubeconfig=str(cluster.kubeconfig(GPUBINDER)))
    scene = Scene(client, f"projector-{os.getpid()}-{next(_NUMBERS)}")
    try:
        await _make_namespace(scene)
        deadline = asyncio.get_running_loop().time() + SECONDS
        # Pods can be created once the namespace has its service account.
        while await scene.find(_SERVICE_ACCOUNT, "default") is None:
            assert asyncio.get_running_loop().time() < deadline, "no service account"
            await asyncio.sleep(0.02)
        yield scene
        await client.delete(NAMESPACE, "", scene.namespace)
    finally:
        await client.close()


@pytest.fixture(params=["model", SERVER])
def cluster_or_none(request: pytest.FixtureRequest) -> Cluster | None:
    """A cluster for the real client, None for the model."""
    found: Cluster | None = request.getfixturevalue("cluster") if request.param == "server" else None
    return found


@pytest_asyncio.fixture
async def scene(cluster_or_none: Cluster | None) -> AsyncIterator[Scene]:
    """A namespace on the model, and once more on a real server."""
    if cluster_or_none is None:
        yield await new_scene()
    else:
        async with real_scene(cluster_or_none) as found:
            yield found


@pytest_asyncio.fixture
async def model() -> Scene:
    """A namespace on the model alone, for faults and for time that jumps."""
    return await new_scene()


async def _make_namespace(scene: Scene) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.namespace}}
    await scene.kube.create(NAMESPACE, "", msgspec.json.encode(body))
