"""Upgraded and rolled back under load, between versions that write the log differently: nobody notices (T6, T7)."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from deploy.child import free_ports
from schemas.frames import Epoch, Frame, Record, decode_record
from schemas.kinds import VM
from schemas.streams import DECISIONS, EVENTS
from tests.cluster.api import Refused
from tests.cluster.nodes import L40S
from tests.e2e.later import KIND, next_version, version_after
from tests.e2e.process import GPUBINDER, answers
from tests.e2e.recovery import Took
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.witness import gates

WORKERS = ("binder", "ingest", "projector")
PODS = {"two": WORKERS, "one": WORKERS, "door": ("webhooks",)}
CHURNED = [f"churned{number}" for number in range(4)]
UNITS = 6


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
        program, leader = self._program, await self._program.holder("binder")
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
        await asyncio.to_thread(child.stop, 20.0)
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


async def told(program: Stack) -> list[Record]:
    """Return the whole log."""
    last = (await program.journal.info(DECISIONS)).last
    runs = program.journal.read(DECISIONS, 1, until=last)
    return [decode_record(message.body) async for run in runs for message in run]


async def _kinds(program: Stack) -> set[bytes]:
    """Return which of the later kind and version stand in EVENTS."""
    marks = (f'"{KIND}"'.encode(), b'"version":2')
    last = (await program.journal.info(EVENTS)).last
    runs = program.journal.read(EVENTS, 1, until=last)
    return {mark async for run in runs for message in run for mark in marks if mark in message.body}


async def _begun(program: Stack) -> Deployment:
    """Run the present version; the node has room for all that churns and for one more."""
    deployment = Deployment(program)
    await deployment.start(GPUBINDER)
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: UNITS // 2})
    await program.node("n2", {L40S: UNITS // 2})
    await program.vm("before", [("l40s", 1)])
    await program.running("before")
    return deployment


async def _ends_well(program: Stack) -> None:
    """Judge: what runs is what is booked, `before` was never touched, the log is whole over all versions."""
    pods = [pod for pod in await program.launchers() if not gates(pod)]
    assert len(await program.quiet()) == len(pods) == len(CHURNED) + 1
    assert len(program.witness.vmis["before"]) == 1
    records = await told(program)
    report = await program.verified()
    assert {frame.rules for frame in records if isinstance(frame, Frame)} == {1, 2}
    assert report.chain_only > 0
    assert report.rederived > 0


async def test_an_upgrade_and_a_rollback_under_load(parts: Stack, took: Took, tmp_path: Path) -> None:
    """T6, T7: the next version decides by other rules and writes more; the present one reads it and goes on."""
    program = parts
    deployment = await _begun(program)
    later = next_version(tmp_path)

    async with load(program):
        await deployment.roll(later, took, "upgrade")
        await deployment.roll(GPUBINDER, took, "rollback")

    epochs = [record.program for record in await told(program) if isinstance(record, Epoch)]
    assert [version for version, _ in itertools.groupby(epochs)] == ["0.1.0", "0.2.0", "0.1.0"]
    assert await _kinds(program) == set()
    await _ends_well(program)


@pytest.mark.soak
async def test_a_new_kind_is_written_by_the_second_release_that_reads_it(
    parts: Stack, took: Took, tmp_path: Path
) -> None:
    """T6: a rollback by one release reads what it never wrote; one by two stops, and says what to run instead."""
    program = parts
    deployment = await _begun(program)
    reads, writes = next_version(tmp_path), version_after(tmp_path)

    async with load(program):
        await deployment.roll(reads, took, "first upgrade")
        assert await _kinds(program) == set()
        await deployment.roll(writes, took, "second upgrade")

        async def written() -> bool:
            return len(await _kinds(program)) == 2

        await eventually(written, "the new kind and version are written")
        await deployment.roll(reads, took, "rollback by one")

    await _ends_well(program)
    too_old = program.processes.start("too-old", ["binder"])

    async def ended() -> bool:
        return not too_old.running

    await eventually(ended, "the version before both ends")
    assert too_old.code not in (0, -9)
    assert "is not known to this program: run the version that wrote it" in too_old.tail()
    del program.processes.children["too-old"]
