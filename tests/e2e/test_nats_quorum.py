"""NATS loses a member, its quorum, its room: starts are refused in one sentence, and go on by themselves (T3, T8)."""

import asyncio
import resource
import time
from collections.abc import Iterable

import pytest

from deploy.local import LocalNatsCluster, NatsServer
from schemas.kinds import VMI
from schemas.streams import DECISIONS, EVENTS
from tests.cluster.api import Refused
from tests.cluster.nodes import L40S
from tests.e2e.recovery import Took
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually, vm_body
from tests.e2e.test_kills import whole
from tests.servers import stream_leader


async def refusal(program: Stack, why: str = "") -> str:
    """Start a VMI as a controller would, until it is refused for want of an answer, and why; return what it is told."""
    template = vm_body("asking", [("l40s", 1)])["spec"]["template"]
    body = {"apiVersion": VMI.api_version, "kind": VMI.kind, **template}
    body["metadata"] = {"name": "asking", **template["metadata"]}

    async def told() -> str:
        with pytest.raises(Refused) as met:
            await program.api.create(VMI.path(program.tenant), body)
        # On a busy machine the API server may give up two seconds after our own refusal was due, and NATS' own
        # refusal may come after that.
        return str(met.value) if met.value.code == 503 and why in str(met.value) else ""

    return await eventually(told, f"a start is refused in a sentence of ours: {why or 'any'}")


async def _one_runs(program: Stack) -> None:
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 3})
    await program.vm("before", [("l40s", 1)])
    await program.running("before")


async def test_nats_loses_a_member_then_its_quorum(clustered: Stack, took: Took) -> None:
    """With two of three servers all goes on; with one, starts are refused and what runs runs on; then all goes on."""
    program = clustered
    assert isinstance(program.nats, LocalNatsCluster)
    await _one_runs(program)
    leaders = [await stream_leader(program.nats, stream) for stream in (DECISIONS, EVENTS)]
    first = next(server for server in program.nats.servers if server not in leaders)
    second = next(server for server in program.nats.servers if server not in (first, leaders[0]))

    first.kill()
    since = time.monotonic()
    await program.vm("two-left", [("l40s", 1)])
    await program.pinned("two-left")
    took("NATS lost a member: next pin", since)

    second.kill()
    assert "nothing was booked, try again" in await refusal(program)
    await program.vm("none-left", [("l40s", 1)])
    assert await program.running("before") == "n1"
    assert not await program.launchers("none-left")
    first.spawn()
    second.spawn()
    since = time.monotonic()
    await program.pinned("none-left")
    took("NATS has its quorum back: next pin", since)

    await program.running("none-left")
    await program.nats.healthy()
    await whole(program, running=3)


@pytest.mark.parametrize("stream", [EVENTS, DECISIONS])
async def test_a_stream_that_is_full(clustered: Stack, took: Took, stream: str) -> None:
    """T8: a full stream refuses what comes, and so are starts; once there is room all goes on, nothing is lost."""
    program = clustered
    await _one_runs(program)
    described = await program.journal.manage(f"STREAM.INFO.{stream}", {}, stream)
    full = {**described.config, "max_bytes": described.state.bytes}
    await program.journal.manage(f"STREAM.UPDATE.{stream}", full, stream)

    said = await refusal(program, "has no room left" if stream == EVENTS else "gave no answer in time")
    assert "nothing was booked, try again" in said
    await program.vm("waits", [("l40s", 1)])
    assert await program.running("before") == "n1"
    assert not await program.launchers("waits")
    await program.journal.manage(f"STREAM.UPDATE.{stream}", {**full, "max_bytes": -1}, stream)
    since = time.monotonic()
    await program.pinned("waits")
    took(f"{stream} full, then given room: next pin", since)

    await program.running("waits")
    await whole(program, running=2)


def _disk(servers: Iterable[NatsServer], *, full: bool) -> None:
    """Let no file of these servers grow any more, as on a full disk; or let them grow again."""
    for server in servers:
        most = 1 if full else resource.RLIM_INFINITY
        resource.prlimit(server.child.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


async def test_a_disk_that_is_full(clustered: Stack, took: Took) -> None:
    """T8: no server can write: starts are refused. With room again and the servers restarted all goes on, whole.

    A nats-server that could not write a message refuses all that follow until it is started again.
    """
    program = clustered
    assert isinstance(program.nats, LocalNatsCluster)
    await _one_runs(program)
    _disk(program.nats.servers, full=True)

    assert "nothing was booked, try again" in await refusal(program)
    await program.vm("waits", [("l40s", 1)])
    assert await program.running("before") == "n1"
    assert not await program.launchers("waits")
    for server in program.nats.servers:
        server.kill()
    since = time.monotonic()
    await asyncio.gather(*(server.start() for server in program.nats.servers))
    await program.pinned("waits")
    took("disk full, then servers started with room: next pin", since)

    await program.running("waits")
    await whole(program, running=2)
