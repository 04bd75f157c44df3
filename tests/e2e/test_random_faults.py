"""Minutes of random faults under churn: whatever dies or freezes, the laws hold all the time, the log is whole."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from deploy.local import LocalNats
from schemas.kinds import VM
from tests.cluster.api import Refused
from tests.cluster.nodes import L40S
from tests.e2e.process import ALL
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually, vm_body
from tests.e2e.witness import gates

ROUNDS = 40
NAMES = [f"vm{number}" for number in range(12)]
UNITS = 8


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
                await self._program.api.create(VM.path(self._program.tenant), vm_body(name, [("l40s", 1)]))
            elif act < 0.75:
                await self._program.stop(name)
            else:
                await self._program.start(name)
        except (Refused, aiohttp.ClientError, TimeoutError):
            return


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
async def test_random_faults_under_churn(parts: Stack, seed: int) -> None:
    """T2, T3, T11, T22, C20, C21, C22 mixed by chance: never a unit twice; once all is mended, all that fits runs."""
    program = parts
    await program.apart("binder-2", "projector-2")
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: UNITS // 2})
    await program.node("n2", {L40S: UNITS // 2})
    await asyncio.gather(*(program.vm(name, [("l40s", 1)]) for name in NAMES))
    chance = Chance(program, seed)

    async def churn() -> None:
        while True:
            await chance.change()
            await asyncio.sleep(0.2)

    churning = asyncio.create_task(churn())
    history = [await chance.fault() for _ in range(ROUNDS)]
    churning.cancel()
    await asyncio.gather(churning, return_exceptions=True)

    try:
        await _settled(program)
    except TimeoutError as error:
        error.add_note(", ".join(history))
        raise
    assert len(await program.quiet()) == UNITS
    assert {name.partition("-")[0] for name in program.processes.children} == set(ALL)
    await program.verified()


async def _settled(program: Stack) -> None:
    """Start every VM and wait until as many run as there are units, and the others wait."""
    for name in NAMES:
        if await program.api.find(VM.path(program.tenant, name)) is None:
            await program.vm(name, [("l40s", 1)])
        else:
            await program.start(name)

    async def so() -> bool:
        pods = await program.launchers()
        return len(pods) == len(NAMES) and sum(not gates(pod) for pod in pods) == UNITS

    await eventually(so, f"{UNITS} of {len(NAMES)} run", 300)
