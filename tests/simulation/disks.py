"""Volumes that are made where their first consumer lands: what a provisioner and CDI do, for one-disk DataVolumes."""

from typing_extensions import override

from deploy.world.apiserver import ApiServer
from deploy.world.history import Change
from deploy.world.manifests import Obj, controller_of, dig, encode, meta
from deploy.world.parts import Part
from schemas.kinds import DATA_VOLUME, NODE, POD, PV, PVC
from tests.simulation.labels import ZONE


class Disks(Part):
    """One step binds the claims of one pod that stands on a node: in the node's zone, for good."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._pods: dict[str, None] = {}
        super().__init__(server.store)

    @override
    def noted(self, change: Change) -> None:
        if change.resource == POD and change.type != "DELETED" and change.object["spec"].get("nodeName"):
            self._pods[change.key] = None

    @override
    def has_work(self) -> bool:
        return bool(self._pods)

    @override
    async def step(self) -> bool:
        if not self._pods:
            return False
        key = next(iter(self._pods))
        del self._pods[key]
        pod = self._server.store.get(POD, key)
        for volume in pod.object["spec"].get("volumes") or () if pod is not None else ():
            name = dig(volume, "persistentVolumeClaim", "claimName")
            claim = self._server.store.get(PVC, f"{key.partition('/')[0]}/{name}") if name else None
            if pod is not None and claim is not None and not claim.object["spec"].get("volumeName"):
                await self._bind(claim, pod.object["spec"]["nodeName"])
        return True

    async def _bind(self, claim: Change, node: str) -> None:
        found = self._server.store.get(NODE, node)
        zone = (meta(found.object).get("labels") or {}).get(ZONE, "") if found is not None else ""
        name = f"pv-{meta(claim.object)['uid'][:8]}"
        if self._server.store.get(PV, name) is None:
            await self._server.create(
                PV, "", encode({"apiVersion": "v1", "kind": "PersistentVolume"} | volume(name, zone))
            )
        bound = _stored(claim) | {"spec": claim.object["spec"] | {"volumeName": name}, "status": {"phase": "Bound"}}
        self._server.store.put(PVC, claim.key, bound)
        owner = controller_of(claim.object)
        source = (
            self._server.store.get(DATA_VOLUME, f"{meta(claim.object)['namespace']}/{owner['name']}") if owner else None
        )
        if source is not None:
            self._server.store.put(DATA_VOLUME, source.key, _stored(source) | {"status": {"phase": "Succeeded"}})


def _stored(change: Change) -> Obj:
    """Return an object as it can be stored anew: the store writes into its metadata."""
    whole = {key: value for key, value in change.object.items() if key not in {"apiVersion", "kind"}}
    return whole | {"metadata": dict(meta(change.object))}


def volume(name: str, zone: str) -> Obj:
    """Return a volume that the nodes of a zone reach."""
    reach = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    return {"metadata": {"name": name}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": reach}}}}
