"""Garbage collection and the end of namespaces: what goes because something else went.

As the real collector in the background: a dependent goes once none of its owners exists under the uid
it names, an owner that never existed included; owners of a kind that isn't served are left undecided.
"""

from typing_extensions import override

from binder.kube import ApiError, PatchKind
from deploy.world.apiserver import ApiServer
from deploy.world.history import Change
from deploy.world.manifests import Obj, encode
from deploy.world.parts import Part
from schemas import kinds
from schemas.kinds import Resource

COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
NAMESPACER = "system:serviceaccount:kube-system:namespace-controller"


class Collector(Part):
    """`Collector(server)`: one step looks at one dependent, or deletes one object of a namespace that goes.

    What a webhook keeps from going is tried again after the next write.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._as_collector = server.as_user(COLLECTOR)
        self._as_namespacer = server.as_user(NAMESPACER)
        self._dependents: dict[tuple[Resource, str], None] = {}
        self._namespaces: dict[str, None] = {}
        self._refused: dict[tuple[Resource, str], str] = {}  # -> namespace
        super().__init__(server.store)
        self.reset()

    @override
    def reset(self) -> None:
        self._dependents.clear()
        self._namespaces.clear()
        self._refused.clear()
        for change in self._server.store.everything():
            self.noted(change._replace(before=None))
        super().reset()

    @override
    def noted(self, change: Change) -> None:
        while self._refused:
            refused, namespace = self._refused.popitem()
            self._dependents[refused] = None
            self._note_namespace(namespace)
        meta = change.object["metadata"]
        if change.type == "DELETED":
            self._dependents.update(dict.fromkeys(self._server.store.dependents(meta["uid"])))
            self._note_namespace(meta.get("namespace", ""))
        elif _owners(change.object) and (change.before is None or _owners(change.before) != _owners(change.object)):
            self._dependents[change.resource, change.key] = None
        if change.resource == kinds.NAMESPACE:
            self._note_namespace(change.key)
        elif change.before is None:
            self._note_namespace(meta.get("namespace", ""))

    def _note_namespace(self, name: str) -> None:
        namespace = self._server.store.get(kinds.NAMESPACE, name) if name else None
        if namespace is not None and "deletionTimestamp" in namespace.object["metadata"]:
            self._namespaces[name] = None

    @override
    def has_work(self) -> bool:
        return bool(self._dependents or self._namespaces)

    @override
    async def step(self) -> bool:
        if self._dependents:
            resource, key = next(iter(self._dependents))
            del self._dependents[resource, key]
            await self._look_at(resource, key)
            return True
        if self._namespaces:
            await self._empty(next(iter(self._namespaces)))
            return True
        return False

    async def _look_at(self, resource: Resource, key: str) -> None:
        found = self._server.store.get(resource, key)
        if found is None or not _owners(found.object):
            return
        owners = _owners(found.object)
        there = [owner for owner in owners if self._exists(owner, found.object)]
        meta = found.object["metadata"]
        place = (resource, meta.get("namespace", ""), meta["name"])
        try:
            if not there:
                await self._as_collector.delete(*place, uid=meta["uid"], resource_version=meta["resourceVersion"])
            elif there != owners:
                patch: Obj = {"metadata": {"uid": meta["uid"], "ownerReferences": there}}
                await self._as_collector.patch(*place, encode(patch), kind=PatchKind.MERGE)
        except ApiError as error:
            if error.code != 404:
                self._refused[resource, key] = meta.get("namespace", "")

    def _exists(self, owner: Obj, dependent: Obj) -> bool:
        """Whether the owner is there, or can't be looked for."""
        group = owner["apiVersion"].rpartition("/")[0]
        served = self._server.writes.served.values()
        resource = next((one for one in served if (one.group, one.kind) == (group, owner["kind"])), None)
        if resource is None:
            return True
        namespace = dependent["metadata"].get("namespace", "")
        if resource.namespaced and not namespace:
            return True
        key = f"{namespace}/{owner['name']}" if resource.namespaced else owner["name"]
        found = self._server.store.get(resource, key)
        return found is not None and found.object["metadata"]["uid"] == owner["uid"]

    async def _empty(self, name: str) -> None:
        """Delete the next object of the namespace; once nothing is left, let the namespace go."""
        content = [one for one in self._server.store.everything() if one.object["metadata"].get("namespace") == name]
        for change in content:
            meta = change.object["metadata"]
            if "deletionTimestamp" in meta or (change.resource, change.key) in self._refused:
                continue
            try:
                await self._as_namespacer.delete(change.resource, name, meta["name"])
            except ApiError as error:
                if error.code != 404:
                    self._refused[change.resource, change.key] = name
            return
        # Looked at again when what is left is gone: its removal is a write.
        del self._namespaces[name]
        if not content:
            self._server.writes.finish_namespace(name)


def _owners(obj: Obj) -> list[Obj]:
    owners: list[Obj] = obj["metadata"].get("ownerReferences") or []
    return owners
