"""Starts that are asked for all the while: refused ones must pass when they are tried again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from schemas.kinds import VMI
from tests.cluster.api import Refused
from tests.e2e.tenant import Tenant, eventually, vm_body

PAUSE_SECONDS = 0.3
PATIENCE_SECONDS = 60.0
"""How soon a start that is tried again must pass, on a busy machine; what only a restart cures lasts for ever."""


@asynccontextmanager
async def asking(program: Tenant, patience: float = PATIENCE_SECONDS) -> AsyncIterator[list[str]]:
    """Ask for starts all the while; yields why those were refused that did not pass when tried again either.

    `patience`: for how many seconds each is tried again.
    """
    template = vm_body("asking", [("l40s", 1)])["spec"]["template"]
    body = {"apiVersion": VMI.api_version, "kind": VMI.kind, **template}
    body["metadata"] = {"name": "asking", **template["metadata"]}
    refused: list[str] = []
    last = ""

    async def passes() -> bool:
        nonlocal last
        try:
            await program.api.create(VMI.path(program.tenant), body, dryRun="All")
        except (Refused, aiohttp.ClientError) as error:
            last = str(error)
            return False
        return True

    async def go_on() -> None:
        while True:
            try:
                await asyncio.sleep(PAUSE_SECONDS)
                await eventually(passes, "a start passes, at once or tried again", patience)
            except TimeoutError:
                refused.append(last)

    going = asyncio.create_task(go_on())
    try:
        yield refused
    finally:
        going.cancel()
        with suppress(asyncio.CancelledError):
            await going
