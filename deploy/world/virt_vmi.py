"""virt-controller for VMIs: the launcher pod, the phases up to Scheduled, the end.

One round is sync (make or delete pods), then status. A pod is made only while the VMI is Pending; a
VMI never gets a second launcher, so a pod lost or failed before Running is a failed VMI.
"""

from collections.abc import Callable

from binder.kube import ApiError
from deploy.world.informer import Informer
from deploy.world.launcher import launcher_pod
from deploy.world.launcher_resources import NotRenderable
from deploy.world.manifests import (
    Obj,
    controller_of,
    copied,
    deleting,
    dig,
    has_condition,
    is_temporary,
    meta,
    pod_ended,
)
from deploy.world.virt_config import Config
from deploy.world.virt_names import (
    FAILED_CREATE,
    FAILED_DELETE,
    FAILED_PVC_NOT_FOUND,
    LATEST_API,
    NODE_NAME_LABEL,
    OUTDATED_LABEL,
    PENDING,
    RUNNING,
    SCHEDULED,
    SCHEDULING,
    STORAGE_API,
    UNPAUSED,
)
from deploy.world.virt_scribe import Scribe, changed
from deploy.world.virt_status import Seen, SyncError, is_final, next_vmi, phase_of
from deploy.world.virt_volumes import Volumes, read_volumes
from deploy.world.workqueue import Retry, WorkQueue

_MANIFEST_ERROR = "failed to render launch manifest: {}"


class Caches:
    """What KubeVirt's controllers see of the cluster."""

    def __init__(self, vms: Informer, vmis: Informer, pods: Informer, claims: Informer, data: Informer) -> None:
        self.vms = vms
        self.vmis = vmis
        self.pods = pods
        self.claims = claims
        self.data = data

    def volumes(self, spec: Obj, namespace: str) -> Volumes:
        """Return what the volumes of a VMI spec say about starting it."""
        return read_volumes(spec, namespace, self.claims, self.data)


