"""An act, and the hands that do it: a task on the cluster's lane whose refusals are the doer's own affair."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from binder.kube import ApiError
from deploy.world.manifests import Obj, dig, encode, meta
from schemas.kinds import POD, VM, VMI, Resource
from tests.simulation.labels import TENANTS
from tests.simulation.world import World

T = TypeVar("T")


class Act(msgspec.Struct, frozen=True):
    """One thing that happens. Its representation is Python: a story can be pasted as a test."""

    @property
    def troubles(self) -> bool:
        """Say whether the act is a trouble of the program's own: in a world without any, counters are strict."""
        return type(self).__module__.endswith(".troubles")

    def begin(self, world: World) -> None:
        """Do it, or begin to."""
        raise NotImplementedError


class Step(msgspec.Struct, frozen=True):
    """An act, and how long the world is left alone after it."""

    act: Act
    wait_s: float = 1.0


def hands(world: World, deed: Coroutine[Any, Any, object]) -> None:
    """Let somebody do something; a refusal is an answer."""

    async def done() -> None:
        try:
            await deed
        except ApiError:
            return

    # One that is ended before it began must not be reported as forgotten.
    world.do(done()).add_done_callback(lambda _: deed.close())


def create(world: World, resource: Resource, namespace: str, obj: Obj) -> None:
    """Let somebody create an object."""
    whole = {"apiVersion": resource.api_version, "kind": resource.kind} | obj
    hands(world, world.cluster.api.create(resource, namespace, encode(whole)))


def delete(world: World, resource: Resource, key: str, *, grace_seconds: int | None = None) -> None:
    """Let somebody delete an object."""
    namespace, _, name = key.rpartition("/")
    hands(world, world.cluster.api.delete(resource, namespace, name, grace_seconds=grace_seconds))


def vm_key(number: int) -> str:
    """Return the key of a VM by its number; VMI and VM share it."""
    return f"{TENANTS[number % len(TENANTS)]}/vm-{number}"


def launchers(world: World, number: int) -> list[Obj]:
    """Return the pods of the VMI of that VM."""
    vmi = world.cluster.find(VMI, vm_key(number))
    if vmi is None:
        return []
    uid = meta(vmi)["uid"]
    return [
        pod
        for pod in world.cluster.objects(POD)
        if any(owner["uid"] == uid for owner in meta(pod).get("ownerReferences") or ())
    ]


def is_there(world: World, number: int) -> bool:
    """Say whether the VM is there, and not going."""
    vm = world.cluster.find(VM, vm_key(number))
    return vm is not None and dig(vm, "metadata", "deletionTimestamp") is None
