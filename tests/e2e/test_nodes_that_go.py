"""Nodes that go with claims and VMs on them: what is held goes Lost or moves, what never ran starts anew."""

from typing import Any

from schemas.kinds import VMI
from tests.cluster.nodes import H100, L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually

GRACE_SECONDS = 150.0
"""Well above the grace of a node that is gone (a minute of logical time); nothing is decided by it."""

APART: dict[str, Any] = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"no": "such-pod"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


async def test_what_a_node_takes_along_comes_back(program: Stack) -> None:
    """C44, D8-D10: an order goes Lost and is rebound before a newer one, another moves, a VM that never ran goes.

    One wait serves all three, as the grace is a minute.
    """
    await program.unasked()
    await program.gpu_class("l40s", L40S)
    await program.gpu_class("h100", H100)
    await program.node("n1", {L40S: 2, H100: 1})
    await program.node("n2", {H100: 2})
    await program.order("whole", "l40s", 2)
    await program.held("whole", "Bound")
    await program.order("moves", "h100")
    await program.held("moves", "Bound", node="n1")
    await program.order("newer", "l40s")
    await program.held("newer", "Pending", "NoRoom")
    # kube-scheduler finds no place for it, so that it is pinned and never runs.
    await program.node("n3", {H100: 4})
    await program.vm("stuck", [("h100", 4)], affinity=APART)
    assert await program.bound("stuck") == ["n3"]
    first = await program.vmi("stuck")
    assert first is not None

    await program.nodes.remove("n1")
    await program.nodes.remove("n3")
    await program.node("n4", {H100: 4})

    lost = await program.held("whole", "Lost", "NodeGone", seconds=GRACE_SECONDS)
    assert "nodeName" not in lost
    await program.held("moves", "Bound", "Placed", node="n2")
    await program.held("newer", "Pending")
    [event] = await eventually(lambda: about(program, "whole"), "the order is told that it is Lost")
    assert (event["type"], event["reason"]) == ("Warning", "NodeGone")

    await program.api.until(
        VMI.path(program.tenant, "stuck"),
        lambda vmi: vmi is not None and vmi["metadata"]["uid"] != first["metadata"]["uid"],
        GRACE_SECONDS,
    )
    [event] = await about(program, "stuck")
    assert (event["reason"], event["regarding"]["uid"]) == ("NodeGone", first["metadata"]["uid"])
    assert await program.bound("stuck") == ["n4"]

    await program.node("n1", {L40S: 2})
    await program.held("whole", "Bound", "Placed", node="n1")
    await program.held("newer", "Pending", "NoRoom")
    await program.verified()


async def about(program: Stack, name: str) -> list[dict[str, Any]]:
    """Return our events about one object that speak of a node that is gone."""
    return [event for event in await program.events("NodeGone") if event["regarding"]["name"] == name]
