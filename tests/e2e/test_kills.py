"""Roles killed with -9 at each step of the path, and started again: every VM runs, once, and the log is whole."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest

from schemas.decisions import SetPlaced
from tests.cluster.nodes import L40S
from tests.e2e.process import ALL
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.witness import gates


class Step(NamedTuple):
    """A moment on the way of a VM. `frozen`: the role that would go on from there and is held still until then."""

    name: str
    reached: Callable[[Stack, str], Awaitable[object]]
    frozen: str = ""


async def _has_vmi(program: Stack, vm: str) -> None:
    await eventually(lambda: program.vmi(vm), f"{vm} has a VMI")


async def _is_gated(program: Stack, vm: str) -> None:
    await eventually(lambda: program.gated(vm), f"the launcher of {vm} is gated")


async def _is_placed(program: Stack, vm: str) -> None:
    await program.logged(SetPlaced, vm)


async def _has_claim(program: Stack, vm: str) -> None:
    await eventually(lambda: program.claims(vm), f"{vm} has a claim")


async def _is_bound(program: Stack, vm: str) -> None:
    await program.bound(vm)


async def _is_pinned(program: Stack, vm: str) -> None:
    async def free() -> bool:
        return any(not gates(pod) for pod in await program.launchers(vm))

    await eventually(free, f"the launcher of {vm} is let go")


STEPS = (
    Step("the VMI exists", _has_vmi),
    Step("the launcher is gated, nobody has told the binder", _is_gated, "ingest"),
    Step("the set is placed in the log, nothing is written", _is_placed, "projector"),
    Step("the claim exists", _has_claim),
    Step("the claim is Bound", _is_bound),
    Step("the launcher is pinned", _is_pinned),
)


@pytest.mark.parametrize("role", ALL)
async def test_a_role_killed_at_each_step_costs_nothing(parts: Stack, role: str) -> None:
    """R1, D2: whatever a role was doing when it died, started again it goes on: no unit twice, no VM lost."""
    program = parts
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 4})
    await program.node("n2", {L40S: 2})
    children = program.processes.children

    for number, step in enumerate(STEPS):
        vm = f"vm{number}"
        if step.frozen:
            children[step.frozen].pause()
        await program.vm(vm, [("l40s", 1)])
        await step.reached(program, vm)
        children[role].kill()
        if step.frozen:
            children[step.frozen].resume()
        await program.processes.revive(role)
        try:
            await program.running(vm)
        except TimeoutError as error:
            error.add_note(f"{role} was killed when {step.name}")
            raise

    await whole(program, running=len(STEPS))


async def whole(program: Stack, *, running: int) -> None:
    """Judge the end: as many run as were started, each with one VMI, one launcher and one booking; the log is whole."""
    assert len(await program.quiet()) == running
    vmis = program.witness.vmis.values()
    assert [len(uids) for uids in vmis] == [1] * len(vmis)
    assert all(len(program.witness.launchers[uid]) == 1 for [uid] in vmis)
    assert all(len(nodes) == 1 for nodes in program.witness.bookings.values())
    assert all(child.running for child in program.processes.children.values())
    await program.verified()


async def test_everything_killed_at_once_goes_on(parts: Stack) -> None:
    """Power fails while ten VMs start for eight units: all roles come back, eight run, two wait."""
    program = parts
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 8})
    await program.nodes_known()
    await asyncio.gather(*(program.vm(f"vm{number}", [("l40s", 1)]) for number in range(10)))
    await eventually(program.gated, "some launcher is gated")
    for child in program.processes.children.values():
        child.kill()
    for name in ALL:
        await program.processes.revive(name)

    async def eight() -> bool:
        launchers = await program.launchers()
        return len(launchers) == 10 and sum(not gates(pod) for pod in launchers) == 8

    await eventually(eight, "eight run and two wait")
    await program.warned(2)
    await whole(program, running=8)
