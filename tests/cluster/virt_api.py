"""virt-api on a real control plane: the emulator's answers over TLS, under KubeVirt's own configuration names.

`virt-api-mutator` sorts before `webhooks.gpubinder...`: the API server asks KubeVirt first, as in production.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deploy.world.clock import WallClock
from deploy.world.kubevirt import KubeVirt
from deploy.world.virt_webhooks import MUTATOR, VALIDATOR, WATCHED, VirtApi
from schemas.kinds import VMI
from tests.cluster.api import Api, Refused
from tests.cluster.webhooks import Served, serving


@asynccontextmanager
async def virt_api(api: Api, kubevirt: KubeVirt, directory: Path, namespace: str) -> AsyncIterator[VirtApi]:
    """Serve virt-api's webhooks and have the API server ask them; `namespace` is for a look whether it does."""
    served = VirtApi(kubevirt.config, WallClock())
    hooks = (Served(MUTATOR, served.mutate, WATCHED, mutating=True), Served(VALIDATOR, served.validate, WATCHED))
    spec = {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}
    sound = {"apiVersion": VMI.api_version, "kind": VMI.kind, "metadata": {"name": "look"}, "spec": spec}
    unsound = sound | {"spec": {"domain": {"devices": {}}}}

    async def answering() -> bool:
        made = await api.create(VMI.path(namespace), sound, dryRun="All")
        try:
            await api.create(VMI.path(namespace), unsound, dryRun="All")
        except Refused as refused:
            return refused.code == 422 and "finalizers" in made["metadata"]
        return False

    async with serving(api, directory, hooks, answering):
        yield served
