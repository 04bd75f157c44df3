"""Two worlds for the contract of `Kube`: the model server, and the real client on a real server."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from binder.kube import ApiError
from binder.kube_client import KubeClient
from deploy.world.apiserver import ApiServer
from deploy.world.collector import Collector
from deploy.world.scheduler import Scheduler
from deploy.world.virt_names import VMIRS
from schemas.kinds import NAMESPACE, NODE
from tests.cluster.controlplane import ControlPlane
from tests.cluster.given import Cluster
from tests.contracts.world import World, config_map, json_of

SERVER = pytest.param("server", marks=[pytest.mark.cluster, pytest.mark.xdist_group("cluster")])
_NUMBERS = itertools.count(1)


@pytest.fixture(params=["model", SERVER])
def cluster_or_none(request: pytest.FixtureRequest) -> Cluster | None:
    """A cluster for the real client, None for the model."""
    found: Cluster | None = request.getfixturevalue("cluster") if request.param == "server" else None
    return found


@pytest.fixture(params=["model", SERVER])
def own_cluster_or_none(request: pytest.FixtureRequest) -> ControlPlane | None:
    """A control plane that can be restarted, None for the model."""
    found: ControlPlane | None = request.getfixturevalue("control_plane") if request.param == "server" else None
    return found


@pytest_asyncio.fixture
async def world(cluster_or_none: Cluster | None) -> AsyncIterator[World]:
    """A world with a namespace of the test's own."""
    async with _world(cluster_or_none) as world:
        yield world


@pytest_asyncio.fixture
async def forgetful(own_cluster_or_none: ControlPlane | None) -> AsyncIterator[World]:
    """A world that can be made to forget its history."""
    async with _world(own_cluster_or_none) as world:
        if own_cluster_or_none is not None:
            world.forget = own_cluster_or_none.forget
        yield world


@asynccontextmanager
async def _world(cluster: Cluster | None) -> AsyncIterator[World]:
    name = f"contract-{os.getpid()}-{next(_NUMBERS)}"
    if cluster is None:
        server = ApiServer(seed="contract")
        server.serve(VMIRS)
        async with _acting(server):
            world = World(server, name)

            async def forget() -> None:
                server.store.compact()

            world.forget = forget
            await _with_namespace(world)
            yield world
    else:
        client = await KubeClient.connect(kubeconfig=str(cluster.kubeconfig()))
        world = World(client, name)
        await _with_namespace(world)
        try:
            yield world
        finally:
            for node in world.nodes:
                await client.delete(NODE, "", node)
            await client.delete(NAMESPACE, "", name)
            await client.close()


@asynccontextmanager
async def _acting(server: ApiServer) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(part.run()) for part in (Collector(server), Scheduler(server))]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(ended, asyncio.CancelledError), ended


async def _with_namespace(world: World) -> None:
    """Make the namespace and wait until pods can be created in it: a real one needs its service account first."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.namespace}}
    await world.kube.create(NAMESPACE, "", json_of(body))

    async def pods_can_be_created() -> bool:
        try:
            await world.create_pod("probe", dry_run=True)
        except ApiError as error:
            if error.code != 403:
                raise
            return False
        return True

    await world.eventually(pods_can_be_created)
    await world.create(config_map("settled"))
