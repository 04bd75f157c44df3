"""Chance of one seed: which process dies or freezes next, which VM comes and goes meanwhile."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import aiohttp

from deploy.local import LocalNats
from schemas.kinds import VM
from tests.cluster.api import Refused
from tests.e2e.stack import Stack
from tests.e2e.tenant import named, vm_body

NAMES = [f"vm{number}" for number in range(12)]
HELD = {name: f"mine-of-{name}" for name in NAMES[:4]}
"""VMs that name a held claim of their own; the others ask for one unit by class."""


async def make(program: Stack, name: str) -> None:
    """Create one of the VMs."""
    text = named((), [HELD[name]]) if name in HELD else named([("l40s", 1)], ())
    await program.api.create(VM.path(program.tenant), vm_body(name, (), text=text))


class Chance:
    """Faults and changes of one run, all drawn from one seed."""

    def __init__(self, program: Stack, seed: int) -> None:
        self._program = program
        self._random = random.Random(seed)

    async def fault(self) -> str:
        """Break something, wait a moment, mend it; return what it was."""
        faults: list[Callable[[], Awaitable[str]]] = [self._kill, self._kill, self._freeze, self._nats, self._server]
        return await self._random.choice(faults)()

    def _one(self) -> str:
        return self._random.choice(sorted(self._program.processes.children))

    async def _moment(self, most: float) -> None:
        await asyncio.sleep(self._random.uniform(0, most))

    async def _kill(self) -> str:
        name = self._one()
        self._program.processes.children[name].kill()
        await self._moment(2)
        await self._program.processes.revive(name)
        return f"{name} killed"

    async def _freeze(self) -> str:
        name = self._one()
        self._program.processes.children[name].pause()
        await self._moment(7)
        self._program.processes.children[name].resume()
        return f"{name} frozen"

    async def _nats(self) -> str:
        assert isinstance(self._program.nats, LocalNats)
        self._program.nats.server.kill()
        await self._moment(3)
        await self._program.nats.server.start()
        return "NATS killed"

    async def _server(self) -> str:
        await self._program.plane.restart("kube-apiserver")
        return "API server killed"

    async def change(self) -> None:
        """Delete a VM and make it again, or stop or start one; a server that is away is tried again."""
        name, act = self._random.choice(NAMES), self._random.random()
        try:
            if act < 0.5:
                await self._program.delete(name)
                await make(self._program, name)
            elif act < 0.75:
                await self._program.stop(name)
            else:
                await self._program.start(name)
        except (Refused, aiohttp.ClientError, TimeoutError):
            return

    async def churn(self) -> None:
        """Change something five times a second, for ever."""
        while True:
            await self.change()
            await asyncio.sleep(0.2)
