"""Many VMs at once, few units: exactly as many run as there are places, and the books equal the pods (C21)."""

import asyncio
import random

import pytest

from schemas.kinds import VM
from tests.cluster.nodes import L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually, vm_body


async def test_twenty_starts_for_nineteen_places(program: Stack) -> None:
    """Of twenty VMs at once exactly nineteen run and one waits, whatever the order (C21)."""
    await program.gpu_class("l40s", L40S)
    for number in range(5):
        await program.node(f"n{number}", {L40S: 4 if number else 3})
    await program.nodes_known()
    await asyncio.gather(*(program.vm(f"vm{number}", [("l40s", 1)]) for number in range(20)))

    await _standing(program, pinned=19, gated=1)
    assert len(await program.quiet()) == 19
    await program.warned(1)
    await program.verified()


async def test_fifty_launchers_for_eight_units_and_churn(program: Stack) -> None:
    """C21: fifty at once for eight units, then VMs deleted and made again: never one too many, none lost at the end."""
    await _churn(program, rounds=30, seed=21)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
async def test_churn_for_long(program: Stack, seed: int) -> None:
    """C21 for minutes: the same laws under hundreds of deletions."""
    await _churn(program, rounds=400, seed=seed)


async def _churn(program: Stack, *, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 4})
    await program.node("n2", {L40S: 4})
    names = [f"vm{number}" for number in range(50)]
    await asyncio.gather(*(program.vm(name, [("l40s", 1)]) for name in names))
    await _standing(program, pinned=8, gated=42)

    async def again(name: str) -> None:
        await program.delete(name)
        await program.api.create(VM.path(program.tenant), vm_body(name, [("l40s", 1)]))

    for _ in range(rounds // 5):
        await asyncio.gather(*(again(name) for name in chance.sample(names, 5)))

    await _standing(program, pinned=8, gated=42)
    assert sorted((await program.quiet()).values()) == ["n1"] * 4 + ["n2"] * 4
    await program.verified()


async def _standing(program: Stack, *, pinned: int, gated: int) -> None:
    """Wait until so many launchers are pinned and so many gated."""

    async def so() -> bool:
        waiting, all_of_them = len(await program.gated()), len(await program.launchers())
        return (all_of_them - waiting, waiting) == (pinned, gated)

    await eventually(so, f"{pinned} are pinned and {gated} gated")
