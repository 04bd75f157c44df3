"""virt-controller for VMI replica sets: VMIs posted with generateName, so that admission sees no name."""

from deploy.world.informer import Informer
from deploy.world.manifests import Obj, copied, deleting, dig, has_condition, meta, oldest_first, owner_reference
from deploy.world.virt_scribe import Scribe
from deploy.world.virt_status import is_final


class ReplicaSetController:
    """Reconciles replica sets by key: as many living VMIs as asked for, finished ones cleaned up."""

    def __init__(self, sets: Informer, vmis: Informer, scribe: Scribe) -> None:
        self._sets = sets
        self._vmis = vmis
        self._scribe = scribe

    async def reconcile(self, key: str) -> None:
        """Make or delete VMIs until the number is right. Raises `ApiError` where it has to be tried again."""
        replica_set = self._sets.at(key)
        if replica_set is None or deleting(replica_set):
            return
        mine = oldest_first(self._vmis.owned(meta(replica_set)["uid"]))
        for vmi in mine:
            if is_final(vmi) and not deleting(vmi):
                await self._scribe.delete(self._vmis, vmi)
        alive = [vmi for vmi in mine if not is_final(vmi) and not deleting(vmi)]
        asked = replica_set["spec"].get("replicas")
        wanted = 0 if replica_set["spec"].get("paused") else (1 if asked is None else int(asked)) - len(alive)
        namespace = meta(replica_set)["namespace"]
        for _ in range(wanted):
            vmi = await self._scribe.create(self._vmis, namespace, vmi_of(replica_set))
            note = f"Started the virtual machine by creating the new virtual machine instance {meta(vmi)['name']}"
            await self._scribe.tell(replica_set, "SuccessfulCreate", note)
        for vmi in alive[len(alive) + wanted :] if wanted < 0 else ():
            await self._scribe.delete(self._vmis, vmi)
        await self._write_status(key)

    async def _write_status(self, key: str) -> None:
        replica_set = self._sets.at(key)
        if replica_set is None:
            return
        alive = [vmi for vmi in self._vmis.owned(meta(replica_set)["uid"]) if not is_final(vmi) and not deleting(vmi)]
        new = copied(replica_set)
        status: Obj = new.setdefault("status", {})
        status["replicas"] = len(alive)
        status["readyReplicas"] = sum(has_condition(vmi, "Ready", "True") for vmi in alive)
        if new != replica_set:
            await self._scribe.replace(self._sets, new, subresource="status")


def vmi_of(replica_set: Obj) -> Obj:
    """Return one VMI of a replica set: nameless, its base name without a dash."""
    template: Obj = replica_set["spec"]["template"]
    given = dig(template, "metadata") or {}
    metadata: Obj = {
        "generateName": given.get("name") or given.get("generateName") or meta(replica_set)["name"],
        "namespace": meta(replica_set)["namespace"],
        "labels": dict(given.get("labels") or {}),
        "ownerReferences": [owner_reference(replica_set)],
    }
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": metadata,
        "spec": copied(template["spec"]),
    }
