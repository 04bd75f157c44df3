"""Writes of the model server: admission, checks and storing, in the order of the real one.

Admission may give way to other tasks, so what was read before it is compared after it: a blind write
or a patch then starts anew on what is there now, one that named a version conflicts.
"""

from collections.abc import Callable

import msgspec

from binder.kube import ApiError, Cause, PatchKind
from deploy.world import lifecycle, pods, refusals, validation
from deploy.world.admission import Admission, Asked
from deploy.world.clock import Clock
from deploy.world.history import Change, Place
from deploy.world.lifecycle import tidy
from deploy.world.manifests import Obj
from deploy.world.patches import PatchFailed, json_patch, merge_patch
from deploy.world.scale import scale_of, scaled
from deploy.world.store import Store
from deploy.world.traits import Traits, traits_of
from deploy.world.validation import Rule
from schemas import kinds
from schemas.kinds import Resource

RETRIES = 5


class Writes:
    """The writing half of the server. `served`, `rules` and `defaults` (by kind) are filled by `ApiServer`."""

    def __init__(self, store: Store, admission: Admission, clock: Clock) -> None:
        self.served: dict[Place, Resource] = {}
        self.rules: dict[str, list[Rule]] = {}
        self.defaults: dict[str, list[Callable[[Obj], Obj]]] = {}
        self._store = store
        self._admission = admission
        self._clock = clock
        self._traits: dict[Place, Traits] = {}

    def traits(self, resource: Resource) -> Traits:
        """Return what the server knows of the resource."""
        place = (resource.group, resource.plural)
        if place not in self._traits:
            self._traits[place] = traits_of(resource)
        return self._traits[place]

    def check_served(self, resource: Resource) -> None:
        """Raise 404 for a resource that isn't served."""
        if (resource.group, resource.plural) not in self.served:
            raise refusals.not_served()

    def found(self, resource: Resource, namespace: str, name: str) -> Change:
        """Return the stored object. Raises 404."""
        self.check_served(resource)
        change = self._store.get(resource, _key(namespace, name))
        if change is None:
            raise refusals.not_found(resource, name)
        return change

    def seed_namespace(self, name: str, labels: dict[str, str] | None = None) -> None:
        """Create a namespace that a cluster is born with."""
        resource = kinds.NAMESPACE
        uid, now = self._store.new_uid(), self._clock.now()
        obj = lifecycle.created(
            resource,
            self.traits(resource),
            {"metadata": {"labels": labels} if labels else {}},
            name=name,
            uid=uid,
            now=now,
        )
        self._store.put(resource, name, obj)

    async def create(self, asked: Asked, new: Obj) -> bytes:
        """Create an object and return it as stored, or as it would be where the request is a dry run."""
        resource = asked.resource
        self.check_served(resource)
        self._check_place(asked, new)
        self._check_namespace(asked, new)
        new = tidy(await self._admission.mutate(asked, None, self._filled(resource, new)))
        new = self._born(asked, new)
        self._check(resource, None, new)
        await self._admission.validate(asked, None, new)
        self._check_namespace(asked, new)
        name = new["metadata"]["name"]
        key = _key(asked.namespace, name)
        if self._store.get(resource, key) is not None:
            raise refusals.already_exists(resource, name)
        if asked.dry_run:
            return msgspec.json.encode(new)
        return self._store.put(resource, key, new).raw

    def _born(self, asked: Asked, new: Obj) -> Obj:
        resource, meta = asked.resource, new["metadata"]
        if meta.get("resourceVersion"):
            raise ApiError(500, "InternalError", "resourceVersion should not be set on objects to be created")
        name = meta.get("name") or ""
        if not name and meta.get("generateName"):
            name = lifecycle.generated_name(meta["generateName"], self._store.new_suffix())
        uid, now = self._store.new_uid(), self._clock.now()
        if resource == kinds.POD:
            causes = tuple(pods.wrong_pod(new))
            if causes:
                raise refusals.invalid(resource, name, causes)
            new = self._prioritised(new)
        return lifecycle.created(resource, self.traits(resource), new, name=name, uid=uid, now=now)

    def _prioritised(self, pod: Obj) -> Obj:
        """Give a pod the number of its priority class, as the server's own admission does."""
        name = pod["spec"].get("priorityClassName", "")
        if name in pods.SYSTEM_PRIORITIES:
            return pod | {"spec": pod["spec"] | {"priority": pods.SYSTEM_PRIORITIES[name]}}
        classes = self._store.collection(kinds.PRIORITY_CLASS).objects
        if name:
            if name not in classes:
                pod_name = pod["metadata"].get("name", "")
                raise refusals.forbidden(kinds.POD, pod_name, f"no PriorityClass with name {name} was found")
            chosen = [classes[name].object]
        else:
            chosen = [found.object for found in classes.values() if found.object.get("globalDefault")]
        # Of several defaults the server takes the lowest.
        priority = min((int(one.get("value", 0)) for one in chosen), default=0)
        return pod | {"spec": pod["spec"] | {"priority": priority}}

    async def update(self, asked: Asked, make: Callable[[Obj], Obj], *, patch: bool = False) -> bytes:
        """Write what `make` makes of the stored object. Unchanged is no write: same version, no event."""
        resource, status = asked.resource, asked.subresource == "status"
        traits = self.traits(resource)
        self.check_served(resource)
        if asked.subresource == "scale" and traits.scaled:
            return await self._rescale(asked, make)
        if asked.subresource and not (status and traits.status):
            raise refusals.not_served()
        for _ in range(RETRIES):
            old = self.found(resource, asked.namespace, asked.name)
            new = tidy(make(old.object))
            self._check_place(asked, new)
            versioned = self._check_version(asked, traits, old.object, new, patch=patch)
            new = lifecycle.updated(resource, traits, old.object, self._filled(resource, new), status=status)
            new = tidy(await self._admission.mutate(asked, old.object, new))
            new = lifecycle.updated(resource, traits, old.object, new, status=status)
            self._check(resource, old.object, new)
            await self._admission.validate(asked, old.object, new)
            if self._store.get(resource, old.key) is old:
                return self._stored(old, new)
            if versioned:
                raise refusals.modified(resource, asked.name)
        raise refusals.modified(resource, asked.name)

    async def _rescale(self, asked: Asked, make: Callable[[Obj], Obj]) -> bytes:
        """Write the replicas of what `make` makes of the object's Scale; hooks see Scales, not the object."""
        resource = asked.resource
        for _ in range(RETRIES):
            old = self.found(resource, asked.namespace, asked.name)
            before = scale_of(old.object)
            after = tidy(make(before))
            versioned = self._check_version(asked, self.traits(resource), before, after, patch=True)
            after = await self._admission.mutate(asked, before, after)
            new = scaled(old.object, after)
            new = lifecycle.updated(resource, self.traits(resource), old.object, new, status=False)
            self._check(resource, old.object, new)
            await self._admission.validate(asked, before, scale_of(new))
            if self._store.get(resource, old.key) is old:
                self._stored(old, new)
                return msgspec.json.encode(scale_of(self.found(resource, asked.namespace, asked.name).object))
            if versioned:
                break
        raise refusals.modified(resource, asked.name)

    def _stored(self, old: Change, new: Obj) -> bytes:
        if lifecycle.is_over(old.resource, new):
            self._store.remove(old.resource, old.key)
            return msgspec.json.encode(new)
        if new == old.object:
            return old.raw
        return self._store.put(old.resource, old.key, new).raw

    def _check_version(self, asked: Asked, traits: Traits, old: Obj, new: Obj, *, patch: bool) -> bool:
        """Refuse a write of another version; return whether it named one."""
        version, current = new["metadata"].get("resourceVersion"), old["metadata"]["resourceVersion"]
        if version and version != current:
            raise refusals.modified(asked.resource, asked.name)
        if not version and not traits.blind and not patch:
            cause = Cause("metadata.resourceVersion", refusals.INVALID)
            raise refusals.invalid(asked.resource, asked.name, [cause])
        uid = new["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"] and not patch:
            raise refusals.conflict(asked.resource, asked.name, "Precondition failed: UID in precondition")
        causes = list(validation.wrong_change(old, new))
        if causes:
            raise refusals.invalid(asked.resource, asked.name, causes)
        return bool(version) and not patch

    async def delete(self, asked: Asked, *, uid: str, version: str, grace: int | None) -> None:
        """Remove an object, or mark it as going where something keeps it."""
        resource = asked.resource
        while True:
            old = self.found(resource, asked.namespace, asked.name)
            _check_preconditions(asked, old.object["metadata"], uid, version)
            await self._admission.validate(asked, old.object, None)
            if self._store.get(resource, old.key) is old:
                break
        wait = lifecycle.grace_of(resource, old.object, grace)
        going = lifecycle.deleting(resource, old.object, grace=wait, now=self._clock.now())
        if lifecycle.is_over(resource, going):
            self._store.remove(resource, old.key)
        elif going is not old.object:
            self._store.put(resource, old.key, going)

    def finish_namespace(self, name: str) -> None:
        """Let an emptied namespace go: what the namespace controller writes to `/finalize`."""
        old = self.found(kinds.NAMESPACE, "", name)
        self._stored(old, lifecycle.emptied(old.object))

    def bind(self, namespace: str, name: str, node: str, pod: Obj) -> None:
        """Put a pod on a node; `pod` is its new state. What a scheduler posts to `/binding`."""
        old = self.found(kinds.POD, namespace, name)
        self._store.put(kinds.POD, old.key, pod | {"spec": pod["spec"] | {"nodeName": node}})

    def _filled(self, resource: Resource, obj: Obj) -> Obj:
        for fill in self.defaults.get(resource.kind, ()):
            obj = fill(obj)
        return obj

    def _check(self, resource: Resource, old: Obj | None, new: Obj) -> None:
        causes = list(validation.wrong_metadata(resource, new))
        if resource == kinds.POD and old is not None:
            causes += pods.wrong_pod_change(old, new)
        for rule in self.rules.get(resource.kind, ()):
            causes += rule(old, new)
        if causes:
            raise refusals.invalid(resource, new["metadata"].get("name", ""), causes)

    def _check_place(self, asked: Asked, new: Obj) -> None:
        meta = new["metadata"]
        if asked.resource.namespaced:
            if not asked.namespace:
                raise refusals.bad_request("an empty namespace may not be set during creation")
            if meta.setdefault("namespace", asked.namespace) != asked.namespace:
                message = "the namespace of the provided object does not match the namespace sent on the request"
                raise refusals.bad_request(message)
        if asked.name and meta.setdefault("name", asked.name) != asked.name:
            message = f"the name of the object ({meta['name']}) does not match the name on the URL ({asked.name})"
            raise refusals.bad_request(message)

    def _check_namespace(self, asked: Asked, new: Obj) -> None:
        if not asked.resource.namespaced:
            return
        namespace = self._store.get(kinds.NAMESPACE, asked.namespace)
        if namespace is None:
            raise refusals.not_found(kinds.NAMESPACE, asked.namespace)
        if "deletionTimestamp" in namespace.object["metadata"]:
            raise refusals.terminating(asked.resource, new["metadata"].get("name", ""), asked.namespace)


