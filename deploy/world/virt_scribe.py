"""How the emulated KubeVirt writes: whole objects, patches that test what was seen, Events.

Every answer goes into the cache at once, so that the controllers read what they wrote.
"""

from binder.kube import ApiError, Kube, PatchKind
from deploy.world.clock import Clock, stamp
from deploy.world.informer import Informer
from deploy.world.manifests import Obj, decode, encode, meta, owner_reference
from deploy.world.virt_names import CONTROLLER_REVISION
from schemas.kinds import EVENT

COMPONENT = "virtualmachine-controller"
_NOTE_MOST = 1024


class Scribe:
    """Writes for one controller. `chatter`: also write what only people read (Events, revisions, observed versions)."""

    def __init__(self, kube: Kube, clock: Clock, *, chatter: bool) -> None:
        self.kube = kube
        self.clock = clock
        self.chatter = chatter
        self._events = 0

    def now(self) -> str:
        """Return the time as the API server prints it."""
        return stamp(self.clock.now())

    async def create(self, cache: Informer, namespace: str, obj: Obj) -> Obj:
        """Post an object; return it as stored."""
        made = decode(await self.kube.create(cache.resource, namespace, encode(obj)))
        cache.put(made)
        return made

    async def replace(self, cache: Informer, obj: Obj, *, subresource: str = "") -> Obj:
        """Put an object under the version it was read at; return it as stored."""
        metadata = meta(obj)
        body = await self.kube.replace(
            cache.resource, metadata.get("namespace", ""), metadata["name"], encode(obj), subresource=subresource
        )
        stored = decode(body)
        cache.put(stored)
        return stored

    async def patch(self, cache: Informer, obj: Obj, operations: list[Obj], *, subresource: str = "") -> Obj:
        """Send a JSON patch; return the object as stored."""
        metadata = meta(obj)
        body = await self.kube.patch(
            cache.resource,
            metadata.get("namespace", ""),
            metadata["name"],
            encode(operations),
            kind=PatchKind.JSON,
            subresource=subresource,
        )
        stored = decode(body)
        cache.put(stored)
        return stored

    async def delete(self, cache: Informer, obj: Obj, *, grace_seconds: int | None = None) -> None:
        """Delete the object by name; gone already is fine."""
        metadata = meta(obj)
        try:
            await self.kube.delete(
                cache.resource, metadata.get("namespace", ""), metadata["name"], grace_seconds=grace_seconds
            )
        except ApiError as error:
            if error.code != 404:
                raise

    async def revise(self, vm: Obj, name: str) -> None:
        """Keep the VM's spec as the ControllerRevision its VMI is started from."""
        revision: Obj = {
            "apiVersion": CONTROLLER_REVISION.api_version,
            "kind": CONTROLLER_REVISION.kind,
            "metadata": {"name": name, "namespace": meta(vm)["namespace"], "ownerReferences": [owner_reference(vm)]},
            "data": {"spec": vm["spec"]},
            "revision": meta(vm).get("generation", 1),
        }
        try:
            await self.kube.create(CONTROLLER_REVISION, meta(vm)["namespace"], encode(revision))
        except ApiError as error:
            if error.code != 409:
                raise

    async def revised(self, vm: Obj, name: str) -> Obj | None:
        """Return the VM's spec as a ControllerRevision keeps it, None where there is none."""
        try:
            found = decode(await self.kube.get(CONTROLLER_REVISION, meta(vm)["namespace"], name))
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        spec: Obj = found["data"]["spec"]
        return spec

    async def tell(self, about: Obj, reason: str, note: str, *, warning: bool = False) -> None:
        """Write a Kubernetes Event about an object; one that is refused is lost, as KubeVirt's are."""
        if not self.chatter:
            return
        self._events += 1
        metadata = meta(about)
        event: Obj = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "name": f"{metadata['name'][:200]}.{metadata['uid'][:8]}.{self._events:x}",
                "namespace": metadata["namespace"],
            },
            "eventTime": f"{self.now()[:-1]}.000000Z",
            "reportingController": COMPONENT,
            "reportingInstance": COMPONENT,
            "action": reason,
            "reason": reason,
            "note": note[:_NOTE_MOST],
            "type": "Warning" if warning else "Normal",
            "regarding": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
        }
        try:
            await self.kube.create(EVENT, metadata["namespace"], encode(event))
        except ApiError as error:
            if error.code not in {403, 404, 409}:
                raise


def changed(path: str, old: object, new: object) -> list[Obj]:
    """Return the operations that bring `path` from old to new, testing that the old still stands."""
    if old == new:
        return []
    if old is None:
        return [{"op": "add", "path": path, "value": new}]
    test: Obj = {"op": "test", "path": path, "value": old}
    if new is None:
        return [test, {"op": "remove", "path": path}]
    return [test, {"op": "replace", "path": path, "value": new}]
