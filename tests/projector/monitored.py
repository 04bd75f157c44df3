"""A workload on a scene: its monitor, pods, volume claims and load balancers, and accounting at work beside them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from binder.kube import Kube
from deploy.world.apiserver import ApiServer
from deploy.world.collector import Collector
from projector.accounting import Accounting
from schemas.kinds import DATA_VOLUME, POD, PV, PVC, SERVICE, WORKLOAD, WORKLOAD_MONITOR
from tests.projector.scene import SECONDS, Obj, Scene

APP = {"app": "db"}


@asynccontextmanager
async def accounting(scene: Scene, kube: Kube | None = None, *, collected: bool = True) -> AsyncIterator[Accounting]:
    """Account for the scene's workloads; on the model the collector works beside, where it is wanted."""
    made = Accounting(kube or scene.kube)
    parts = [made.run()]
    if collected and isinstance(scene.kube, ApiServer):
        parts.append(Collector(scene.kube).run())
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        yield made
        for task in tasks:
            assert not task.done(), task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def monitor(scene: Scene, name: str = "db", labels: Obj | None = None, **spec: object) -> Obj:
    """Create a monitor of `APP` unless told otherwise."""
    body = {"metadata": {"name": name, "labels": labels or {}}}
    return await scene.create(
        WORKLOAD_MONITOR, body | {"spec": {"selector": APP, "kind": "postgres", "type": "db"} | spec}
    )


async def pod(
    scene: Scene, name: str = "db-0", *requests: Obj, ready: bool = True, labels: Obj | None = None, **metadata: object
) -> Obj:
    """Create a pod with a container for each of the requests."""
    containers = [
        {"name": f"c{index}", "image": "none", "resources": {"requests": one}}
        for index, one in enumerate(requests or ({"cpu": "100m"},))
    ]
    init = [{"name": "init", "image": "none", "resources": {"requests": {"cpu": "8"}}}]
    made = await scene.create(
        POD,
        {
            "metadata": {"name": name, "labels": APP if labels is None else labels} | metadata,
            "spec": {"containers": containers, "initContainers": init, "schedulingGates": [{"name": "test/never"}]},
        },
    )
    if ready:
        await be_ready(scene, name)
    return made


async def be_ready(scene: Scene, name: str, status: str = "True") -> None:
    """Let a pod be ready, or not."""
    await scene.patch(POD, name, {"status": {"conditions": [{"type": "Ready", "status": status}]}}, "status")


async def volume(scene: Scene, name: str = "data", size: str = "10Gi") -> None:
    """Create a volume claim with a volume bound to it."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    volume_name = f"{scene.namespace}-{name}"
    bound = {"capacity": {"storage": size}, "hostPath": {"path": "/none"}}
    bound |= {"claimRef": {"namespace": scene.namespace, "name": name}}
    await scene.create(PV, {"metadata": {"name": volume_name}, "spec": spec | bound})
    resources = {"requests": {"storage": size}}
    await scene.create(
        PVC,
        {"metadata": {"name": name, "labels": APP}, "spec": spec | {"volumeName": volume_name, "resources": resources}},
    )
    if isinstance(scene.kube, ApiServer):
        await scene.patch(PVC, name, {"status": {"phase": "Bound", "capacity": {"storage": size}}}, "status")


async def service(scene: Scene, name: str = "db", kind: str = "LoadBalancer", **metadata: object) -> None:
    """Create a service."""
    body = {"metadata": {"name": name, "labels": APP} | metadata}
    await scene.create(SERVICE, body | {"spec": {"type": kind, "ports": [{"port": 80}]}})


async def workload(scene: Scene, name: str, so: Callable[[Obj], bool] = lambda _: True) -> Obj:
    """Wait until a Workload is so; return it."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while True:
        found = await scene.find(WORKLOAD, name)
        if found is not None and so(found):
            return found
        assert asyncio.get_running_loop().time() < deadline, f"{name}: {found}"
        await asyncio.sleep(0.02)


async def workloads(scene: Scene, *names: str) -> None:
    """Wait until exactly these Workloads stand in the scene's namespace."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while True:
        found = [one["metadata"]["name"] for one in await scene.all(WORKLOAD)]
        if found == sorted(names):
            return
        assert asyncio.get_running_loop().time() < deadline, found
        await asyncio.sleep(0.02)


async def says(scene: Scene, name: str, observed: int, available: int, *, operational: bool) -> None:
    """Wait until a monitor's status says this."""
    wanted = {"observedReplicas": observed, "availableReplicas": available, "operational": operational}
    deadline = asyncio.get_running_loop().time() + SECONDS
    while True:
        status = (await scene.get(WORKLOAD_MONITOR, name)).get("status")
        if status == wanted:
            return
        assert asyncio.get_running_loop().time() < deadline, status
        await asyncio.sleep(0.02)


def resources(shown: Obj) -> Obj:
    """Return the amounts a record says."""
    found: Obj = shown["status"]["resources"]
    return found


async def disk(scene: Scene, name: str, phase: str, labels: Obj | None = None) -> None:
    """Create a DataVolume in a phase, '' for one that has none yet."""
    await scene.create(DATA_VOLUME, {"metadata": {"name": name, "labels": APP if labels is None else labels}})
    if phase:
        await scene.patch(DATA_VOLUME, name, {"status": {"phase": phase}}, "status")


async def tells(scene: Scene, name: str, message: str, *, operational: bool) -> None:
    """Wait until a monitor's status tells this of its disks, and the one word for it."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while True:
        status = (await scene.get(WORKLOAD_MONITOR, name)).get("status") or {}
        word = "DataVolumeNotReady" if message else ""
        shown = (status.get("message", ""), status.get("reason", ""), status.get("operational"))
        if shown == (message, word, operational):
            return
        assert asyncio.get_running_loop().time() < deadline, status
        await asyncio.sleep(0.02)
