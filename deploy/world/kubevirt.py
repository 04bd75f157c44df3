"""KubeVirt and the kubelets, emulated: what virt-controller and virt-handler do, in what order, to which fields.

Runs against anything that keeps the promises of `Kube`: the model API server, or a real one. Event by
event over watches, reconciling by key as the real controllers do; no chance that is not handed in.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from binder.kube import Kube
from deploy.world.clock import Clock, WallClock
from deploy.world.informer import Informer
from deploy.world.kubelet import Kubelet, Plugin
from deploy.world.manifests import Obj, controller_of, key_of, meta
from deploy.world.virt_config import Config, read_config
from deploy.world.virt_handler import VirtHandler
from deploy.world.virt_migration import MigrationController
from deploy.world.virt_names import VMIM, VMIRS
from deploy.world.virt_replicaset import ReplicaSetController
from deploy.world.virt_scribe import Scribe
from deploy.world.virt_vm import Jitter, VmController
from deploy.world.virt_vmi import Caches, VmiController
from deploy.world.virt_volumes import users_of
from deploy.world.workqueue import WorkQueue, work
from schemas.kinds import DATA_VOLUME, KUBEVIRT, POD, PVC, VM, VMI, Resource

WORKERS = 16
RESOURCES: tuple[Resource, ...] = (VMIM, VMIRS, DATA_VOLUME)
"""What the emulator reads beyond the kinds that the program itself knows; not served, it is not missed."""


def steady_jitter(uid: str, most: int) -> int:
    """Return 0..most seconds, the same for the same VMI: chance enough to spread restarts, and repeatable."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4], "big") % (most + 1)


