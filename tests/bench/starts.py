"""KubeVirt's least part in a start: the VMI, its launcher pod, and the line in status that names it.

The emulated KubeVirt makes some twenty writes for a VM's life, and the API server and Python's time for
them would be most of what is measured. What is measured here are three writes and the program's own.
"""

import asyncio
from types import TracebackType
from typing import Self

from deploy.world.launcher import launcher_pod
from deploy.world.virt_config import Config
from schemas.kinds import POD, VMI, Resource
from schemas.names import GPUS_ANNOTATION, REFERENCE_LABEL, REFERENCE_VALUE
from tests.bench.ground import CLASS
from tests.cluster.api import Api, Object, Refused
from tests.cluster.controlplane import ControlPlane
from tests.cluster.nodes import L40S
from tests.cluster.users import KUBEVIRT as KUBEVIRT_USER

WORKERS = 16
"""Starts at once, as the emulated KubeVirt has them."""
SERVER_ERRORS = 500
AGAIN_S = 0.2
ENTRY = f'[{{"className":"{CLASS}","count":1}}]'


class Starts:
    """Starts and ends VMs of one unit in a namespace, as KubeVirt's account; `refused`: creates that came again."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._api = Api(plane.kubeconfig(KUBEVIRT_USER))
        self._namespace = namespace
        self._config = Config()
        self._pods: dict[str, str] = {}
        self._workers = asyncio.Semaphore(WORKERS)
        self.refused = 0

    async def __aenter__(self) -> Self:
        await self._api.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._api.delete(VMI.path(self._namespace))
        await self._api.delete(POD.path(self._namespace), gracePeriodSeconds="0")
        await self._api.__aexit__(kind, error, trace)

    async def start(self, name: str, *, plain: bool = False) -> None:
        """Start a VM; `plain`: with the device named in its spec, and nothing of ours."""
        async with self._workers:
            vmi = await self._create(VMI, vmi_of(name, plain=plain))
            pod = await self._create(POD, launcher_pod(vmi, self._config))
            self._pods[name] = pod["metadata"]["name"]
            status = {"phase": "Scheduling", "activePods": {pod["metadata"]["uid"]: ""}}
            await self._api.patch(VMI.path(self._namespace, name), {"status": status})

    async def _create(self, resource: Resource, body: Object) -> Object:
        """Create an object; again where a webhook had too little time, as a controller does."""
        while True:
            try:
                return await self._api.create(resource.path(self._namespace), body)
            except Refused as refused:
                if refused.code < SERVER_ERRORS:
                    raise
                self.refused += 1
                await asyncio.sleep(AGAIN_S)

    async def end(self, name: str) -> None:
        """End a VM: its pod goes at once, as if its kubelet had ended it."""
        await self._api.delete(POD.path(self._namespace, self._pods.pop(name)), gracePeriodSeconds="0")
        await self._api.delete(VMI.path(self._namespace, name))


def vmi_of(name: str, *, plain: bool = False) -> Object:
    """Return a VMI of one unit, as it is posted; `plain`: with the device named, and nothing of ours."""
    marks: Object = {
        "labels": {REFERENCE_LABEL: REFERENCE_VALUE},
        "annotations": {GPUS_ANNOTATION: ENTRY},
    }
    devices: Object = {"gpus": [{"name": "gpu-0", "deviceName": L40S}]} if plain else {}
    return {
        "apiVersion": VMI.api_version,
        "kind": VMI.kind,
        "metadata": {"name": name, **({} if plain else marks)},
        "spec": {"domain": {"devices": devices, "memory": {"guest": "1Gi"}}},
    }
