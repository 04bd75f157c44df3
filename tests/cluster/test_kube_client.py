"""The real Kubernetes client against a real API server that fails: restarts, freezes, refused rights."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from binder.kube import ApiError, WatchEvent
from binder.kube_client import KubeClient
from schemas.kinds import CONFIGMAP, NODE
from tests.cluster import users
from tests.cluster.controlplane import ControlPlane

APISERVER = "kube-apiserver"


@pytest_asyncio.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client that loses patience soon."""
    kubeconfig = str(control_plane.kubeconfig(users.GPUBINDER))
    client = await KubeClient.connect(kubeconfig=kubeconfig, request_seconds=5)
    yield client
    await client.close()


async def _followed(client: KubeClient) -> list[WatchEvent]:
    version = (await client.list_page(CONFIGMAP)).resource_version
    return [event async for event in client.watch(CONFIGMAP, resource_version=version, timeout_seconds=120)]


async def test_a_restarted_server_ends_watches_and_serves_again(
    control_plane: ControlPlane, client: KubeClient
) -> None:
    """A killed server ends a watch at once, answers nothing meanwhile (code 0), and serves the same client after."""
    watch = asyncio.create_task(_followed(client))
    await client.list_page(NODE)
    control_plane.kill(APISERVER)
    with pytest.raises(ApiError) as caught:
        await client.list_page(NODE)
    assert (caught.value.code, caught.value.reason) == (0, "Unreachable")
    await control_plane.revive(APISERVER)
    ended = (await asyncio.wait_for(asyncio.gather(watch, return_exceptions=True), 120))[0]
    assert isinstance(ended, list) or (isinstance(ended, ApiError) and ended.code == 0)
    assert (await client.list_page(CONFIGMAP)).resource_version


async def test_a_frozen_server_is_unreachable(control_plane: ControlPlane, client: KubeClient) -> None:
    """A server that keeps its connections open and says nothing is unreachable after `request_seconds`."""
    await client.list_page(NODE)
    control_plane.pause(APISERVER)
    for ask in (client.list_page(NODE), _followed(client)):
        with pytest.raises(ApiError) as caught:
            await ask
        assert (caught.value.code, caught.value.reason) == (0, "Unreachable")
    control_plane.resume(APISERVER)
    assert (await client.list_page(CONFIGMAP)).resource_version


async def test_a_user_without_rights_is_forbidden(control_plane: ControlPlane) -> None:
    """What the user may not do is Forbidden, in the server's words."""
    client = await KubeClient.connect(kubeconfig=str(control_plane.kubeconfig(users.TENANT)))
    with pytest.raises(ApiError) as caught:
        await client.list_page(NODE)
    await client.close()
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    assert f'User "{users.TENANT.name}" cannot list resource "nodes"' in caught.value.message
