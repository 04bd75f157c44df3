"""What the contract's tests say to a world: small objects, reads as dictionaries, and patience."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from binder.kube import ApiError, Kube, PatchKind
from schemas.kinds import CONFIGMAP, NODE, POD, Resource

Object = dict[str, Any]
GATE = "cozystack.io/gpu"
TERMS = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"


def json_of(body: object) -> bytes:
    """Return a body's JSON."""
    return msgspec.json.encode(body)


def config_map(name: str, data: dict[str, str] | None = None, **metadata: object) -> Object:
    """A ConfigMap: the plainest object there is."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


def term(key: str, *values: str) -> Object:
    """A node selector term with one expression."""
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


class World:
    """One server behind its `Kube`, and a namespace in it."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.nodes: list[str] = []
        self.forget: Callable[[], Awaitable[object]] = self._cannot_forget

    async def _cannot_forget(self) -> None:
        raise AssertionError("ask for the fixture `forgetful`")

    async def create(self, body: Object, resource: Resource = CONFIGMAP, *, dry_run: bool = False) -> Object:
        """Create an object in the namespace; return it as answered."""
        namespace = self.namespace if resource.namespaced else ""
        return read(await self.kube.create(resource, namespace, json_of(body), dry_run=dry_run))

    async def create_pod(
        self, name: str, *, terms: list[Object] | None = None, gated: bool = True, dry_run: bool = False, **spec: object
    ) -> Object:
        """Create a pod that asks for 100m of cpu; gated unless said otherwise."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 30, **spec}
        if gated:
            spec["schedulingGates"] = [{"name": GATE}]
        if terms is not None:
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            spec["affinity"] = {"nodeAffinity": required}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        return await self.create(body, POD, dry_run=dry_run)

    async def create_node(self, name: str) -> None:
        """Create a ready, untainted node with room for ten pods; it is removed after the test."""
        status = {
            "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": status}
        self.nodes.append(name)
        await self.create(body, NODE)
        # A real server taints a newborn node until a controller has looked at it, and none does here.
        await self.kube.patch(NODE, "", name, b'{"spec":{"taints":null}}', kind=PatchKind.MERGE)

    async def get(self, name: str, resource: Resource = CONFIGMAP) -> Object:
        """Read an object of the namespace."""
        return read(await self.kube.get(resource, self.namespace if resource.namespaced else "", name))

    async def find(self, name: str, resource: Resource = CONFIGMAP) -> Object | None:
        """Read an object of the namespace, None where it isn't there."""
        try:
            return await self.get(name, resource)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def merge(self, name: str, patch: Object, resource: Resource = CONFIGMAP, *, subresource: str = "") -> Object:
        """Merge-patch an object of the namespace."""
        namespace = self.namespace if resource.namespaced else ""
        body = json_of(patch)
        answer = await self.kube.patch(resource, namespace, name, body, kind=PatchKind.MERGE, subresource=subresource)
        return read(answer)

    async def edit(self, name: str, *operations: Object, resource: Resource = CONFIGMAP) -> Object:
        """JSON-patch an object of the namespace."""
        body = json_of(list(operations))
        return read(await self.kube.patch(resource, self.namespace, name, body, kind=PatchKind.JSON))

    async def replace(self, body: Object, resource: Resource = CONFIGMAP, *, subresource: str = "") -> Object:
        """Replace an object of the namespace by the one given."""
        name = body["metadata"]["name"]
        answer = await self.kube.replace(resource, self.namespace, name, json_of(body), subresource=subresource)
        return read(answer)

    async def version(self, resource: Resource = CONFIGMAP) -> str:
        """Return the present version of a list."""
        return (await self.kube.list_page(resource, namespace=self.namespace, limit=1)).resource_version

    async def watched(self, version: str, until: Callable[[str, Object], bool]) -> list[tuple[str, Object]]:
        """Follow the ConfigMaps from a version on, up to the first event that `until` holds for."""
        seen: list[tuple[str, Object]] = []
        events = self.kube.watch(CONFIGMAP, resource_version=version, timeout_seconds=120, namespace=self.namespace)
        async with aclosing(events) as stream:  # type: ignore[type-var]  # both servers give generators
            async for event in stream:
                seen.append((event.type, read(event.object)))
                if until(*seen[-1]):
                    return seen
        raise AssertionError(f"the watch ended before it came: {seen}")

    async def eventually(self, holds: Callable[[], Awaitable[bool]], seconds: float = 120.0) -> None:
        """Ask again and again until it holds. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not await holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds:g} s")
            await asyncio.sleep(0.02)

    async def gone(self, name: str, resource: Resource = CONFIGMAP) -> None:
        """Wait until an object is gone."""

        async def absent() -> bool:
            return await self.find(name, resource) is None

        await self.eventually(absent)


def read(body: bytes | msgspec.Raw) -> Object:
    """Read an object."""
    found: Object = msgspec.json.decode(body)
    return found


def said(error: ApiError) -> tuple[int, str]:
    """Return code and reason of a refusal."""
    return error.code, error.reason
