"""Faults of others at the log and its leaders, through the chart: answers that are lost, members apart, clocks.

As in `hurts`, one unit of n1 is free, and things are left as they were.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path

from deploy.role_names import Role
from deploy.world.kubelet import UNEXPECTED, Refusal
from deploy.world.kubevirt import KubeVirt
from schemas.kinds import GPU_CLAIM, LEASE, NODE, POD, VMI
from schemas.names import LEASE_PREFIX
from tests.chart.hurts import gone, whole
from tests.chart.kubelet import Pod
from tests.chart.pod_places import CLIENTS, NATS_PODS
from tests.chart.release import NAMESPACE as HOME
from tests.chart.release import SECONDS, TENANT, Release
from tests.cluster.api import Object, Refused
from tests.cluster.nodes import L40S
from tests.e2e.tenant import Tenant, eventually
from tests.e2e.witness import gates
from tests.nats_proxy import NatsProxy

SKIPPED = "NodeSkipped"


def _is_ack(frame: bytes) -> bool:
    return b'"stream":"GPUBINDER_DECISIONS"' in frame and b'"seq":' in frame


@asynccontextmanager
async def lossy(release: Release) -> AsyncIterator[list[NatsProxy]]:
    """Have the binders reach NATS by lines that lose one in ten of the answers to an append, at the third first."""
    met = 2

    def loses(frame: bytes) -> bool:
        nonlocal met
        met += _is_ack(frame)
        return _is_ack(frame) and met % 10 == 5

    async with AsyncExitStack() as stack:
        places = release.pods.places
        lines = [await stack.enter_async_context(NatsProxy(places.nats[name][CLIENTS])) for name in NATS_PODS]
        for line in lines:
            line.loses = loses
        places.ways["binder"] = {
            name: int(line.url.rpartition(":")[2]) for name, line in zip(NATS_PODS, lines, strict=True)
        }
        await _replaced(release, "binder")
        yield lines
        places.ways.clear()
        await _replaced(release, "binder")


async def _replaced(release: Release, component: str) -> None:
    """Delete the pods of a component one after the other; wait until others are there."""
    for pod in list(release.pods.of(component)):
        await release.api.delete(POD.path(HOME, pod.name))
        await release.replaced(component, pod.name)


async def acknowledgements_are_lost(release: Release, one: Tenant, count: int) -> None:
    """One in ten of the answers to appends is lost, and a second leader writes: each order has one place."""
    await one.node("n2", {L40S: count})
    orders = [f"order{number}" for number in range(count)]
    async with lossy(release) as lines:
        for order in orders[: count // 2]:
            await _ordered(one, order)
        leader = await release.leader("binder")
        leader.child.kill()
        for order in orders[count // 2 :]:
            await _ordered(one, order)
        assert sum(line.lost for line in lines) >= count // 10
        await whole(release)
    for order in orders:
        await one.api.delete(GPU_CLAIM.path(TENANT, order))
    for order in orders:
        await one.api.until(GPU_CLAIM.path(TENANT, order), lambda found: found is None, SECONDS)
    await one.api.delete(NODE.path(name="n2"))


async def _ordered(one: Tenant, order: str) -> None:
    """Order a unit, again where the order is refused for now, and wait until it is Bound."""

    async def taken() -> bool:
        try:
            await one.order(order, "l40s")
        except Refused as refused:
            return refused.code == HTTPStatus.CONFLICT
        return True

    await eventually(taken, f"{order} is taken", SECONDS)
    await one.held(order, "Bound", seconds=SECONDS)


@asynccontextmanager
async def refused_by_its_node(one: Tenant, kubevirt: KubeVirt, vm: str) -> AsyncIterator[None]:
    """A VM whose launcher n1 did not take: it waits, and n1 is skipped for it."""

    def no_devices(pod: Object) -> Refusal | None:
        return UNEXPECTED if vm in pod["metadata"]["name"] else None

    kubevirt.kubelet.plugin = no_devices
    await one.vm(vm, [("l40s", 1)])
    await one.waiting(vm, SKIPPED)
    kubevirt.kubelet.plugin = lambda _: None
    yield
    await gone(one, vm)


async def a_member_is_cut_off(release: Release, one: Tenant, kubevirt: KubeVirt) -> None:
    """The NATS server to which the leading binder is connected hears no other: what n1 refused is not forgotten."""
    async with refused_by_its_node(one, kubevirt, "cut"):
        member = await _member_of(release, await release.leader("binder"))
        release.pods.places.part(member)
        old = await one.vmi("cut")
        assert old is not None
        await one.api.delete(VMI.path(TENANT, "cut"))

        async def another_waits() -> bool:
            vmi, claims = await one.vmi("cut"), await one.claims("cut")
            fresh = vmi is not None and vmi["metadata"]["uid"] != old["metadata"]["uid"]
            return fresh and any(_reasons(claim) == [SKIPPED] for claim in claims)

        await eventually(another_waits, "the next VMI waits, and n1 is skipped for it as well", SECONDS)
        assert all(gates(pod) for pod in await one.launchers("cut"))
        release.pods.places.mend()
        await release.leader("binder")
        await whole(release)


def _reasons(claim: Object) -> Sequence[str]:
    return [one["reason"] for one in (claim.get("status") or {}).get("conditions") or ()]


async def _member_of(release: Release, pod: Pod) -> str:
    """Return the NATS pod to which a pod is connected."""
    peers = await asyncio.to_thread(_connected, pod)
    found = [name for name, ports in release.pods.places.nats.items() if ports[CLIENTS] in peers]
    assert len(found) == 1, (peers, found)
    return found[0]


def _connected(pod: Pod) -> set[int]:
    """Return the TCP ports to which a pod's process is connected, as Linux tells."""
    process = Path(f"/proc/{pod.child.pid}")
    sockets = {str(file.readlink()) for file in (process / "fd").iterdir() if file.is_symlink()}
    rows = [line.split() for line in (process / "net" / "tcp").read_text().splitlines()[1:]]
    return {int(row[2].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in sockets}


async def clocks_differ(release: Release, one: Tenant, kubevirt: KubeVirt) -> None:
    """Stamps of leases and kubelets are wrong by up to an hour: who leads goes on leading, a skip lasts on."""
    path = LEASE.path(HOME, f"{LEASE_PREFIX}{Role.BINDER}")
    async with refused_by_its_node(one, kubevirt, "skewed"):
        leader = await release.leader("binder")
        for hours in (-1, 1, -1):
            wrong = _stamp(timedelta(hours=hours))
            await release.api.patch(path, {"spec": {"renewTime": wrong}})
            await release.api.until(path, partial(_is_renewed, wrong), SECONDS)
        assert (await release.leader("binder")) is leader

        leader.child.pause()
        await release.api.patch(path, {"spec": {"renewTime": _stamp(timedelta(hours=1))}})

        async def taken() -> bool:
            return (await release.leader("binder")) is not leader

        await eventually(taken, "a standby leads, by its own clock", SECONDS)
        leader.child.resume()
        await one.waiting("skewed", SKIPPED)
        assert all(gates(pod) for pod in await one.launchers("skewed"))


def _stamp(off: timedelta) -> str:
    return (datetime.now(UTC) + off).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _is_renewed(since: str, lease: Object | None) -> bool:
    return lease is not None and lease["spec"]["renewTime"] != since