class VmiController:
    """Reconciles VMIs by key. `lag_s`: how long activePods overlooks a new pod, as a slow cache would."""

    def __init__(
        self, caches: Caches, config: Callable[[], Config], scribe: Scribe, queue: WorkQueue, *, lag_s: float
    ) -> None:
        self._caches = caches
        self._config = config
        self._scribe = scribe
        self._queue = queue
        self._lag_s = lag_s
        self._first_seen: dict[str, float] = {}

    async def reconcile(self, key: str) -> None:
        """Bring the VMI one round on. Raises `Retry` or `ApiError` where it has to be tried again."""
        vmi = self._caches.vmis.at(key)
        if vmi is None:
            return
        annotations = meta(vmi).get("annotations") or {}
        if self._scribe.chatter and not (LATEST_API in annotations and STORAGE_API in annotations):
            new = copied(vmi)
            meta(new).setdefault("annotations", {}).update({LATEST_API: "v1", STORAGE_API: "v1"})
            await self._scribe.replace(self._caches.vmis, new)
            return
        volumes = self._caches.volumes(vmi["spec"], meta(vmi)["namespace"])
        pod = current_pod(vmi, self._pods(vmi))
        error, pod = await self._sync(vmi, pod, volumes)
        # What a stranger wrote meanwhile is in the cache: judge the newest, write under its version.
        latest = self._caches.vmis.at(key)
        if latest is not None and meta(latest)["uid"] == meta(vmi)["uid"]:
            await self._write_status(latest, pod, volumes, error)
        if error is not None and error.retried:
            raise Retry(error.message)

    def _pods(self, vmi: Obj) -> list[Obj]:
        return self._caches.pods.owned(meta(vmi)["uid"])

    async def _sync(self, vmi: Obj, pod: Obj | None, volumes: Volumes) -> tuple[SyncError | None, Obj | None]:
        if deleting(vmi):
            return await self._delete_pods(vmi), pod
        if is_final(vmi):
            return None, pod
        if not volumes.wffc and pod is not None and is_temporary(pod):
            # Done or not needed any more: only then may the real launcher be made.
            if pod_ended(pod) or dig(pod, "status", "phase") == RUNNING:
                await self._delete_temporary(vmi, pod)
                return None, pod
            return None, pod
        if pod is not None or phase_of(vmi) != PENDING or not (volumes.ready or volumes.wffc):
            return None, pod
        return await self._make_pod(vmi, volumes)

    async def _make_pod(self, vmi: Obj, volumes: Volumes) -> tuple[SyncError | None, Obj | None]:
        if volumes.missing:
            message = _MANIFEST_ERROR.format(f"didn't find PVC {volumes.missing}")
            await self._scribe.tell(vmi, FAILED_PVC_NOT_FOUND, message, warning=True)
            return SyncError(FAILED_PVC_NOT_FOUND, message, retried=False), None
        try:
            body = launcher_pod(vmi, self._config(), temporary=volumes.wffc)
        except NotRenderable as error:
            return SyncError(FAILED_CREATE, _MANIFEST_ERROR.format(error)), None
        try:
            pod = await self._scribe.create(self._caches.pods, meta(vmi)["namespace"], body)
        except ApiError as error:
            await self._scribe.tell(vmi, FAILED_CREATE, f"Error creating pod: {error.message}", warning=True)
            return SyncError(FAILED_CREATE, f"failed to create virtual machine pod: {error.message}"), None
        await self._scribe.tell(vmi, "SuccessfulCreate", f"Created virtual machine pod {meta(pod)['name']}")
        return None, pod

    async def _delete_pods(self, vmi: Obj) -> SyncError | None:
        for pod in self._pods(vmi):
            name = meta(pod)["name"]
            if deleting(pod) and not pod_ended(pod):
                continue
            try:
                await self._scribe.delete(self._caches.pods, pod)
            except ApiError as error:
                await self._scribe.tell(
                    vmi, FAILED_DELETE, f"Failed to delete virtual machine pod {name}", warning=True
                )
                return SyncError(FAILED_DELETE, f"failed to delete pod: {error.message}")
            await self._scribe.tell(vmi, "SuccessfulDelete", f"Deleted virtual machine pod {name}")
        return None

    async def _delete_temporary(self, vmi: Obj, pod: Obj) -> None:
        await self._scribe.delete(self._caches.pods, pod, grace_seconds=0)
        note = f"Deleted WaitForFirstConsumer temporary pod {meta(pod)['name']}"
        await self._scribe.tell(vmi, "SuccessfulDelete", note)

    def _active(self, vmi: Obj) -> dict[str, str]:
        """Return uid -> node of the VMI's pods, without those too new for the cache; come back for these."""
        now = self._scribe.clock.now()
        active: dict[str, str] = {}
        for pod in self._pods(vmi):
            uid = meta(pod)["uid"]
            if self._lag_s:
                age = now - self._first_seen.setdefault(uid, now)
                if age < self._lag_s:
                    namespace, name = meta(vmi)["namespace"], meta(vmi)["name"]
                    self._queue.add_after(f"{namespace}/{name}", self._lag_s - age)
                    continue
            active[uid] = pod["spec"].get("nodeName") or ""
        return active

    def _owned_by_vm(self, vmi: Obj) -> bool:
        owner = controller_of(vmi)
        if owner is None or owner.get("kind") != "VirtualMachine":
            return False
        vm = self._caches.vms.get(meta(vmi)["namespace"], owner["name"])
        return vm is not None and meta(vm)["uid"] == owner["uid"]

    async def _write_status(self, vmi: Obj, pod: Obj | None, volumes: Volumes, error: SyncError | None) -> None:
        config = self._config()
        if pod is not None and not is_temporary(pod) and not deleting(pod) and not is_final(vmi):
            pod = await self._touch_pod(vmi, pod)
        seen = Seen(
            pod=pod,
            pods=self._active(vmi),
            all_gone=not self._pods(vmi),
            owned_by_vm=self._owned_by_vm(vmi),
            volumes=volumes,
            error=error,
            image=config.image,
            now=self._scribe.now(),
        )
        new = next_vmi(vmi, seen)
        if not self._scribe.chatter and phase_of(vmi) == PENDING and phase_of(new) == SCHEDULING:
            new = next_vmi(new, seen)  # what the next round would add anyway
        if phase_of(vmi) in {SCHEDULED, RUNNING}:
            # The object is virt-handler's now: patch what changed, and only if it still stands as seen.
            operations = _patch(vmi, new)
            if operations:
                await self._scribe.patch(self._caches.vmis, vmi, operations)
        elif new != vmi:
            await self._scribe.replace(self._caches.vmis, new)

    async def _touch_pod(self, vmi: Obj, pod: Obj) -> Obj:
        """Sync the unpaused condition and the labels of the day onto the pod, gated or not."""
        if not has_condition(pod, UNPAUSED, "True"):
            now = self._scribe.now()
            told = {"type": UNPAUSED, "status": "True", "reason": "NotPaused", "lastProbeTime": now}
            told |= {"message": "the virtual machine is not paused", "lastTransitionTime": now}
            old = dig(pod, "status", "conditions")
            kept = [one for one in old or () if one.get("type") != UNPAUSED]
            operations = changed("/status/conditions", old, [*kept, told])
            pod = await self._scribe.patch(self._caches.pods, pod, operations, subresource="status")
        labels = dict(meta(pod).get("labels") or {})
        for name in (NODE_NAME_LABEL, OUTDATED_LABEL):
            wanted = (meta(vmi).get("labels") or {}).get(name)
            if wanted is None:
                labels.pop(name, None)
            else:
                labels[name] = wanted
        operations = changed("/metadata/labels", meta(pod).get("labels"), labels)
        return await self._scribe.patch(self._caches.pods, pod, operations) if operations else pod

    def forget(self, pod_uid: str) -> None:
        """Forget when a pod that is gone was first seen."""
        self._first_seen.pop(pod_uid, None)


def _patch(old: Obj, new: Obj) -> list[Obj]:
    operations: list[Obj] = []
    for field in ("volumeStatus", "conditions", "activePods", "phase", "launcherContainerImageVersion", "interfaces"):
        operations += changed(f"/status/{field}", dig(old, "status", field), dig(new, "status", field))
    return operations + changed("/metadata/labels", meta(old).get("labels"), meta(new).get("labels"))


def current_pod(vmi: Obj, pods: list[Obj]) -> Obj | None:
    """Return the VMI's newest pod; once the VMI has a node, pods on other nodes do not count."""
    node = dig(vmi, "status", "nodeName")
    mine = [pod for pod in pods if not node or pod["spec"].get("nodeName") == node]
    if not mine:
        return None
    return max(mine, key=lambda pod: (meta(pod).get("creationTimestamp") or "", meta(pod)["name"]))
