"""Minutes of random faults under churn: whatever dies or freezes, the laws hold all the time, the log is whole."""

import asyncio

import pytest

from schemas.kinds import VM
from tests.cluster.nodes import L40S
from tests.e2e.chance import HELD, NAMES, Chance, make
from tests.e2e.process import ALL
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.witness import gates

ROUNDS = 40
UNITS = 8


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
async def test_random_faults_under_churn(parts: Stack, seed: int) -> None:
    """T2, T3, T11, T22, C20, C21, C22 mixed by chance: never a unit twice; once all is mended, all that fits runs.

    Held claims are there at the end as they were at the start, each with its VM on its node.
    """
    program = parts
    await program.apart("binder-2", "projector-2")
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: UNITS // 2})
    await program.node("n2", {L40S: UNITS // 2})
    await asyncio.gather(*(program.order(claim, "l40s") for claim in HELD.values()))
    await asyncio.gather(*(program.held(claim, "Bound") for claim in HELD.values()))
    await asyncio.gather(*(make(program, name) for name in NAMES))
    chance = Chance(program, seed)

    churning = asyncio.create_task(chance.churn())
    history = [await chance.fault() for _ in range(ROUNDS)]
    churning.cancel()
    await asyncio.gather(churning, return_exceptions=True)

    try:
        await _settled(program)
    except TimeoutError as error:
        error.add_note(", ".join(history))
        raise
    assert len(await program.quiet()) == UNITS
    for name, claim in HELD.items():
        node = (await program.held(claim, "Bound", vm=name))["nodeName"]
        assert await program.running(name) == node
    assert {name.partition("-")[0] for name in program.processes.children} == set(ALL)
    await program.verified()


async def _settled(program: Stack) -> None:
    """Start every VM and wait until as many run as there are units, and the others wait."""
    for name in NAMES:
        if await program.api.find(VM.path(program.tenant, name)) is None:
            await make(program, name)
        else:
            await program.start(name)

    async def so() -> bool:
        pods = await program.launchers()
        return len(pods) == len(NAMES) and sum(not gates(pod) for pod in pods) == UNITS

    await eventually(so, f"{UNITS} of {len(NAMES)} run", 300)
