"""The pod that leads everything dies, freezes or is cut off: its standby goes on, and how soon (T2, T22, C20).

NATS is a cluster of three with every write fsynced. Two pods have all working roles, so one of them leads
them all; the webhooks have a process of their own, since they have one address here.
"""

import asyncio
import time
from pathlib import Path

from tests.cluster.nodes import L40S
from tests.cluster.users import GPUBINDER
from tests.e2e.recovery import Took
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.test_kills import whole
from tests.nats_proxy import NatsProxy
from tests.wire import Wire

WORKERS = ("binder", "ingest", "projector")


async def pair(program: Stack, *, nats: str = "", kubeconfig: Path | None = None) -> None:
    """Start a pod that leads every role, by ways of its own if given, a standby and the webhooks; one VM runs."""
    program.processes.start("one", WORKERS, nats=nats, kubeconfig=kubeconfig)

    async def leads_all() -> bool:
        return all([await program.holder(role) == "one" for role in WORKERS])

    await eventually(leads_all, "one leads every role")
    program.processes.start("two", WORKERS)
    program.processes.start("door", ["webhooks"])
    await program.ready()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    await program.node("n2", {L40S: 2})
    await program.vm("before", [("l40s", 1)])
    await program.running("before")


async def goes_on(program: Stack, took: Took, what: str, since: float) -> None:
    """Start a VM after what happened to the leader: it gets its unit, and the standby leads every role."""
    await program.vm("after", [("l40s", 1)])
    await program.pinned("after")
    took(what, since)

    async def two_leads_all() -> bool:
        return all([await program.holder(role) == "two" for role in WORKERS])

    # At once, most often: a lease changes hands anew where a busy machine kept its holder from renewing it.
    await eventually(two_leads_all, "the standby leads every role")
    await program.running("after")


async def ends_well(program: Stack) -> None:
    """Start VMs for the rest of the units and one more: what is left is given once, and the log is whole."""
    await asyncio.gather(*(program.vm(name, [("l40s", 1)]) for name in ("later1", "later2")))
    await asyncio.gather(*(program.running(name) for name in ("later1", "later2")))
    await program.vm("last", [("l40s", 1)])
    await program.waiting("last", "NoRoom")
    await whole(program, running=4)


async def test_a_leader_that_is_killed(clustered: Stack, took: Took) -> None:
    """Every role's leader dies at once: a VM that is started at that moment gets its unit from the standby."""
    program = clustered
    await pair(program)

    program.processes.children["one"].kill()
    await goes_on(program, took, "leader killed: next pin", time.monotonic())
    await program.processes.revive("one")

    await ends_well(program)


async def test_a_leader_that_is_paused_beyond_its_lease_and_woken(clustered: Stack, took: Took) -> None:
    """T2: for a while two believe that they lead everything; the log's fence and the stamps let one of them write."""
    program = clustered
    await pair(program)

    program.processes.children["one"].pause()
    await goes_on(program, took, "leader frozen: next pin", time.monotonic())
    program.processes.children["one"].resume()

    await ends_well(program)


async def test_a_leader_that_is_cut_off_from_nats(clustered: Stack, took: Took) -> None:
    """A leader that can renew its leases and reach no NATS lets go of them: it would keep everyone from working."""
    program = clustered
    async with NatsProxy(program.nats.servers[0].port) as way:
        await pair(program, nats=way.url)

        way.cut()
        await goes_on(program, took, "leader cut off from NATS: next pin", time.monotonic())
        way.mend()

        await ends_well(program)


async def test_a_leader_that_is_cut_off_from_the_api_server(clustered: Stack, took: Took, tmp_path: Path) -> None:
    """T22: it can't renew and stops; what it had on its way arrives late and changes nothing."""
    program = clustered
    told = program.plane.kubeconfig(GPUBINDER)
    port = int(program.plane.server.rpartition(":")[2])
    async with Wire(port) as way:
        kubeconfig = tmp_path / "wired.kubeconfig"
        kubeconfig.write_text(told.read_text().replace(f":{port}", f":{way.port}"))
        await pair(program, kubeconfig=kubeconfig)

        way.cut()
        await goes_on(program, took, "leader cut off from the API server: next pin", time.monotonic())
        way.mend()

        await ends_well(program)
