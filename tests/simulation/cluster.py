"""The cluster of a world: model API server, KubeVirt with its kubelets, scheduler and collector, on one lane.

Nothing here fails by itself: what goes wrong between it and the program goes wrong at the program's doors.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from deploy.world.apiserver import ApiServer
from deploy.world.collector import Collector
from deploy.world.kubevirt import RESOURCES, KubeVirt
from deploy.world.manifests import Obj, copied, encode
from deploy.world.own_kinds import install
from deploy.world.scheduler import Scheduler
from deploy.world.virt_names import CONTROLLER_ACCOUNT, CONTROLLER_REVISION, SECRET, account
from deploy.world.virt_webhooks import VirtApi
from schemas.kinds import GPU_CLASS, KUBEVIRT, NAMESPACE, NODE, PV, PVC, Resource
from schemas.names import HOSTNAME_LABEL, VGPU_LABEL
from tests.simulation.chance import Chance
from tests.simulation.disks import Disks, volume
from tests.simulation.labels import (
    CARD,
    CLASSES,
    KUBEVIRT_NAMESPACE,
    OTHER_NAME,
    ROOT,
    SLICE,
    SYSTEM,
    TAINT_KEY,
    TENANTS,
    ZONE,
    ZONES,
)
from tests.simulation.lanes import Lane, running
from tests.simulation.pools import Pools

BORN_S = 1_700_000_000.0
_ROOM = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "1Ti", "pods": "110"}
_DEVICES = {f"devices.kubevirt.io/{name}": "1k" for name in ("kvm", "tun", "vhost-net")}


class Setting(msgspec.Struct, frozen=True):
    """What a world begins with: cards and slices of each node, by number. `scarred`: the node that nobody heals.

    `policy`: the start policy, where it is not the default.
    `permits`: KubeVirt permits cards under their other name too.
    """

    cards: tuple[int, ...] = (2, 2)
    slices: tuple[int, ...] = (2, 0)
    binders: int = 2
    projectors: int = 1
    ingests: int = 1
    webhooks: int = 1
    lag_s: float = 0.0
    boot_s: float = 0.0
    schedule_s: float = 0.0
    start_s: float = 0.0
    stop_s: float = 0.0
    snapshot_every: int = 20_000
    scarred: int | None = None
    policy: str = ""
    permits: bool = False


class WorldClock:
    """The world's time for the models."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def now(self) -> float:
        """Return the present, in seconds since 1970."""
        return BORN_S + self._lane.time()

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of the world's time."""
        await asyncio.sleep(seconds)


