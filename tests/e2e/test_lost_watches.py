"""What the watches missed: deletions while the API server was away, and kinds that come late."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from deploy.local import LocalNats
from schemas.kinds import CRD, GPU_CLASS, POD, VM, VMI
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import KUBEVIRT_KINDS
from tests.cluster.kubevirt import kubevirt_on
from tests.cluster.nodes import L40S, Nodes
from tests.e2e.process import ALL, answers
from tests.e2e.recovery import Took
from tests.e2e.stack import Stack, stack
from tests.e2e.tenant import eventually
from tests.e2e.test_kills import whole


async def test_a_deletion_that_no_watch_saw_frees_its_units(parts: Stack) -> None:
    """C22: a VM goes while ingest's watches are cut, and the server forgets it: listed anew, the next one lands."""
    program = parts
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.vm("gone", [("l40s", 1)])
    await program.running("gone")
    await program.vm("next", [("l40s", 1)])
    await program.waiting("next", "NoRoom")
    ingest = program.processes.children["ingest"]
    before = (await program.told()).sessions["pods"].number

    # Frozen, so that it does not watch again; and cut first, or what is sent to it waits in its sockets.
    ingest.pause()
    await program.plane.restart("kube-apiserver")
    await program.delete("gone")
    await program.plane.forget()
    ingest.resume()

    assert await program.running("next") == "n1"
    assert all(child.running for child in program.processes.children.values())
    assert (await program.told()).sessions["pods"].number > before
    await program.verified()


async def test_an_api_server_that_is_killed_costs_time_alone(program: Stack) -> None:
    """C22: the API server dies with a VM half-way and comes back; our processes go on by themselves."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    await program.vm("before", [("l40s", 1)])
    await program.running("before")
    await program.vm("during", [("l40s", 1)])
    await program.plane.restart("kube-apiserver")

    assert await program.running("during") == "n1"
    assert program.processes.children["gpubinder"].running
    assert len(program.witness.vmis["during"]) == 1
    assert len(await program.quiet()) == 2
    await program.verified()


async def test_an_api_server_that_is_away_for_longer_than_leases_last(parts: Stack, took: Took) -> None:
    """C22: every leader loses its lease and stops; once the server is back they lead again, without a restart."""
    program = parts
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 3})
    await program.vm("before", [("l40s", 1)])
    await program.running("before")
    await program.vm("during", [("l40s", 1)])
    program.plane.kill("kube-apiserver")

    async def all_stopped() -> bool:
        elected = ("binder", "ingest", "projector")
        logs = [program.processes.children[name].log.read_text() for name in elected]
        return all("lease not renewed in time" in log for log in logs)

    await eventually(all_stopped, "every leader has lost its lease")
    since = time.monotonic()
    await program.plane.revive("kube-apiserver")
    took("API server back after longer than leases last: it answers", since)
    await program.vm("after", [("l40s", 1)])
    await asyncio.gather(*(program.pinned(name) for name in ("during", "after")))
    took("API server back after longer than leases last: next pin", since)

    await asyncio.gather(*(program.running(name) for name in ("during", "after")))
    await whole(program, running=3)


async def removed(api: Api) -> None:
    """Take every CRD of KubeVirt away, and wait until none is served."""
    names = [crd["metadata"]["name"] for crd in (await api.get(CRD.path()))["items"]]
    gone = [name for name in names if name.endswith("kubevirt.io")]
    assert len(gone) == len(KUBEVIRT_KINDS)
    for name in gone:
        await api.delete(CRD.path(name=name))
    for name in gone:
        await api.until(CRD.path(name=name), lambda found: found is None)


@pytest_asyncio.fixture
async def without_kubevirt(control_plane: ControlPlane, api: Api) -> AsyncIterator[None]:
    """A cluster that serves no kind of KubeVirt; afterwards it does again."""
    try:
        await removed(api)
        yield
    finally:
        await asyncio.to_thread(control_plane.admin.install, KUBEVIRT_KINDS)


async def told_that_they_are_missing(program: Stack) -> None:
    """Wait until the log says that no kind of KubeVirt's is served."""

    async def told() -> bool:
        sessions = (await program.told()).sessions
        kinds = ("virtualmachines", "virtualmachineinstances", "kubevirts")
        return all(kind in sessions and not sessions[kind].served for kind in kinds)

    await eventually(told, "the log says that KubeVirt's kinds are not served")


async def uninstalled(program: Stack, vm: str) -> None:
    """Take KubeVirt away under a VM that runs; nobody is left who would take its finalizers off."""
    for path in (VM.path(program.tenant, vm), VMI.path(program.tenant, vm)):
        await program.api.patch(path, {"metadata": {"finalizers": None}})
    await removed(program.api)
    await told_that_they_are_missing(program)


async def ended(program: Stack) -> None:
    """Let every launcher go that KubeVirt left behind."""
    for pod in await program.launchers():
        await program.api.delete(POD.path(program.tenant, pod["metadata"]["name"]), gracePeriodSeconds="0")


async def test_kinds_of_kubevirt_that_come_late_are_followed(
    without_kubevirt: None,
    control_plane: ControlPlane,
    api: Api,
    nodes: Nodes,
    nats: LocalNats,
    namespace: str,
    tmp_path: Path,
) -> None:
    """D12, C61: orders are bound before KubeVirt is installed and while it is away; VMs start without a restart.

    A claim that a VM held when the kinds went away stays Bound where it is, and its VM starts there again.
    """
    async with stack(control_plane, api, nodes, nats, namespace, tmp_path, bare=True) as program:
        health = program.processes.health_port
        child = program.processes.start("gpubinder", ALL, health=health)
        await told_that_they_are_missing(program)
        await program.gpu_class("l40s", L40S)
        await program.node("n1", {L40S: 2})
        await program.order("mine", "l40s")
        assert (await program.held("mine", "Bound"))["nodeName"] == "n1"
        await eventually(lambda: asyncio.to_thread(answers, health, "/readyz"), "it is ready without KubeVirt")

        await asyncio.to_thread(control_plane.admin.install, KUBEVIRT_KINDS)
        async with kubevirt_on(control_plane, api, namespace, tmp_path, chatter=False):
            await program.ready()
            await program.vm("vm", [("l40s", 1)], held=["mine"])
            assert await program.running("vm") == "n1"
            await program.held("mine", "Bound", vm="vm")

        await uninstalled(program, "vm")
        await program.node("n2", {L40S: 1})
        await program.order("late", "l40s")
        assert (await program.held("late", "Bound"))["nodeName"] == "n2"
        assert (await program.held("mine", "Bound"))["nodeName"] == "n1"
        await eventually(lambda: asyncio.to_thread(answers, health, "/readyz"), "it is ready without KubeVirt")

        await asyncio.to_thread(control_plane.admin.install, KUBEVIRT_KINDS)
        await ended(program)
        (tmp_path / "again").mkdir()
        async with kubevirt_on(control_plane, api, namespace, tmp_path / "again", chatter=False):
            await program.vm("vm", [("l40s", 1)], held=["mine"])
            assert await program.running("vm") == "n1"
            assert (await program.held("mine", "Bound", vm="vm"))["nodeName"] == "n1"
            assert child.running
            await program.verified()
            await program.leave()
        assert await api.find(GPU_CLASS.path(name="l40s")) is None
