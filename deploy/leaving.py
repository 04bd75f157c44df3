"""How a cluster is left: no role works any more, nothing waits for one, and nothing of ours is left behind.

What tenants and operators made stays: claims that they ordered, classes, budgets. The log stays, in NATS.
Everything is deleted and changed by uid, after a fresh look, so that it may be done again from any point.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from binder.kube import ApiError, Kube, PatchKind, find
from binder.shown import listed
from deploy.role_names import ELECTED
from deploy.takeover import NotAdoptable, check_stopped
from projector.finalizers import Guarded, relinquish
from projector.verdicts import Kind
from schemas import kinds as k
from schemas import names, pinning
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME, POLICY, POLICY_BINDING, VALIDATING_CONFIGURATION
from schemas.licences import COPY
from schemas.stamping import read_stamp
from webhooks.policies import policy_objects

STOP_SECONDS = 120.0
REFUSED_SECONDS = 30.0
"""How long a refused write is tried again: an API server goes on asking a policy for a moment after it is gone."""
_LOOK_SECONDS = 0.5
_FORBIDDEN, _NOT_FOUND = 403, 404
_ENDED = ("Succeeded", "Failed")
PART_OF = "app.kubernetes.io/part-of"


class StillUsed(Exception):
    """Virtual machines use what we look after: names some, and says what to do."""


class NotStopped(Exception):
    """A role goes on working, so that what is taken away would come back."""


class _Selector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    scheduling_gates: list[dict[str, str]] = []
    replicas: int = 0
    selector: _Selector | None = None


class _Status(msgspec.Struct):
    phase: str = ""
    replicas: int = 0


class _Owner(msgspec.Struct):
    kind: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[_Owner, ...] = ()


class _Object(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def place(self) -> str:
        """Say which object it is."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


async def _all(kube: Kube, resource: k.Resource, namespace: str = "") -> AsyncIterator[_Object]:
    async for raw in listed(kube, resource, namespace):
        yield msgspec.json.decode(raw, type=_Object)


def _referring(resource: k.Resource) -> k.Resource:
    return msgspec.structs.replace(resource, labelled=names.REFERENCE_LABEL)


async def in_use(kube: Kube) -> list[str]:
    """Return the VMIs that ask for GPUs and have not ended."""
    return [one.place async for one in _all(kube, _referring(k.VMI)) if one.status.phase not in _ENDED]


def complaint(used: list[str]) -> StillUsed:
    """Return what to tell about machines that are in the way."""
    shown = ", ".join(used[:5]) + (f" and {len(used) - 5} more" if len(used) > 5 else "")
    return StillUsed(
        f"{len(used)} virtual machines with GPUs run or wait: {shown}; stop them first. With --force what runs runs "
        "on, what waits at our gate goes wherever the scheduler finds room, and what starts later starts without GPUs"
    )


async def stop_deployments(kube: Kube, namespace: str) -> list[str]:
    """Scale the Deployments of the chart to nothing and wait until their pods go; return their names."""
    found = [one async for one in _deployments(kube, namespace)]
    for one in found:
        body = msgspec.json.encode({"spec": {"replicas": 0}})
        await kube.patch(k.DEPLOYMENT, namespace, one.metadata.name, body, kind=PatchKind.MERGE)
    end = asyncio.get_running_loop().time() + STOP_SECONDS
    while left := await _at_work(kube, namespace):
        if asyncio.get_running_loop().time() > end:
            raise NotStopped(f"{', '.join(left)} in {namespace} did not stop: look at the events")
        await asyncio.sleep(_LOOK_SECONDS)
    return [one.metadata.name for one in found]


async def _at_work(kube: Kube, namespace: str) -> list[str]:
    """Name the chart's Deployments that count replicas, and their pods that have not gone.

    A Deployment doesn't count a pod that ends; while that one drains, it may write what was taken away.
    """
    deployments = [one async for one in _deployments(kube, namespace)]
    selectors = [one.spec.selector.match_labels for one in deployments if one.spec.selector]
    pods = [
        f"pod {one.metadata.name}"
        async for one in _all(kube, k.POD, namespace)
        if one.status.phase not in _ENDED and any(s and s.items() <= one.metadata.labels.items() for s in selectors)
    ]
    return [f"Deployment {one.metadata.name}" for one in deployments if one.status.replicas] + pods


async def _deployments(kube: Kube, namespace: str) -> AsyncIterator[_Object]:
    async for one in _all(kube, k.DEPLOYMENT, namespace):
        if one.metadata.labels.get(PART_OF) == names.FIELD_MANAGER:
            yield one


async def await_stopped(kube: Kube, namespace: str) -> None:
    """Wait until no role renews its lease. Raises `NotStopped`."""
    end = asyncio.get_running_loop().time() + STOP_SECONDS
    while True:
        try:
            await check_stopped(kube, namespace)
            return
        except NotAdoptable as error:
            if asyncio.get_running_loop().time() > end:
                raise NotStopped(str(error)) from None


