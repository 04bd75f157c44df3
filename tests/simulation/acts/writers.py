"""Writers of what declares units (B2, T20): pools, replica sets, replicas, bare VMIs, edits, dry runs; and bars."""

import base64

from typing_extensions import override

from binder.kube import PatchKind
from deploy.world.admission import Hook
from deploy.world.manifests import Obj, dig, encode, key_of, meta
from schemas.kinds import GPU_CLAIM, VM, VM_POOL, VMI, VMI_REPLICA_SET, Resource
from schemas.names import GPUS_ANNOTATION
from tests.simulation.acts.act import Act, create, delete, hands, vm_key
from tests.simulation.acts.holders import claim_key
from tests.simulation.acts.tenants import marked, vm_body
from tests.simulation.labels import TENANTS
from tests.simulation.weather import Spell
from tests.simulation.world import World

SETS: tuple[Resource, Resource] = (VM_POOL, VMI_REPLICA_SET)
"""What has replicas, by number: even ones are pools."""


def set_key(number: int) -> str:
    """Return the key of a pool or replica set: tenants have two in turn."""
    return f"{TENANTS[number // 2 % len(TENANTS)]}/{('pool', 'set')[number % 2]}-{number}"


def _of(number: int) -> tuple[Resource, str, str]:
    namespace, _, name = set_key(number).partition("/")
    return SETS[number % 2], namespace, name


def _template(ask: int) -> Obj:
    domain = {"memory": {"guest": "1Gi"}, "devices": {}}
    return {"metadata": marked(ask), "spec": {"domain": domain, "terminationGracePeriodSeconds": 5}}


class CreateSet(Act, frozen=True):
    """A pool or replica set is written with so many replicas, each with the entries of `ask`."""

    number: int
    ask: int = 0
    replicas: int = 1

    @override
    def begin(self, world: World) -> None:
        """Create it, or write its template and count anew."""
        kind, namespace, name = _of(self.number)
        spec: Obj = {"replicas": self.replicas, "selector": {}, "template": _template(self.ask)}
        if kind == VM_POOL:
            template = {"metadata": {}, "spec": {"runStrategy": "Always", "template": _template(self.ask)}}
            spec = {"replicas": self.replicas, "selector": {}, "virtualMachineTemplate": template}
        if world.cluster.find(kind, set_key(self.number)) is None:
            create(world, kind, namespace, {"metadata": {"name": name}, "spec": spec})
            return
        put = encode([{"op": "add", "path": "/spec", "value": spec}])
        hands(world, world.cluster.api.patch(kind, namespace, name, put, kind=PatchKind.JSON))


class Rescale(Act, frozen=True):
    """Somebody scales a pool or replica set by its subresource, as an autoscaler does."""

    number: int
    replicas: int

    @override
    def begin(self, world: World) -> None:
        """Write the count."""
        kind, namespace, name = _of(self.number)
        body, api = encode({"spec": {"replicas": self.replicas}}), world.cluster.api
        hands(world, api.patch(kind, namespace, name, body, kind=PatchKind.MERGE, subresource="scale"))


class DropSet(Act, frozen=True):
    """A pool or replica set is deleted, and all that it made goes after it."""

    number: int

    @override
    def begin(self, world: World) -> None:
        """Delete it."""
        delete(world, SETS[self.number % 2], set_key(self.number))


class EditVm(Act, frozen=True):
    """A VM's template asks for something else from now on; what runs has what it had."""

    vm: int
    ask: int

    @override
    def begin(self, world: World) -> None:
        """Write the entries."""
        namespace, _, name = vm_key(self.vm).partition("/")
        entries = marked(self.ask)["annotations"][GPUS_ANNOTATION]
        body = encode({"spec": {"template": {"metadata": {"annotations": {GPUS_ANNOTATION: entries}}}}})
        hands(world, world.cluster.api.patch(VM, namespace, name, body, kind=PatchKind.MERGE))


class BareVmi(Act, frozen=True):
    """A tenant creates a VMI without a VM; `owned`: it names somebody's VM as its owner, to be free of charge."""

    number: int
    ask: int = 0
    owned: bool = False

    @override
    def begin(self, world: World) -> None:
        """Create it."""
        key = bare_key(self.number)
        namespace, _, name = key.partition("/")
        metadata: Obj = {"name": name, "namespace": namespace} | marked(self.ask)
        owner = world.cluster.find(VM, vm_key(self.number)) if self.owned else None
        if owner is not None:
            named = {"apiVersion": VM.api_version, "kind": VM.kind, "name": meta(owner)["name"]}
            metadata["ownerReferences"] = [named | {"uid": meta(owner)["uid"], "controller": True}]
        create(world, VMI, namespace, {"metadata": metadata, "spec": _template(self.ask)["spec"]})


