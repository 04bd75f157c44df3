"""The limit: a process that makes the program's own writes for each gated launcher, and nothing else.

No stream, no deciding, no log: the webhooks patch every object alike, the node is the next with room,
and claim, status and pin go out through the same client, rendered by the same functions and as many side
by side. What it reaches, the API server and the emulated KubeVirt allow.
"""

import asyncio
import itertools
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from binder.kube import PatchKind, WatchEvent
from binder.kube_client import KubeClient
from ingest.pods import read_pod
from projector import render
from projector.effects import CreateClaim, Pin, WriteStatus
from projector.reads import decode
from projector.service import SETS_AT_ONCE
from schemas.claims import PLACED_REASON, Phase
from schemas.decisions import VmiId
from schemas.kinds import GPU_CLAIM, POD, VMI, Resource
from schemas.names import GATE, POLICY_ANNOTATION, POLICY_WAIT
from schemas.objects import PodView, Stamp
from schemas.writes import SeenClaim
from tests.bench.ground import CLASS, Bystanders, Ground
from tests.cluster.api import Api
from tests.cluster.nodes import L40S
from tests.cluster.users import GPUBINDER
from tests.cluster.webhooks import Served, patching, serving


class Job(msgspec.Struct, frozen=True):
    """What the loop is told: whom it speaks as, where, and how many units of which resource each node has."""

    admin: str
    kubeconfig: str
    directory: str
    namespace: str
    class_name: str
    resource: str
    nodes: tuple[str, ...]
    units: int


class Loop:
    """Makes the writes of launchers as they are seen gated."""

    def __init__(self, job: Job, kube: KubeClient) -> None:
        self._job = job
        self._kube = kube
        # Node by node, and from the first again: by then the VMs that stood there have ended.
        self._places = itertools.cycle(node for node in job.nodes for _ in range(job.units))
        self._at_once = asyncio.Semaphore(SETS_AT_ONCE)
        self._begun: set[str] = set()

    async def run(self, version: str) -> None:
        """Follow the pods for ever."""
        async with asyncio.TaskGroup() as tasks:
            async for event in self._kube.watch(
                POD, namespace=self._job.namespace, resource_version=version, timeout_seconds=3600
            ):
                pod = self._gated(event)
                if pod is not None:
                    self._begun.add(pod.uid)
                    tasks.create_task(self._write(pod, next(self._places)))

    def _gated(self, event: WatchEvent) -> PodView | None:
        if event.type not in {"ADDED", "MODIFIED"}:
            return None
        pod = read_pod(event.object)
        return pod if isinstance(pod, PodView) and GATE in pod.gates and pod.uid not in self._begun else None

    async def _write(self, pod: PodView, node: str) -> None:
        vmi = VmiId(pod.namespace, pod.owner_name, pod.owner_uid)
        name = f"{pod.owner_name}-0"
        async with self._at_once:
            body = render.claim_body(CreateClaim(vmi, name, self._job.class_name, 1))
            claim = decode(await self._kube.create(GPU_CLAIM, pod.namespace, body), SeenClaim).metadata
            shown = WriteStatus(
                vmi=vmi,
                name=name,
                stamp=Stamp(1, 1, 0),
                phase=Phase.BOUND,
                node=node,
                resource=self._job.resource,
                placed=True,
                reason=PLACED_REASON,
                message=f"all units of the set are on node {node}",
            )
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            patch = render.status_patch(shown, uid=claim.uid, generation=claim.generation, before=(), now=now)
            await self._kube.patch(GPU_CLAIM, pod.namespace, name, patch, kind=PatchKind.JSON, subresource="status")
            pin = render.pin_patch(Pin(vmi, pod.name, pod.uid, node, pod.terms or ()))
            await self._kube.patch(POD, pod.namespace, pod.name, pin, kind=PatchKind.JSON)


def hooks(job: Job) -> tuple[Served, ...]:
    """Return webhooks that patch every VMI and every pod of the namespace as the program patches its own."""
    gpus = [{"name": "gpu-0", "deviceName": job.resource}]
    policy = "/metadata/annotations/" + POLICY_ANNOTATION.replace("/", "~1")
    return (
        _hook(job, "straight-vmi", VMI, {"/spec/domain/devices/gpus": gpus, policy: POLICY_WAIT}),
        _hook(job, "straight-pod", POD, {"/spec/schedulingGates": [{"name": GATE}]}),
    )


def _hook(job: Job, name: str, resource: Resource, added: Mapping[str, object]) -> Served:
    review = patching([{"op": "add", "path": path, "value": value} for path, value in added.items()])
    return Served(name, review, ((resource, ("CREATE",)),), mutating=True, namespace=job.namespace)


async def _work(job: Job) -> None:
    kube = await KubeClient.connect(kubeconfig=job.kubeconfig, idle_seconds=3600)
    probe = {"apiVersion": "v1", "metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    try:
        async with Api(Path(job.admin)) as api:

            async def answering() -> bool:
                made = await api.create(POD.path(job.namespace), probe, dryRun="All")
                return "schedulingGates" in made["spec"]

            async with serving(api, Path(job.directory), hooks(job), answering):
                version = (await kube.list_page(POD, namespace=job.namespace, limit=1)).resource_version
                working = asyncio.create_task(Loop(job, kube).run(version))
                print("ready", flush=True)
                # Whoever started the loop ends it by closing its input.
                ended = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
                await asyncio.wait({working, ended}, return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    await working
                working.cancel()
    finally:
        await kube.close()


@asynccontextmanager
async def straight_loop(here: Ground, there: Bystanders, units: int) -> AsyncIterator[None]:
    """Run the loop in a process of its own for the length of a block; `units`: how many each node has."""
    job = Job(
        admin=str(here.plane.kubeconfig()),
        kubeconfig=str(here.plane.kubeconfig(GPUBINDER)),
        directory=str(there.directory / "hooks"),
        namespace=there.stack.tenant,
        class_name=CLASS,
        resource=L40S,
        nodes=there.nodes,
        units=units,
    )
    argv = (sys.executable, "-m", "tests.bench.straight_loop", msgspec.json.encode(job).decode())
    process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if not await process.stdout.readline():
            raise RuntimeError("the straight loop did not start; what it said stands above")
        yield
    finally:
        process.stdin.close()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(_work(msgspec.json.decode(sys.argv[1], type=Job)))