def body_of(resource: Resource, body: bytes) -> Obj:
    """Read an object that was sent for a resource. Raises 400 where it isn't one."""
    try:
        obj = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise refusals.bad_request(f"the object provided is unrecognized: {error}") from error
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        raise refusals.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    if (obj.get("apiVersion"), obj.get("kind")) != (resource.api_version, resource.kind):
        sent = f"{obj.get('kind')} in version {obj.get('apiVersion')!r}"
        raise refusals.bad_request(f"{sent} cannot be handled as a {resource.kind} in {resource.api_version!r}")
    return tidy(obj)


def patched(old: Obj, body: bytes, kind: PatchKind) -> Obj:
    """Return the stored object with a patch applied to it. Raises 400 and 422."""
    try:
        patch = msgspec.json.decode(body)
        if kind is PatchKind.JSON:
            # Decoding is the quickest deep copy, and the patch is applied in place.
            document: Obj = msgspec.json.decode(msgspec.json.encode(old))
            return json_patch(document, patch)
        if not isinstance(patch, dict):
            raise refusals.bad_request("error decoding patch: a merge patch is an object")
        merged: Obj = merge_patch(old, patch)
    except PatchFailed as error:
        raise refusals.unpatchable() from error
    except (msgspec.DecodeError, ValueError) as error:
        raise refusals.bad_request(f"error decoding patch: {error}") from error
    return merged


def _check_preconditions(asked: Asked, meta: Obj, uid: str, version: str) -> None:
    if uid and uid != meta["uid"]:
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({meta['uid']})"
        raise refusals.conflict(asked.resource, asked.name, why)
    if version and version != meta["resourceVersion"]:
        why = f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record"
        raise refusals.conflict(asked.resource, asked.name, f"{why} ({meta['resourceVersion']})")


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
