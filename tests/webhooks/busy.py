"""An API server in memory that tests can make slow or broken, kind by kind."""

import asyncio
from typing import Any

from typing_extensions import override

from deploy.world.apiserver import ApiServer
from schemas.kinds import Resource


class Busy(ApiServer):
    """The model API server; `troubles` are raised, or waited for, before reads of the plurals named in it.

    `met` is set once somebody waits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.troubles: dict[str, Exception | asyncio.Event] = {}
        self.met = asyncio.Event()

    @override
    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        await self._meet(resource)
        return await super().get(resource, namespace, name)

    @override
    async def list_page(
        self, resource: Resource, *, namespace: str = "", limit: int = 500, continue_token: str = ""
    ) -> Any:
        await self._meet(resource)
        return await super().list_page(resource, namespace=namespace, limit=limit, continue_token=continue_token)

    async def _meet(self, resource: Resource) -> None:
        trouble = self.troubles.get(resource.plural)
        if isinstance(trouble, asyncio.Event):
            self.met.set()
            await trouble.wait()
        elif trouble is not None:
            raise trouble
