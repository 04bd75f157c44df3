"""Leaders that die, freeze and wake beside their standby: nothing is decided twice, no stale write lands (T2, T22)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from schemas.decisions import SetPlaced
from schemas.kinds import POD
from tests.cluster.nodes import L40S
from tests.cluster.users import GPUBINDER
from tests.cluster.webhooks import Served, serving
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.test_kills import whole
from tests.e2e.witness import gates

Object = dict[str, Any]


async def _held_by_another(program: Stack, role: str, former: str) -> str:
    async def another() -> str:
        found = await program.holder(role)
        return found if found != former else ""

    return await eventually(another, f"another process than {former} holds the lease of {role}")


@pytest.mark.parametrize("role", ["binder", "projector", "ingest"])
async def test_a_leader_that_freezes_and_wakes_does_no_harm(parts: Stack, role: str) -> None:
    """T2: a leader stands still, its standby takes over, it wakes up and still believes it leads: each unit once."""
    program = parts
    await program.apart(f"{role}-2")
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    await program.node("n2", {L40S: 2})
    await program.nodes_known()
    await program.vm("before", [("l40s", 1)])
    await program.running("before")
    leader = await eventually(lambda: program.holder(role), f"{role} is led")

    program.processes.children[leader].pause()
    await program.vm("frozen", [("l40s", 1)])
    assert await _held_by_another(program, role, leader) != leader
    await program.running("frozen")
    program.processes.children[leader].resume()
    await asyncio.gather(*(program.vm(name, [("l40s", 1)]) for name in ("woken1", "woken2")))

    await asyncio.gather(*(program.running(name) for name in ("woken1", "woken2")))
    await program.vm("last", [("l40s", 1)])
    await program.waiting("last", "NoRoom")
    await program.warned(1)
    await whole(program, running=4)


@pytest.mark.parametrize("role", ["binder", "projector", "ingest"])
async def test_a_standby_takes_over_from_a_leader_that_dies(parts: Stack, role: str) -> None:
    """A leader is killed in the middle of a burst: its standby goes on, without anybody's restart."""
    program = parts
    await program.apart(f"{role}-2")
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 8})
    leader = await eventually(lambda: program.holder(role), f"{role} is led")
    names = [f"vm{number}" for number in range(8)]
    await asyncio.gather(*(program.vm(name, [("l40s", 1)]) for name in names))
    await eventually(program.gated, "some launcher is gated")
    program.processes.children[leader].kill()

    await asyncio.gather(*(program.running(name) for name in names))
    del program.processes.children[leader]
    await whole(program, running=8)


class Pins:
    """Holds our pins on their way through the API server, from the first (`asked`) until `passed` is set."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.passed = asyncio.Event()
        self._called = False

    async def _review(self, review: Object) -> Object:
        request = review["request"]
        self._called = True
        if request["operation"] == "UPDATE" and request["userInfo"]["username"] == GPUBINDER.name:
            self.asked.set()
            await self.passed.wait()
        answer = {"uid": request["uid"], "allowed": True}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}

    @asynccontextmanager
    async def held(self, program: Stack, directory: Path) -> AsyncIterator[None]:
        """Hold them for the length of the block."""
        look: Object = {"metadata": {"name": "look"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}

        async def answering() -> bool:
            await program.api.create(POD.path(program.tenant), look, dryRun="All")
            return self._called

        hook = Served("held-pins", self._review, [(POD, ["CREATE", "UPDATE"])], namespace=program.tenant)
        async with serving(program.api, directory, [hook], answering):
            yield


async def _placed_first(program: Stack) -> None:
    """Start `a`, which gets the one unit, then `b`, whose launcher stands behind the gate."""
    await program.vm("a", [("l40s", 1)])
    await program.logged(SetPlaced, "a")
    await program.vm("b", [("l40s", 1)])
    await eventually(lambda: program.gated("b"), "the launcher of b is gated")


async def _one_unit(program: Stack) -> None:
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})


async def _both_die(program: Stack) -> None:
    """Kill binder and projector, and start them again."""
    for name in ("binder", "projector"):
        program.processes.children[name].kill()
    for name in ("binder", "projector"):
        await program.processes.revive(name)


async def _a_alone_runs(program: Stack) -> None:
    """Judge: `a` runs with one booking, `b` stays gated, and follows once `a` has ended."""
    assert await program.running("a") == "n1"
    assert await program.bound("a") == ["n1"]
    await program.waiting("b", "NoRoom")
    [pod] = await program.gated("b")
    [claim] = await program.claims("b")
    assert claim["metadata"]["uid"] not in program.witness.bookings
    await whole(program, running=1)
    await program.stop("a")
    assert await program.running("b") == "n1"
    [after] = await program.launchers("b")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_killed_after_the_decision_before_any_write(parts: Stack) -> None:
    """C20, first order: the place is in the log alone when binder and projector die; nobody else gets it."""
    program = parts
    await _one_unit(program)
    program.processes.children["projector"].pause()
    await _placed_first(program)
    assert await program.claims() == []
    await _both_die(program)

    await _a_alone_runs(program)


async def test_killed_between_status_and_pin(parts: Stack, tmp_path: Path) -> None:
    """C20, second order: the claim says Bound, the pin is held on its way when both die; it lands once."""
    program = parts
    await _one_unit(program)
    pins = Pins()
    async with pins.held(program, tmp_path / "held"):
        await _placed_first(program)
        await pins.asked.wait()
        assert await program.bound("a") == ["n1"]
        [pod] = await program.launchers("a")
        assert gates(pod)
        await _both_die(program)
        pins.passed.set()

    await _a_alone_runs(program)


async def test_killed_after_the_pin_before_anybody_saw_it(parts: Stack, tmp_path: Path) -> None:
    """C20, third order: pinned, and ingest stands still; the new leader's view is older than the last write."""
    program = parts
    await _one_unit(program)
    pins, ingest = Pins(), program.processes.children["ingest"]
    async with pins.held(program, tmp_path / "held"):
        await _placed_first(program)
        await pins.asked.wait()
        ingest.pause()
        pins.passed.set()
        await program.api.until(POD.path(program.tenant), _some_ungated)
    await _both_die(program)
    # The new leader writes and waits for progress that ingest owes it.
    await _held_by_another(program, "binder", "")
    ingest.resume()

    await _a_alone_runs(program)


def _some_ungated(found: Object | None) -> bool:
    return found is not None and any(not gates(pod) for pod in found["items"])
