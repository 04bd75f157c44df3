"""The operator's hand on a real control plane: pause and resume, move and release, as commands on the stream."""

import asyncio

from deploy.local import LocalNats
from schemas.kinds import VMI
from tests.cluster.nodes import L40S
from tests.deploy.command import Ran, gpubinder
from tests.e2e.stack import Stack


async def say(program: Stack, *words: str) -> Ran:
    """Run a command against the program's NATS."""
    assert isinstance(program.nats, LocalNats)
    return await asyncio.to_thread(gpubinder, *words, "--nats", program.nats.url)


async def test_claims_are_moved_and_released_by_hand(program: Stack) -> None:
    """An idle claim goes where it is told, and what it is told stands in the log; what runs is left alone."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.node("n2", {L40S: 2})
    mine = f"{program.tenant}/mine"
    await program.order("mine", "l40s")
    await program.held("mine", "Bound", node="n1")

    moved = await say(program, "move", mine, "--to", "n2", "--who", "night shift")
    assert moved.code == 0, moved
    await program.held("mine", "Bound", "Placed", node="n2")

    await program.vm("vm", [], held=["mine"])
    assert await program.running("vm") == "n2"
    [pod] = await program.launchers("vm")
    for words in (("move", mine), ("release", mine)):
        refused = await say(program, *words)
        assert refused.code != 0, refused
        assert "stop" in refused.out + refused.err
    [after] = await program.launchers("vm")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]

    await program.stop("vm")
    await program.api.until(VMI.path(program.tenant, "vm"), lambda found: found is None, 60.0)
    await program.held("mine", "Bound", vm="")
    released = await say(program, "release", mine)
    assert released.code == 0, released
    lost = await program.held("mine", "Lost", "Commanded", vm="")
    assert "nodeName" not in lost
    told = await say(program, "explain", mine)
    assert "Lost" in told.out, told

    # Its VM does not wait the ten minutes for which a released claim is left alone.
    await program.start("vm")
    assert await program.running("vm") in {"n1", "n2"}
    await program.held("mine", "Bound", "Placed", "vm")
    await program.verified()


async def test_a_pause_holds_orders_and_starts_and_ends(program: Stack) -> None:
    """D5: while it is paused orders and launchers wait and say so; resumed, they are served."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    assert (await say(program, "pause", "--who", "night shift")).code == 0
    await program.order("mine", "l40s")
    await program.vm("vm", [("l40s", 1)])
    await program.held("mine", "Pending", "Paused")
    await program.waiting("vm", "Paused")

    assert (await say(program, "resume")).code == 0
    await program.held("mine", "Bound", "Placed", node="n1")
    assert await program.running("vm") == "n1"