def bare_key(number: int) -> str:
    """Return the key of a bare VMI."""
    return f"{TENANTS[number % len(TENANTS)]}/bare-{number}"


class DropBareVmi(Act, frozen=True):
    """A bare VMI is deleted."""

    number: int

    @override
    def begin(self, world: World) -> None:
        """Delete it."""
        delete(world, VMI, bare_key(self.number))


class Farewell(Act, frozen=True):
    """All tenants delete all that they have: nothing is declared any more, and nothing is held."""

    @override
    def begin(self, world: World) -> None:
        """Delete everything that declares units."""
        for kind in (*SETS, VM, VMI, GPU_CLAIM):
            for one in world.cluster.objects(kind):
                delete(world, kind, key_of(one))


class TryOut(Act, frozen=True):
    """Somebody tries a write out: what a dry run is told counts for nothing (C25). `claim`: an order, else a VM."""

    number: int
    ask: int = 0
    claim: bool = False

    @override
    def begin(self, world: World) -> None:
        """Ask."""
        namespace, _, name = (claim_key if self.claim else vm_key)(self.number).partition("/")
        if self.claim:
            body: Obj = {"metadata": {"name": f"{name}-dry"}, "spec": {"className": "card", "count": 1 + self.ask % 3}}
        else:
            body = vm_body(namespace, f"{name}-dry", self.ask)
        kind = GPU_CLAIM if self.claim else VM
        whole = encode({"apiVersion": kind.api_version, "kind": kind.kind} | body)
        hands(world, world.cluster.api.create(kind, namespace, whole, dry_run=True))


class Bar(Act, frozen=True):
    """Another webhook refuses, after ours have answered, what is written under one number of VMs, claims and sets."""

    number: int
    bars: bool = True

    @override
    def begin(self, world: World) -> None:
        """Register it, or take it away."""
        name, ending = f"zz-bar-{self.number}", f"-{self.number}"
        world.cluster.api.unadmit(name)

        async def refuse(review: Obj) -> Obj:
            status = {"code": 403, "reason": "Forbidden", "message": "barred"}
            return {"response": {"uid": review["request"]["uid"], "allowed": False, "status": status}}

        def concerns(request: Obj) -> bool:
            return str(dig(request, "object", "metadata", "name") or "").endswith(ending)

        places = tuple(f"{kind.plural}.{kind.group}" for kind in (VM, VMI, VM_POOL, VMI_REPLICA_SET, GPU_CLAIM))
        if self.bars:
            world.cluster.api.admit(Hook(name, refuse, places, operations=("CREATE",), when=concerns))


class Touch(Act, frozen=True):
    """Another mutating webhook writes on every VMI, so that ours is asked again."""

    on: bool = True

    @override
    def begin(self, world: World) -> None:
        """Register it, or take it away."""
        world.cluster.api.unadmit("zz-touch")

        async def touch(review: Obj) -> Obj:
            request = review["request"]
            patch: list[Obj] = [{"op": "add", "path": "/metadata/labels/touched", "value": "true"}]
            there = dig(request, "object", "metadata", "labels") is not None
            said = base64.b64encode(encode(patch if there else [])).decode()
            return {"response": {"uid": request["uid"], "allowed": True, "patch": said, "patchType": "JSONPatch"}}

        if self.on:
            places = (f"{VMI.plural}.{VMI.group}",)
            world.cluster.api.admit(Hook("zz-touch", touch, places, operations=("CREATE",), mutating=True))


class DeskTrouble(Act, frozen=True):
    """Calls of the API server to the webhooks fail: nobody listens (`away`), the answer is `lost`, or comes `late`."""

    kind: str
    share: float
    seconds: float
    path: str = ""
    late_s: float = 4.0

    @property
    @override
    def troubles(self) -> bool:
        return True

    @override
    def begin(self, world: World) -> None:
        """Begin the spell."""
        until = world.now + self.seconds
        world.weather.begin(Spell(f"desk {self.kind}", until, self.share, self.path, seconds=self.late_s))