class Cluster:
    """The model cluster; `put` and `change` are the hands of people and machines outside the program."""

    def __init__(self, lane: Lane, setting: Setting, chance: Chance) -> None:
        self.lane = lane
        self.clock = WorldClock(lane)
        self.api = ApiServer(clock=self.clock, seed=chance.token("uids", 4), bookmark_seconds=20.0)
        for resource in (*RESOURCES, SECRET, CONTROLLER_REVISION):
            self.api.serve(resource)
        install(self.api)
        for name in (SYSTEM, KUBEVIRT_NAMESPACE, ROOT):
            self._put(NAMESPACE, "", {"metadata": {"name": name}})
        for name in TENANTS:
            self.admit(name)
        for number, (cards, slices) in enumerate(zip(setting.cards, setting.slices, strict=True)):
            self._put(NODE, "", node(number, cards, slices))
        for name in CLASSES:
            self._put(GPU_CLASS, "", gpu_class(name))
        self._put(KUBEVIRT, KUBEVIRT_NAMESPACE, _permissions(other=setting.permits))
        with running(lane):
            self.kubevirt = KubeVirt(
                self.api.as_user(account(KUBEVIRT_NAMESPACE, CONTROLLER_ACCOUNT)),
                clock=self.clock,
                namespace=KUBEVIRT_NAMESPACE,
                kubelets=self.api.as_user("system:nodes"),
                chatter=False,
                jitter=lambda uid, most: int(chance.draw(f"jitter {uid}") * (most + 1)),
                active_pods_lag_s=setting.lag_s,
                boot_s=setting.boot_s,
                start_s=setting.start_s,
                stop_s=setting.stop_s,
                workers=3,
            )
            for hook in VirtApi(self.kubevirt.config, self.clock, namespace=KUBEVIRT_NAMESPACE).hooks():
                self.api.admit(hook)
            self.parts = [
                lane.create_task(part)
                for part in (
                    self.kubevirt.run(),
                    Scheduler(self.api, clock=self.clock).run(lag_s=setting.schedule_s),
                    Collector(self.api).run(),
                    Disks(self.api).run(),
                    Pools(self.api.as_user(account(KUBEVIRT_NAMESPACE, CONTROLLER_ACCOUNT)), lane).run(),
                )
            ]

    def _put(self, resource: Resource, namespace: str, obj: Obj) -> None:
        whole = {"apiVersion": resource.api_version, "kind": resource.kind} | obj
        finish(self.api.create(resource, namespace, encode(whole)), self.lane)

    def admit(self, tenant: str) -> None:
        """Give a tenant its namespace, and a disk in each zone."""
        self._put(NAMESPACE, "", {"metadata": {"name": tenant, "labels": {VGPU_LABEL: "true"}}})
        for zone in ZONES:
            name = f"disk-{zone}"
            if self.find(PV, f"{tenant}-{name}") is None:
                self._put(PV, "", volume(f"{tenant}-{name}", zone))
            claim = {"volumeName": f"{tenant}-{name}", "accessModes": ["ReadWriteMany"]}
            self._put(PVC, tenant, {"metadata": {"name": name}, "spec": claim})
            self.alter(PVC, f"{tenant}/{name}", lambda obj: obj | {"status": {"phase": "Bound"}})

    def objects(self, resource: Resource) -> list[Obj]:
        """Return all objects of a kind as they stand, not to be changed."""
        return [change.object for change in self.api.store.collection(resource).objects.values()]

    def find(self, resource: Resource, key: str) -> Obj | None:
        """Return an object as it stands, not to be changed."""
        change = self.api.store.get(resource, key)
        return change.object if change is not None else None

    def alter(self, resource: Resource, key: str, make: Any) -> None:  # noqa: ANN401 - a function from object to object
        """Write past all checks: what hardware and kubelets do to their own objects."""
        found = self.find(resource, key)
        if found is not None:
            new = make(copied(found))
            self.api.store.put(resource, key, {k: v for k, v in new.items() if k not in {"apiVersion", "kind"}})


def finish(coroutine: Any, lane: Lane) -> Any:  # noqa: ANN401 - whatever it returns
    """Return what a call gives that never waits."""
    with running(lane):
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
    raise AssertionError("a call that must not wait did")


def node_name(number: int) -> str:
    """Return a node's name by its number."""
    return f"node-{number}"


def node(number: int, cards: int, slices: int) -> Obj:
    """Return a node with so many units, in one of the zones."""
    name = node_name(number)
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubevirt.io/schedulable": "true",
        "machine-type.node.kubevirt.io/q35": "true",
        HOSTNAME_LABEL: name,
        ZONE: ZONES[number % len(ZONES)],
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": allocatable({CARD: cards, SLICE: slices}),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def allocatable(devices: Mapping[str, int]) -> Mapping[str, str]:
    """Return what a node offers with so many units by resource name."""
    return _ROOM | _DEVICES | {resource: str(units) for resource, units in devices.items()}


def gpu_class(name: str) -> Obj:
    """Return a class; one that is no class of the beginning has the cards' name."""
    mode, most = ("VGPU", 2) if name == "slice" else ("Passthrough", 4)
    tolerations = [{"key": TAINT_KEY, "operator": "Exists"}]
    spec = {"resourceName": CLASSES.get(name, CARD), "mode": mode, "maxCount": most, "tolerations": tolerations}
    return {"metadata": {"name": name}, "spec": spec}


def _permissions(*, other: bool) -> Obj:
    cards = (CARD, OTHER_NAME) if other else (CARD,)
    table = {
        "pciHostDevices": [{"pciVendorSelector": "10DE:26B9", "resourceName": name} for name in cards],
        "mediatedDevices": [{"mdevNameSelector": "NVIDIA L40S-24C", "resourceName": SLICE}],
    }
    return {"metadata": {"name": "kubevirt"}, "spec": {"configuration": {"permittedHostDevices": table}}}
