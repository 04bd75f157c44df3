"""A deployment of our pods that is replaced one after the other, and VMs that come and go meanwhile."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import aiohttp

from deploy.child import free_ports
from schemas.kinds import VM
from tests.cluster.api import Refused
from tests.e2e.process import answers
from tests.e2e.recovery import Took
from tests.e2e.stack import Stack
from tests.e2e.tenant import SECONDS, eventually

WORKERS = ("binder", "ingest", "projector")
PODS = {"two": WORKERS, "one": WORKERS, "door": ("webhooks",)}
CHURNED = [f"churned{number}" for number in range(4)]


class Deployment:
    """Two pods with all working roles and one with the webhooks, replaced one after the other."""

    def __init__(self, program: Stack) -> None:
        self._program = program
        self._ports = dict(zip(PODS, free_ports(len(PODS)), strict=True))

    async def start(self, version: Sequence[str]) -> None:
        """Start all pods."""
        for name in PODS:
            self._start(name, version)
        await self._program.ready()

    def _start(self, name: str, version: Sequence[str]) -> None:
        self._program.processes.start(name, PODS[name], health=self._ports[name], program=version)

    async def roll(self, version: Sequence[str], took: Took, what: str) -> None:
        """Replace each pod by one of another version, the leader last; a VM that is started then gets its unit."""
        program = self._program
        leader = await eventually(lambda: program.holder("binder"), "a binder leads")
        others = [name for name in PODS if name != leader]
        await asyncio.gather(*(self._stop(name) for name in others))
        for name in others:
            self._start(name, version)
        await asyncio.gather(*(self._ready(name) for name in others))
        since, vm = time.monotonic(), f"during-{what.replace(' ', '-')}"
        await self._stop(leader)
        await program.vm(vm, [("l40s", 1)])
        self._start(leader, version)
        await program.pinned(vm)
        took(f"{what}: leader replaced, next pin", since)
        await asyncio.gather(program.delete(vm), self._ready(leader))

    async def _stop(self, name: str) -> None:
        child = self._program.processes.children[name]
        await asyncio.to_thread(child.stop, SECONDS)
        assert child.code == 0, child.tail()

    async def _ready(self, name: str) -> None:
        async def ready() -> bool:
            child = self._program.processes.children[name]
            assert child.running, child.tail()
            return await asyncio.to_thread(answers, self._ports[name], "/readyz")

        await eventually(ready, f"{name} is ready")


@asynccontextmanager
async def load(program: Stack) -> AsyncIterator[None]:
    """Delete and create VMs all the while; at the end each of them runs."""
    over = asyncio.Event()
    churning = asyncio.create_task(_churn(program, over))
    try:
        yield
    finally:
        over.set()
        await churning
    for name in CHURNED:
        if await program.api.find(VM.path(program.tenant, name)) is None:
            await program.vm(name, [("l40s", 1)])
    for name in CHURNED:
        await program.running(name)


async def _churn(program: Stack, over: asyncio.Event) -> None:
    """Go on until told to end; then each VM stands, or is gone altogether."""
    for name in itertools.cycle(CHURNED):
        if over.is_set():
            return
        try:
            if await program.api.find(VM.path(program.tenant, name)) is not None:
                await program.delete(name)
            await program.vm(name, [("l40s", 1)])
        except (Refused, aiohttp.ClientError):
            continue
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await over.wait()
