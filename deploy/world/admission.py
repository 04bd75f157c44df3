"""Admission in the model: webhooks as callables, asked in the order and with the words of the real server.

Mutating hooks see a request without identity (no uid, with `generateName` no name either), validating
ones the object as it will be stored (T17). A hook that fails closed and breaks refuses the request.
"""

import base64
from collections.abc import Awaitable, Callable

import msgspec

from binder.kube import ApiError
from deploy.world import refusals, scale
from deploy.world.manifests import Obj, copied
from deploy.world.patches import PatchFailed, json_patch
from schemas.kinds import Resource

Review = Callable[[Obj], Awaitable[Obj]]
"""Takes an AdmissionReview with a request, returns one with a response."""


class Hook(msgspec.Struct, frozen=True):
    """One webhook. `name` orders the mutating ones and stands in refusals.

    `resources`: plurals with their group as `pods` or `virtualmachines.kubevirt.io`, a subresource behind
    a slash. `when`: match conditions over the request. `fail_closed`: a breaking hook refuses; else it is
    passed over. `reinvoke`: asked once more if a later hook changed the object.
    """

    name: str
    review: Review
    resources: tuple[str, ...]
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    mutating: bool = False
    fail_closed: bool = True
    reinvoke: bool = False
    when: Callable[[Obj], bool] | None = None


class Asked(msgspec.Struct, frozen=True):
    """The request that hooks are asked about."""

    operation: str
    resource: Resource
    namespace: str
    name: str
    user: str
    groups: tuple[str, ...] = ()
    subresource: str = ""
    dry_run: bool = False


class Admission:
    """The hooks of one server. `next_uid` names each request."""

    def __init__(self, next_uid: Callable[[], str]) -> None:
        self._hooks: list[Hook] = []
        self._next_uid = next_uid

    def register(self, hook: Hook) -> None:
        """Ask this hook from now on."""
        self._hooks.append(hook)
        self._hooks.sort(key=lambda one: one.name)

    def withdraw(self, name: str) -> None:
        """Forget the hook of that name."""
        self._hooks = [hook for hook in self._hooks if hook.name != name]

    async def mutate(self, asked: Asked, old: Obj | None, new: Obj) -> Obj:
        """Return the object after all mutating hooks. Raises ApiError where one refuses."""
        hooks = self._of(asked, mutating=True)
        seen: dict[str, Obj] = {}
        for hook in hooks:
            new = await self._asked(hook, asked, old, new)
            seen[hook.name] = new
        for hook in hooks:
            if hook.reinvoke and seen[hook.name] != new:
                new = await self._asked(hook, asked, old, new)
        return new

    async def validate(self, asked: Asked, old: Obj | None, new: Obj | None) -> None:
        """Ask all validating hooks. Raises ApiError where one refuses."""
        for hook in self._of(asked, mutating=False):
            await self._asked(hook, asked, old, new)

    def _of(self, asked: Asked, *, mutating: bool) -> list[Hook]:
        place = refusals.qualified(asked.resource.plural, asked.resource.group)
        place += f"/{asked.subresource}" if asked.subresource else ""
        return [
            hook
            for hook in self._hooks
            if hook.mutating is mutating and asked.operation in hook.operations and place in hook.resources
        ]

    async def _asked(self, hook: Hook, asked: Asked, old: Obj | None, new: Obj | None) -> Obj:
        request = _request(asked, self._next_uid(), old, new)
        unchanged = new or {}
        if hook.when is not None and not hook.when(request):
            return unchanged
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        try:
            response = (await hook.review(review))["response"]
            if response["allowed"]:
                return _patched(response, unchanged)
        except Exception as error:
            # Whatever a webhook dies of, the server sees a call that failed.
            if not hook.fail_closed:
                return unchanged
            raise refusals.internal(f'failed calling webhook "{hook.name}": {type(error).__name__}') from error
        raise _denied(hook, response.get("status") or {})


def _request(asked: Asked, uid: str, old: Obj | None, new: Obj | None) -> Obj:
    resource = asked.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    if asked.subresource == "scale":
        kind = scale.KIND
    place = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    return {
        "uid": uid,
        "kind": kind,
        "resource": place,
        "subResource": asked.subresource,
        "requestKind": kind,
        "requestResource": place,
        "requestSubResource": asked.subresource,
        "name": asked.name,
        "namespace": asked.namespace,
        "operation": asked.operation,
        "userInfo": {"username": asked.user, "groups": list(asked.groups)},
        "object": _shown(resource, new),
        "oldObject": _shown(resource, old),
        "dryRun": asked.dry_run,
        "options": None,
    }


def _shown(resource: Resource, obj: Obj | None) -> Obj | None:
    if obj is None:
        return None
    # What says its kind itself (a Scale) keeps it.
    return {"apiVersion": resource.api_version, "kind": resource.kind} | copied(obj)


def _patched(response: Obj, obj: Obj) -> Obj:
    if not response.get("patch"):
        return obj
    operations = msgspec.json.decode(base64.b64decode(response["patch"]))
    try:
        return json_patch(copied(obj), operations)
    except PatchFailed as error:
        raise ValueError("its patch does not fit") from error


def _denied(hook: Hook, status: Obj) -> ApiError:
    code = int(status.get("code") or 0)
    why = status.get("message") or status.get("reason")
    words = f'admission webhook "{hook.name}" denied the request'
    message = f"{words}: {why}" if why else f"{words} without explanation"
    return ApiError(max(code, 400), str(status.get("reason") or ""), message)