class KubeVirt:
    """`KubeVirt(kube)`: the emulated KubeVirt and kubelets of one cluster; `await run()` or `emulator(...)`.

    `kube` speaks as KubeVirt's service account, `kubelets` (default: the same) as the nodes. `namespace`:
    where the KubeVirt CR lives. `chatter`: also the writes that only people read, as the real one; without
    it a start costs half the writes. `active_pods_lag_s`: how late a new pod shows in status.activePods.
    `boot_s`, `start_s`, `stop_s`: how long guests and pods take. `plugin`: a device plugin that may refuse.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        clock: Clock | None = None,
        namespace: str = "kubevirt",
        kubelets: Kube | None = None,
        run_kubelets: bool = True,
        chatter: bool = True,
        jitter: Jitter = steady_jitter,
        active_pods_lag_s: float = 0.0,
        boot_s: float = 0.0,
        start_s: float = 0.0,
        stop_s: float = 0.0,
        plugin: Plugin = lambda _: None,
        workers: int = WORKERS,
    ) -> None:
        self.clock = clock or WallClock()
        self._workers = workers
        scribe = Scribe(kube, self.clock, chatter=chatter)

        def cache(resource: Resource, *, optional: bool = False, within: str = "") -> Informer:
            return Informer(kube, resource, self.clock, namespace=within, optional=optional)

        caches = Caches(cache(VM), cache(VMI), cache(POD), cache(PVC), cache(DATA_VOLUME, optional=True))
        self.caches = caches
        self._kubevirt = cache(KUBEVIRT, within=namespace)
        self._migrations = cache(VMIM, optional=True)
        self._sets = cache(VMIRS, optional=True)
        self._queues = {name: WorkQueue(self.clock) for name in ("vm", "vmi", "handler", "vmim", "vmirs", "kubelet")}
        queues = self._queues
        vmis = VmiController(caches, self.config, scribe, queues["vmi"], lag_s=active_pods_lag_s)
        self._vms = VmController(caches, self.config, scribe, queues["vm"], jitter=jitter)
        self._loops: dict[str, Callable[[str], Awaitable[None]]] = {
            "vmi": vmis.reconcile,
            "vm": self._vms.reconcile,
            "handler": VirtHandler(caches.vmis, self.config, scribe, queues["handler"], boot_s=boot_s).reconcile,
            "vmim": MigrationController(self._migrations, caches, self.config, scribe, queues["vmim"]).reconcile,
            "vmirs": ReplicaSetController(self._sets, caches.vmis, scribe).reconcile,
        }
        self._informers = [caches.data, caches.claims, self._kubevirt, caches.pods, caches.vmis, caches.vms]
        self._informers += [self._migrations, self._sets]
        self.kubelet = Kubelet(
            kubelets or kube, self.clock, queues["kubelet"], caches.pods, start_s=start_s, stop_s=stop_s, plugin=plugin
        )
        if run_kubelets:
            self._loops["kubelet"] = self.kubelet.reconcile
            self._informers.insert(0, self.kubelet.nodes)
        self._forget = vmis.forget
        self._wire()

    def config(self) -> Config:
        """Return KubeVirt's configuration as its CR stands now."""
        return read_config(next(iter(self._kubevirt), None))

    @property
    def idle(self) -> bool:
        """Say whether nothing is being worked on; what waits for its hour, or for a watch event, does not count."""
        return all(queue.idle for queue in self._queues.values())

    def start_anew(self) -> None:
        """Let the controllers list everything anew: whoever restores an API server restarts them."""
        self._vms.start_anew()
        for informer in self._informers:
            informer.start_anew()

    def _wire(self) -> None:
        self.caches.vms.listen(lambda old, new: self._queues["vm"].add(_key(old, new)))
        self.caches.vmis.listen(self._vmi_changed)
        self.caches.pods.listen(self._pod_changed)
        self.caches.claims.listen(lambda old, new: self._volume_changed(new or old))
        self.caches.data.listen(lambda old, new: self._volume_changed(new or old))
        self._migrations.listen(lambda old, new: self._queues["vmim"].add(_key(old, new)))
        self._sets.listen(lambda old, new: self._queues["vmirs"].add(_key(old, new)))

    def _vmi_changed(self, old: Obj | None, new: Obj | None) -> None:
        key = _key(old, new)
        self._queues["vmi"].add(key)
        self._queues["vm"].add(key)
        self._queues["handler"].add(key)
        owner = controller_of(new or old or {"metadata": {}})
        if owner is not None and owner.get("kind") == VMIRS.kind:
            self._queues["vmirs"].add(f"{key.partition('/')[0]}/{owner['name']}")
        for migration in self._migrations:
            if f"{meta(migration)['namespace']}/{migration['spec']['vmiName']}" == key:
                self._queues["vmim"].add(key_of(migration))

    def _pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        pod = new or old
        assert pod is not None
        if new is None:
            self._forget(meta(pod)["uid"])
        owner = controller_of(pod)
        if owner is None or owner.get("kind") != VMI.kind:
            return
        key = f"{meta(pod)['namespace']}/{owner['name']}"
        self._queues["vmi"].add(key)
        for migration in self._migrations:
            if f"{meta(migration)['namespace']}/{migration['spec']['vmiName']}" == key:
                self._queues["vmim"].add(key_of(migration))

    def _volume_changed(self, volume: Obj | None) -> None:
        assert volume is not None
        for vmi in users_of(volume, self.caches.vmis):
            self._queues["vmi"].add(key_of(vmi))
            self._queues["vm"].add(key_of(vmi))

    async def run(self, started: asyncio.Event | None = None) -> None:
        """Run until cancelled; `started` is set once everything has been listed."""
        versions = [await informer.sync() for informer in self._informers]
        if started is not None:
            started.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                for informer, version in zip(self._informers, versions, strict=True):
                    tasks.create_task(informer.run(version))
                for name, reconcile in self._loops.items():
                    for _ in range(self._workers):
                        tasks.create_task(work(self._queues[name], reconcile))
        finally:
            for queue in self._queues.values():
                queue.close()


def _key(old: Obj | None, new: Obj | None) -> str:
    obj = new or old
    assert obj is not None
    return key_of(obj)


@asynccontextmanager
async def emulator(kubevirt: KubeVirt) -> AsyncIterator[KubeVirt]:
    """Run KubeVirt for the length of an `async with` block; a bug in it ends the block with its error."""
    started = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(kubevirt.run(started))
        waiting = tasks.create_task(started.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        try:
            yield kubevirt
        finally:
            waiting.cancel()
            running.cancel()
