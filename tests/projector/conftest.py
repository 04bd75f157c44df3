"""The projector's scene on the model API server, with our kinds as their CRDs would have them."""

import msgspec
import pytest
import pytest_asyncio
from typing_extensions import override

from deploy.world.apiserver import ApiServer
from deploy.world.clock import WallClock
from deploy.world.own_kinds import install
from schemas.kinds import NAMESPACE
from tests.projector.scene import NOW, Scene

pytest.register_assert_rewrite("tests.projector.promises")


class StoppedClock(WallClock):
    """Time stands still: two worlds that differ, differ in what was done in them."""

    @override
    def now(self) -> float:
        return NOW.timestamp()


async def new_scene(namespace: str = "tenant-a") -> Scene:
    """A fresh model world with one namespace."""
    server = ApiServer(clock=StoppedClock())
    install(server)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await server.create(NAMESPACE, "", msgspec.json.encode(body))
    return Scene(server, namespace)


@pytest_asyncio.fixture
async def scene() -> Scene:
    """A fresh model world."""
    return await new_scene()
