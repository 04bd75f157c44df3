"""The ground that benchmarks stand on: one control plane for all, nodes and a namespace for each round."""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import structlog
from msgspec import Struct

from deploy.child import free_ports
from deploy.local import LocalNats, LocalNatsCluster
from schemas.kinds import GPU_CLASS, KUBEVIRT, NAMESPACE
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import KUBEVIRT_KINDS, OUR_KINDS
from tests.cluster.kubevirt import HOME, kubevirt_on
from tests.cluster.nodes import L40S, Nodes
from tests.e2e.process import ALL
from tests.e2e.stack import Stack, stack

CLASS = "l40s"
ONE: Mapping[str, Sequence[str]] = {"gpubinder": ALL}
"""All roles in one process."""
Say = Callable[[str], None]
"""Tells the terminal what is being done."""


class Ground(Struct, frozen=True):
    """A control plane that runs, our eyes and hands on it, and a place for files."""

    plane: ControlPlane
    api: Api
    directory: Path
    numbers: "itertools.count[int]"

    def fresh(self) -> tuple[str, Path]:
        """Return a name and a directory that no round had before."""
        name = f"bench-{next(self.numbers)}"
        directory = self.directory / name
        directory.mkdir()
        return name, directory


@asynccontextmanager
async def ground() -> AsyncIterator[Ground]:
    """Start the control plane with all kinds; it goes with its data at the end."""
    # Lines of the emulator and of clients would tear the progress bar.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory(prefix="gpubinder-bench-") as directory, ControlPlane() as plane:
        await asyncio.to_thread(plane.admin.install, [*KUBEVIRT_KINDS, *OUR_KINDS])
        async with Api(plane.kubeconfig()) as api:
            yield Ground(plane, api, Path(directory), itertools.count(1))


@asynccontextmanager
async def nodes_of(here: Ground, name: str, count: int, units: int) -> AsyncIterator[tuple[Nodes, tuple[str, ...]]]:
    """Add nodes with so many units of one resource each; they go at the end."""
    nodes, names = Nodes(here.api), tuple(f"{name}-{number:03}" for number in range(count))
    try:
        await asyncio.gather(*(nodes.add(one, {L40S: str(units)}) for one in names))
        yield nodes, names
    finally:
        await nodes.remove_all()


@asynccontextmanager
async def tenant_of(here: Ground, name: str) -> AsyncIterator[None]:
    """Make the namespace of a round, in which pods can be created."""
    await here.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    await here.api.until(account, lambda found: found is not None)
    try:
        yield
    finally:
        await here.api.delete(f"/api/v1/namespaces/{name}")


@asynccontextmanager
async def class_of(here: Ground) -> AsyncIterator[None]:
    """Make the one class that the VMs ask for."""
    body = {"metadata": {"name": CLASS}, "spec": {"resourceName": L40S, "mode": "Passthrough"}}
    await here.api.create(GPU_CLASS.path(), {"apiVersion": GPU_CLASS.api_version, "kind": GPU_CLASS.kind, **body})
    try:
        yield
    finally:
        await here.api.delete(GPU_CLASS.path(name=CLASS))


@asynccontextmanager
async def kubevirt_resource(here: Ground) -> AsyncIterator[None]:
    """Make the resource that says where KubeVirt is, for those who play KubeVirt themselves."""
    if await here.api.find(NAMESPACE.path(name=HOME)) is None:
        await here.api.create(NAMESPACE.path(), {"metadata": {"name": HOME}})
    body = {"apiVersion": KUBEVIRT.api_version, "kind": KUBEVIRT.kind, "metadata": {"name": "kubevirt"}, "spec": {}}
    await here.api.create(KUBEVIRT.path(HOME), body)
    try:
        yield
    finally:
        await here.api.delete(KUBEVIRT.path(HOME, "kubevirt"))


@asynccontextmanager
async def program(
    here: Ground,
    count: int,
    units: int,
    *,
    bare: bool = True,
    processes: Mapping[str, Sequence[str]] = ONE,
    cluster: bool = False,
) -> AsyncIterator[Stack]:
    """Everything our roles need, all of them running: nodes, NATS, an empty log, webhooks known, a class.

    `bare`: KubeVirt is whoever starts VMs (`tests.bench.starts`), else the emulated one. `processes`: the
    roles of each process; those of more than one have a status page. `cluster`: NATS is three servers.
    """
    name, directory = here.fresh()
    async with (
        nodes_of(here, name, count, units) as (nodes, _),
        tenant_of(here, name),
        (LocalNatsCluster if cluster else LocalNats)(directory / "nats") as nats,
        kubevirt_resource(here) if bare else nullcontext(),
        stack(here.plane, here.api, nodes, nats, name, directory, bare=bare) as up,
        # After the stack, which removes what other rounds left.
        class_of(here),
    ):
        ports = free_ports(len(processes)) if len(processes) > 1 else [0]
        for port, (process, roles) in zip(ports, processes.items(), strict=True):
            up.processes.start(process, roles, health=port)
        await up.ready()
        yield up


@asynccontextmanager
async def bystanders(here: Ground, count: int, units: int, *, bare: bool = True) -> AsyncIterator["Bystanders"]:
    """The same nodes, NATS and namespace without the program; with the emulated KubeVirt unless `bare`."""
    name, directory = here.fresh()
    async with (
        nodes_of(here, name, count, units) as (nodes, names),
        tenant_of(here, name),
        class_of(here),
        LocalNats(directory / "nats") as nats,
    ):
        there = Bystanders(Stack(here.plane, here.api, nodes, nats, name, f"{name}-system"), names, directory)
        if bare:
            yield there
            return
        async with kubevirt_on(here.plane, here.api, name, directory, chatter=False):
            yield there
            await there.stack.leave()


class Bystanders(Struct, frozen=True):
    """Who makes VMs where the program is not; the nodes' names; a directory for files."""

    stack: Stack
    nodes: tuple[str, ...]
    directory: Path
