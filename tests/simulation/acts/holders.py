"""Holders of claims, and the operator's hand: orders, their deletion, namespaces that go, commands on the stream."""

from typing_extensions import override

from binder.kube import PatchKind
from deploy.world.manifests import Obj, encode
from schemas.events import Command, encode_event
from schemas.kinds import GPU_CLAIM, GPU_CLASS, NAMESPACE
from schemas.reasons import Order
from schemas.streams import EVENTS, EVENTS_COMMAND
from tests.simulation.acts.act import Act, create, delete, hands, vm_key
from tests.simulation.cluster import node_name
from tests.simulation.labels import TAINT_KEY, TENANTS
from tests.simulation.world import World

OPERATOR = "operator"


def claim_name(number: int) -> str:
    """Return the name of an ordered claim."""
    return f"claim-{number}"


def claim_key(number: int) -> str:
    """Return the key of an ordered claim: tenants have them in turn, as they have VMs."""
    return f"{TENANTS[number % len(TENANTS)]}/{claim_name(number)}"


class OrderClaim(Act, frozen=True):
    """A tenant orders units of a class, to hold them over the stops of VMs."""

    claim: int
    kind: str = "card"
    count: int = 1

    @override
    def begin(self, world: World) -> None:
        """Create the claim."""
        namespace, _, name = claim_key(self.claim).partition("/")
        spec = {"className": self.kind, "count": self.count}
        create(world, GPU_CLAIM, namespace, {"metadata": {"name": name}, "spec": spec})


class GiveBack(Act, frozen=True):
    """A tenant deletes a claim it ordered, whoever uses it."""

    claim: int

    @override
    def begin(self, world: World) -> None:
        """Delete it."""
        delete(world, GPU_CLAIM, claim_key(self.claim))


class EditClass(Act, frozen=True):
    """The platform operator edits a class: another resource, under which what is held is not counted (C45).

    `most`: units that one VM may have; `tolerates`: whether it tolerates the nodes' taint. What is not said stays.
    """

    name: str
    resource: str = ""
    most: int = 0
    tolerates: bool | None = None

    @override
    def begin(self, world: World) -> None:
        """Edit it."""
        edits: Obj = {"resourceName": self.resource} if self.resource else {}
        if self.most:
            edits["maxCount"] = self.most
        if self.tolerates is not None:
            edits["tolerations"] = [{"key": TAINT_KEY, "operator": "Exists"}] if self.tolerates else []
        patch = encode({"spec": edits})
        hands(world, world.cluster.api.patch(GPU_CLASS, "", self.name, patch, kind=PatchKind.MERGE))


class DeleteNamespace(Act, frozen=True):
    """A tenant goes, with all that it has."""

    tenant: int

    @override
    def begin(self, world: World) -> None:
        """Delete the namespace."""
        delete(world, NAMESPACE, TENANTS[self.tenant])


class CreateNamespace(Act, frozen=True):
    """A tenant is there, with disks of its own."""

    tenant: int

    @override
    def begin(self, world: World) -> None:
        """Create the namespace, where there is none."""
        if world.cluster.find(NAMESPACE, TENANTS[self.tenant]) is None:
            world.cluster.admit(TENANTS[self.tenant])


def _say(world: World, command: Command) -> None:
    name = f"command-{world.chance.token('command', 8)}"

    async def said() -> None:
        await world.journal.append(EVENTS, EVENTS_COMMAND, encode_event(command), message_id=name)

    hands(world, said())


class Say(Act, frozen=True):
    """The operator pauses, or lets placing go on."""

    order: Order

    @override
    def begin(self, world: World) -> None:
        """Put the command on the stream."""
        world.halted = self.order is Order.PAUSE
        _say(world, Command(self.order, OPERATOR))


class SayOfVm(Act, frozen=True):
    """The operator ends skips of a VM, moves or releases it; without a node: all, or wherever there is room."""

    order: Order
    vm: int
    node: int | None = None

    @override
    def begin(self, world: World) -> None:
        """Put the command on the stream."""
        _say(world, _about(self.order, vm_key(self.vm), self.node))


class SayOfClaim(Act, frozen=True):
    """The operator moves or releases a held claim, with all that go with it."""

    order: Order
    claim: int
    node: int | None = None

    @override
    def begin(self, world: World) -> None:
        """Put the command on the stream."""
        _say(world, _about(self.order, claim_key(self.claim), self.node))


def _about(order: Order, key: str, node: int | None) -> Command:
    namespace, _, name = key.partition("/")
    return Command(order, OPERATOR, namespace, name, "" if node is None else node_name(node))