class Leaving:
    """Takes away what we left; `told` collects what was done, a line each. `dry`: only looks."""

    def __init__(self, kube: Kube, namespace: str, *, dry: bool = False) -> None:
        self._kube, self._namespace, self._dry = kube, namespace, dry
        self.told: list[str] = []

    async def everything(self) -> None:
        """Take away all of it, in the order in which nothing can come back or be missed. Raises `ApiError`."""
        # 1. From here on the API server asks nobody of ours, and lets us finish.
        # No VMI is marked for a booking that nobody would make: who marks goes first.
        for registered in (CONFIGURATION, VALIDATING_CONFIGURATION):
            await self._delete(registered, "", CONFIGURATION_NAME)
        for body in reversed(policy_objects(self._namespace)):
            resource = POLICY if body["kind"] == POLICY.kind else POLICY_BINDING
            await self._delete(resource, "", body["metadata"]["name"])
        # 2. What would wait for us for ever.
        await self._finalizers(k.GPU_CLAIM, names.CLAIM_FINALIZER)
        await self._finalizers(k.GPU_CLASS, names.CLASS_FINALIZER)
        await self._gates()
        # 3. What nobody would look after.
        await self._copies()
        await self._ours(k.GPU_BUDGET, "mirrored budget", _is_mirror)
        await self._ours(k.WORKLOAD, "usage record", _is_record)
        # 4. Last, what says that we are here: until then this can be begun anew.
        for role in ELECTED:
            await self._delete(k.LEASE, self._namespace, f"{names.LEASE_PREFIX}{role}")
        for secret in (names.DIGEST_KEY_SECRET, names.WEBHOOK_TLS_SECRET):
            await self._delete(k.SECRET, self._namespace, secret)
        if await self._settings_are_ours():
            await self._delete(k.CONFIGMAP, self._namespace, names.SETTINGS_CONFIGMAP)
        await self._delete(k.CONFIGMAP, self._namespace, names.ANCHOR_CONFIGMAP)

    async def _settings_are_ours(self) -> bool:
        """Say whether the settings are those that `run` made: others belong to whoever installed them."""
        raw = await find(self._kube, k.CONFIGMAP, self._namespace, names.SETTINGS_CONFIGMAP)
        if raw is None:
            return False
        labels = msgspec.json.decode(raw, type=_Object).metadata.labels
        return labels.get(names.MANAGED_BY_LABEL) == names.FIELD_MANAGER

    async def _finalizers(self, resource: k.Resource, finalizer: str) -> None:
        async for one in _all(self._kube, resource):
            meta = one.metadata
            if finalizer not in meta.finalizers:
                continue
            self.told.append(f"finalizer of {resource.kind} {one.place}")
            if self._dry:
                continue
            what = Guarded(resource, meta.namespace, meta.name, meta.uid, finalizer)

            async def release(what: Guarded = what) -> None:
                verdict = await relinquish(self._kube, what)
                if verdict.kind is not Kind.LANDED:
                    raise ApiError(verdict.code, verdict.reason, f"{what.resource.kind} {what.name}: {verdict.field}")

            await _insist(release)

    async def _gates(self) -> None:
        async for one in _all(self._kube, _referring(k.POD)):
            gates = one.spec.scheduling_gates
            left = [gate for gate in gates if gate.get("name") != names.GATE]
            if len(left) == len(gates):
                continue
            self.told.append(f"gate of pod {one.place}")
            if self._dry:
                continue
            patch = msgspec.json.encode(
                [
                    {"op": "test", "path": pinning.UID_PATH, "value": one.metadata.uid},
                    {"op": "test", "path": pinning.GATES_PATH, "value": gates},
                    {"op": "replace", "path": pinning.GATES_PATH, "value": left},
                ]
            )

            async def let_go(meta: _Meta = one.metadata, patch: bytes = patch) -> None:
                await self._kube.patch(k.POD, meta.namespace, meta.name, patch, kind=PatchKind.JSON)

            await _insist(let_go)

    async def _copies(self) -> None:
        try:
            await self._ours(COPY, "licence copy", _stamped)
        except ApiError as error:
            # An installation without licences has no right to Secrets, and no copies.
            if error.code != _FORBIDDEN:
                raise

    async def _ours(self, resource: k.Resource, what: str, is_ours: Callable[[_Object], bool]) -> None:
        async for one in _all(self._kube, resource):
            if is_ours(one):
                await self._delete(resource, one.metadata.namespace, one.metadata.name, what=what, uid=one.metadata.uid)

    async def _delete(self, resource: k.Resource, namespace: str, name: str, *, what: str = "", uid: str = "") -> None:
        try:
            if self._dry:
                if not uid:
                    await self._kube.get(resource, namespace, name)
            else:
                await self._kube.delete(resource, namespace, name, uid=uid)
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return
            raise
        self.told.append(f"{what or resource.kind} {namespace + '/' if namespace else ''}{name}")


def _stamped(one: _Object) -> bool:
    return read_stamp(one.metadata.annotations.get(names.STAMP_ANNOTATION, "")) is not None


def _is_mirror(one: _Object) -> bool:
    return one.metadata.name == names.MIRRORED_BUDGET and _stamped(one)


def _is_record(one: _Object) -> bool:
    owners = {owner.kind for owner in one.metadata.owner_references}
    return one.metadata.name.startswith(names.CLAIM_RECORD_PREFIX) and k.GPU_CLAIM.kind in owners


async def _insist(write: Callable[[], Awaitable[None]]) -> None:
    """Write until it lands; what is gone needs no write. Raises `ApiError` once it was refused for too long."""
    end = asyncio.get_running_loop().time() + REFUSED_SECONDS
    while True:
        try:
            await write()
            return
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return
            if asyncio.get_running_loop().time() > end:
                raise
        await asyncio.sleep(_LOOK_SECONDS)
