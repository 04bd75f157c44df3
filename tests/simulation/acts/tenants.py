"""Tenants: they create, start, stop, restart and delete VMs, and touch what is not theirs to touch."""

from collections.abc import Iterable

import msgspec
from typing_extensions import override

from binder.kube import PatchKind
from deploy.world.manifests import Obj, decode, dig, encode, key_of, meta, owner_reference
from deploy.world.virt_names import WFFC
from schemas.kinds import DATA_VOLUME, GPU_CLAIM, GPU_CLASS, POD, PVC, VM, VMI
from schemas.names import GPUS_ANNOTATION, REFERENCE_LABEL, REFERENCE_VALUE
from tests.simulation.acts.act import Act, create, delete, hands, launchers, vm_key
from tests.simulation.cluster import gpu_class
from tests.simulation.labels import TWIN, ZONE, ZONES
from tests.simulation.world import World

OWN_DISK = 3
ASKS: tuple[tuple[tuple[str, int], ...], ...] = (
    (("card", 1),),
    (("card", 1),),
    (("card", 2),),
    (("card", 3),),
    (("slice", 1),),
    (("slice", 2),),
    (("card", 1), ("slice", 1)),
    (("slice", 1), ("card", 2)),
    ((TWIN, 1),),
    (),
)
"""What VMs ask for: (class, units) per entry; the last asks for held claims alone."""
NOTHING = len(ASKS) - 1


class CreateVm(Act, frozen=True):
    """A VM is created, running. `ask` picks its entries, `claims` names held ones; `zone`, `disk`: 0 or which zone.

    Disk 3 is a DataVolume of the VM's own, which is made where its first consumer lands.
    """

    vm: int
    ask: int = 0
    zone: int = 0
    disk: int = 0
    strategy: str = "Always"
    claims: tuple[int, ...] = ()

    @override
    def begin(self, world: World) -> None:
        """Create it."""
        namespace, _, name = vm_key(self.vm).partition("/")
        body = vm_body(namespace, name, self.ask, self.claims, self.strategy)
        spec = body["spec"]["template"]["spec"]
        if self.zone:
            spec["nodeSelector"] = {ZONE: ZONES[self.zone - 1]}
        if self.disk == OWN_DISK:
            create_disk(world, namespace, name)
            spec["volumes"] = [{"name": "data", "dataVolume": {"name": name}}]
        elif self.disk:
            claim = {"claimName": f"disk-{ZONES[self.disk - 1]}"}
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
        if self.disk:
            spec["domain"]["devices"] = {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}
        create(world, VM, namespace, body)


def marked(ask: int, claims: Iterable[int] = ()) -> Obj:
    """Return labels and annotations of a template that names held claims, and asks for the entries of `ask`."""
    entries: list[Obj] = [{"className": kind, "count": count} for kind, count in ASKS[ask % len(ASKS)]]
    entries = [*({"claimName": f"claim-{number}"} for number in claims), *entries]
    return {
        "labels": {REFERENCE_LABEL: REFERENCE_VALUE},
        "annotations": {GPUS_ANNOTATION: msgspec.json.encode(entries).decode()},
    }


def vm_body(namespace: str, name: str, ask: int, claims: Iterable[int] = (), strategy: str = "Always") -> Obj:
    """Return a VM without disks."""
    spec: Obj = {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}, "terminationGracePeriodSeconds": 5}
    template = {"metadata": marked(ask, claims), "spec": spec}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"runStrategy": strategy, "template": template}}


def has_own_disk(vm: Obj) -> bool:
    """Say whether a VM stands on a DataVolume of its own."""
    volumes = dig(vm, "spec", "template", "spec", "volumes") or ()
    return any("dataVolume" in volume for volume in volumes)


def create_disk(world: World, namespace: str, name: str) -> None:
    """Let CDI wait for the first consumer of a disk of that name."""
    made = {"apiVersion": DATA_VOLUME.api_version, "kind": DATA_VOLUME.kind, "metadata": {"name": name}, "spec": {}}

    async def create_both() -> None:
        api = world.cluster.api
        source = decode(await api.create(DATA_VOLUME, namespace, encode(made)))
        world.cluster.alter(DATA_VOLUME, f"{namespace}/{name}", lambda obj: obj | {"status": {"phase": WFFC}})
        metadata = {"name": name, "ownerReferences": [owner_reference(source)]}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}}
        await api.create(PVC, namespace, encode(claim))

    hands(world, create_both())


def _strategy(world: World, number: int, strategy: str) -> None:
    namespace, _, name = vm_key(number).partition("/")
    body = encode({"spec": {"runStrategy": strategy}})
    hands(world, world.cluster.api.patch(VM, namespace, name, body, kind=PatchKind.MERGE))


class StopVm(Act, frozen=True):
    """A VM is stopped."""

    vm: int

    @override
    def begin(self, world: World) -> None:
        """Halt it."""
        _strategy(world, self.vm, "Halted")


class StartVm(Act, frozen=True):
    """A VM is started."""

    vm: int

    @override
    def begin(self, world: World) -> None:
        """Let it run."""
        _strategy(world, self.vm, "Always")


class DeleteVm(Act, frozen=True):
    """A VM is deleted."""

    vm: int

    @override
    def begin(self, world: World) -> None:
        """Delete it."""
        delete(world, VM, vm_key(self.vm))


class RestartVmi(Act, frozen=True):
    """A VMI is deleted under its VM, which makes another."""

    vm: int

    @override
    def begin(self, world: World) -> None:
        """Delete the VMI."""
        delete(world, VMI, vm_key(self.vm))


class DeleteLauncher(Act, frozen=True):
    """A launcher is deleted by hand; `grace_s` 0 takes it away at once."""

    vm: int
    grace_s: int = 5

    @override
    def begin(self, world: World) -> None:
        """Delete the VMI's pods."""
        for pod in launchers(world, self.vm):
            delete(world, POD, key_of(pod), grace_seconds=self.grace_s)


class GuestEnds(Act, frozen=True):
    """A guest powers off by itself, or crashes."""

    vm: int
    phase: str = "Succeeded"

    @override
    def begin(self, world: World) -> None:
        """End the pod on its node."""
        for pod in launchers(world, self.vm):
            if pod["status"].get("phase") == "Running":
                namespace, name = meta(pod)["namespace"], meta(pod)["name"]
                hands(world, world.cluster.kubevirt.kubelet.end(namespace, name, phase=self.phase))


class DeleteClaim(Act, frozen=True):
    """A template claim is deleted by its tenant, who may."""

    vm: int

    @override
    def begin(self, world: World) -> None:
        """Delete the claims of the VM's VMI."""
        vmi = world.cluster.find(VMI, vm_key(self.vm))
        for claim in world.cluster.objects(GPU_CLAIM):
            owners = meta(claim).get("ownerReferences") or ()
            if vmi is not None and any(owner["uid"] == meta(vmi)["uid"] for owner in owners):
                delete(world, GPU_CLAIM, key_of(claim))


class DeleteClass(Act, frozen=True):
    """The platform operator deletes a class."""

    name: str

    @override
    def begin(self, world: World) -> None:
        """Delete it."""
        delete(world, GPU_CLASS, self.name)


class CreateClass(Act, frozen=True):
    """The platform operator creates a class, as it was."""

    name: str

    @override
    def begin(self, world: World) -> None:
        """Create it."""
        create(world, GPU_CLASS, "", gpu_class(self.name))
