"""virt-controller for pools: as many VMs as asked for; the youngest leave first, a refused one comes later."""

from typing_extensions import override

from binder.kube import ApiError
from deploy.world.apiserver import ApiServer
from deploy.world.history import Change
from deploy.world.manifests import Obj, controller_of, copied, deleting, encode, key_of, meta, owner_reference
from deploy.world.parts import Part
from schemas.kinds import VM, VM_POOL
from tests.simulation.lanes import Lane

AGAIN_S = (2.0, 8.0, 30.0)
"""After so long a VM is tried again, the last of them ever after."""


class Pools(Part):
    """One step brings one pool to its number. `server` speaks as virt-controller."""

    def __init__(self, server: ApiServer, lane: Lane) -> None:
        self._server, self._lane = server, lane
        self._due: dict[str, None] = {}
        self._tries: dict[str, int] = {}
        super().__init__(server.store)

    @override
    def noted(self, change: Change) -> None:
        if change.resource == VM_POOL:
            self._due[change.key] = None
        if change.resource == VM and (owner := controller_of(change.object)) and owner["kind"] == VM_POOL.kind:
            self._due[f"{meta(change.object)['namespace']}/{owner['name']}"] = None

    @override
    def reset(self) -> None:
        self._due |= dict.fromkeys(self._server.store.collection(VM_POOL).objects)
        super().reset()

    @override
    def has_work(self) -> bool:
        return bool(self._due)

    @override
    async def step(self) -> bool:
        if not self._due:
            return False
        key = next(iter(self._due))
        del self._due[key]
        found = self._server.store.get(VM_POOL, key)
        if found is not None and not deleting(found.object):
            try:
                await self._bring(found.object)
                self._tries.pop(key, None)
            except ApiError:
                tries = self._tries[key] = self._tries.get(key, 0) + 1
                self._lane.call_later(AGAIN_S[min(tries, len(AGAIN_S)) - 1], self._again, key)
        return True

    def _again(self, key: str) -> None:
        self._due[key] = None
        self._news.set()

    async def _bring(self, pool: Obj) -> None:
        namespace, replicas = meta(pool)["namespace"], pool["spec"].get("replicas", 1)
        mine = {
            meta(one.object)["name"]: one.object
            for one in self._server.store.collection(VM).objects.values()
            if (owner := controller_of(one.object)) is not None and owner["uid"] == meta(pool)["uid"]
        }
        for vm in list(mine.values())[replicas:]:
            if not deleting(vm):
                await self._server.delete(VM, namespace, key_of(vm).rpartition("/")[2])
        number = 0
        for _ in range(replicas - len(mine)):
            while f"{meta(pool)['name']}-{number}" in mine:
                number += 1
            name = f"{meta(pool)['name']}-{number}"
            await self._server.create(VM, namespace, encode(vm_of(pool, name)))
            mine[name] = {}


def vm_of(pool: Obj, name: str) -> Obj:
    """Return a VM of a pool."""
    template = copied(pool["spec"]["virtualMachineTemplate"])
    metadata = {"name": name, "namespace": meta(pool)["namespace"], "ownerReferences": [owner_reference(pool)]}
    head = {"apiVersion": VM.api_version, "kind": VM.kind, "metadata": metadata | (template.get("metadata") or {})}
    return head | {"spec": template["spec"]}
