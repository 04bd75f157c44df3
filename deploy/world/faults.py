"""Faults at the door: a `Kube` that refuses, loses answers, waits and cuts watches as it is told.

It wraps the model or the real client alike. A lost answer is a write that landed and whose caller
hears that the server was not reached.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import msgspec
from typing_extensions import override

from binder.kube import ApiError, Kube, ListPage, PatchKind, WatchEvent
from schemas.kinds import Resource

Answer = TypeVar("Answer")


class Call(msgspec.Struct, frozen=True):
    """One call: the method's name; `event` for each event that a watch is about to hand out."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Fault(msgspec.Struct, frozen=True):
    """What goes wrong with a call. `lands`: the server does it, and only the answer is lost."""

    error: ApiError
    lands: bool = False


Plan = Callable[[Call], Awaitable[Fault | None]]
"""Says what goes wrong with a call, None for nothing; while it waits, the call waits."""


class FaultyKube(Kube):
    """`FaultyKube(kube, plan)`: `kube` behind a door where the plan is asked first."""

    def __init__(self, kube: Kube, plan: Plan) -> None:
        self._kube = kube
        self._plan = plan

    @override
    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        call = Call("get", resource, namespace, name)
        return await self._through(call, lambda: self._kube.get(resource, namespace, name))

    @override
    async def list_page(
        self, resource: Resource, *, namespace: str = "", limit: int = 500, continue_token: str = ""
    ) -> ListPage:
        return await self._through(
            Call("list_page", resource, namespace),
            lambda: self._kube.list_page(resource, namespace=namespace, limit=limit, continue_token=continue_token),
        )

    @override
    async def watch(
        self, resource: Resource, *, resource_version: str, timeout_seconds: int, namespace: str = ""
    ) -> AsyncIterator[WatchEvent]:
        await self._ask(Call("watch", resource, namespace))
        events = self._kube.watch(
            resource, resource_version=resource_version, timeout_seconds=timeout_seconds, namespace=namespace
        )
        async for event in events:
            await self._ask(Call("event", resource, namespace))
            yield event

    @override
    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        return await self._through(
            Call("create", resource, namespace),
            lambda: self._kube.create(resource, namespace, body, dry_run=dry_run),
        )

    @override
    async def replace(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, subresource: str = ""
    ) -> bytes:
        return await self._through(
            Call("replace", resource, namespace, name, subresource),
            lambda: self._kube.replace(resource, namespace, name, body, subresource=subresource),
        )

    @override
    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        kind: PatchKind,
        subresource: str = "",
    ) -> bytes:
        return await self._through(
            Call("patch", resource, namespace, name, subresource),
            lambda: self._kube.patch(resource, namespace, name, body, kind=kind, subresource=subresource),
        )

    @override
    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        await self._through(
            Call("delete", resource, namespace, name),
            lambda: self._kube.delete(
                resource, namespace, name, uid=uid, resource_version=resource_version, grace_seconds=grace_seconds
            ),
        )

    @override
    async def close(self) -> None:
        await self._kube.close()

    async def _ask(self, call: Call) -> None:
        fault = await self._plan(call)
        if fault is not None:
            raise fault.error

    async def _through(self, call: Call, pass_on: Callable[[], Awaitable[Answer]]) -> Answer:
        fault = await self._plan(call)
        if fault is not None and not fault.lands:
            raise fault.error
        answer = await pass_on()
        if fault is not None:
            raise fault.error
        return answer
