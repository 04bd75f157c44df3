"""The witness itself: it breaks its silence for each law, at the moment and not at the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from schemas.kinds import POD
from schemas.names import REFERENCE_LABEL, REFERENCE_VALUE
from tests.cluster.api import Api, Object
from tests.cluster.nodes import L40S, Nodes
from tests.e2e.tenant import eventually
from tests.e2e.witness import Witness


@asynccontextmanager
async def watching(api: Api, namespace: str) -> AsyncIterator[Witness]:
    """A witness that knows of one card on node n1."""
    witness = Witness(api, namespace, {"n1": {L40S: 1}})
    task = asyncio.create_task(witness.run())
    yield witness
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def pod(name: str, *, reference: bool = False) -> Object:
    """A pod that somebody put onto n1 by hand, with a card."""
    container = {"name": "c", "image": "none", "resources": {"limits": {L40S: "1"}}}
    labels = {REFERENCE_LABEL: REFERENCE_VALUE} if reference else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": "n1", "containers": [container]}}


@pytest.mark.parametrize("seen_late", [False, True])
async def test_two_pods_on_one_card_are_seen(api: Api, nodes: Nodes, namespace: str, seen_late: bool) -> None:
    """D2: a second pod on the one card of a node is a broken law, in a watch or in a list, and stays one."""
    await nodes.add("n1", {L40S: "1"})
    await api.create(POD.path(namespace), pod("a"))
    if seen_late:
        await api.create(POD.path(namespace), pod("b"))

    async with watching(api, namespace) as witness:

        async def broken() -> list[str]:
            return witness.broken

        if not seen_late:
            await api.create(POD.path(namespace), pod("b"))
        assert await eventually(broken, "the law is seen broken") == [f"n1 gives 2 {L40S}, it offers 1"]
        for name in ("a", "b"):
            await api.delete(POD.path(namespace, name), gracePeriodSeconds="0")
        await api.until(POD.path(namespace), lambda found: found is not None and not found["items"])
        assert witness.broken


async def test_a_launcher_let_go_without_a_pin_is_seen(api: Api, nodes: Nodes, namespace: str) -> None:
    """D3: a pod of ours without gate and without pin is a broken law."""
    await nodes.add("n1", {L40S: "1"})
    async with watching(api, namespace) as witness:
        await api.create(POD.path(namespace), pod("a", reference=True))

        async def broken() -> list[str]:
            return witness.broken

        assert await eventually(broken, "the law is seen broken") == ["a is ungated and not pinned"]
        await api.delete(POD.path(namespace, "a"), gracePeriodSeconds="0")
