"""virt-controller for VMs: a VMI from the template, restarts with back-off, stops, LiveUpdate's rewriting.

Labels and annotations of the VMI come from `spec.template.metadata` alone. LiveUpdate puts affinity,
nodeSelector and tolerations of the VMI back to the template's, whoever changed them.
"""

from collections.abc import Callable

from binder.kube import ApiError
from deploy.world.clock import unstamp
from deploy.world.manifests import (
    Obj,
    condition,
    copied,
    deleting,
    dig,
    drop_finalizer,
    has_finalizer,
    key_of,
    meta,
    owner_reference,
)
from deploy.world.virt_config import Config
from deploy.world.virt_names import FAILED, FAILED_CREATE, LATEST_API, STORAGE_API, VM_FINALIZER, VM_GENERATION
from deploy.world.virt_restart import CONDITION, PLACEMENT, needs_restart
from deploy.world.virt_scribe import Scribe, changed
from deploy.world.virt_status import is_final, phase_of
from deploy.world.virt_vm_status import VmSeen, backoff_base, new_failure, next_status, run_strategy
from deploy.world.virt_vmi import Caches
from deploy.world.workqueue import Retry, WorkQueue

Jitter = Callable[[str, int], int]
"""(uid of the failed VMI, most) -> seconds from 0 to most on top of its back-off."""


def vmi_of(vm: Obj) -> Obj:
    """Return the VMI that virt-controller posts for a VM."""
    template: Obj = vm["spec"]["template"]
    generation = meta(vm).get("generation", 1)
    metadata: Obj = {
        "name": meta(vm)["name"],
        "namespace": meta(vm)["namespace"],
        "annotations": dict(dig(template, "metadata", "annotations") or {}) | {VM_GENERATION: str(generation)},
        "finalizers": [VM_FINALIZER],
        "ownerReferences": [owner_reference(vm)],
    }
    labels = dig(template, "metadata", "labels")
    if labels:
        metadata["labels"] = dict(labels)
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": metadata,
        "spec": copied(template["spec"]),
        "status": {"virtualMachineRevisionName": revision_name(vm)},
    }


def revision_name(vm: Obj) -> str:
    """Return the name of the ControllerRevision a VM's start is recorded under."""
    return f"revision-start-vm-{meta(vm)['uid']}-{meta(vm).get('generation', 1)}"


class VmController:
    """Reconciles VMs by key."""

    def __init__(
        self, caches: Caches, config: Callable[[], Config], scribe: Scribe, queue: WorkQueue, *, jitter: Jitter
    ) -> None:
        self._caches = caches
        self._config = config
        self._scribe = scribe
        self._queue = queue
        self._jitter = jitter
        self._stopped: dict[str, str] = {}
        # Uid of the VMI and the template's spec that it was started from, by VM: what its revision holds.
        self._started: dict[str, tuple[str, Obj]] = {}

    def start_anew(self) -> None:
        """Forget what was done, as a controller that was restarted."""
        self._stopped.clear()
        self._started.clear()

    async def reconcile(self, key: str) -> None:
        """Bring the VM one round on. Raises `Retry` or `ApiError` where it has to be tried again."""
        vm = self._caches.vms.at(key)
        if vm is None:
            self._stopped.pop(key, None)
            self._started.pop(key, None)
            return
        annotations = meta(vm).get("annotations") or {}
        if self._scribe.chatter and not (LATEST_API in annotations and STORAGE_API in annotations):
            new = copied(vm)
            meta(new).setdefault("annotations", {}).update({LATEST_API: "v1", STORAGE_API: "v1"})
            vm = await self._scribe.replace(self._caches.vms, new)
        vmi = self._vmi(vm)
        failure = ""
        if deleting(vm):
            vm = await self._remove(vm, vmi)
        else:
            if not has_finalizer(vm, VM_FINALIZER):
                new = copied(vm)
                meta(new)["finalizers"] = [*(meta(vm).get("finalizers") or ()), VM_FINALIZER]
                vm = await self._scribe.replace(self._caches.vms, new)
            failure = await self._follow_strategy(vm, vmi)
        restart = await self._needs_restart(vm, vmi) if vmi is not None else False
        if vmi is not None:
            if not restart:
                await self._live_update(vm, vmi)
            await self._release(vmi)
        await self._write_status(key, vmi, failure, restart=restart)
        if failure:
            raise Retry(failure)

    def _vmi(self, vm: Obj) -> Obj | None:
        found = self._caches.vmis.get(meta(vm)["namespace"], meta(vm)["name"])
        if found is None or not any(one["uid"] == meta(vm)["uid"] for one in meta(found).get("ownerReferences") or ()):
            return None
        return found

    async def _remove(self, vm: Obj, vmi: Obj | None) -> Obj:
        if vmi is not None:
            await self._stop(vm, vmi)
            return vm
        if has_finalizer(vm, VM_FINALIZER):
            new = copied(vm)
            drop_finalizer(new, VM_FINALIZER)
            return await self._scribe.replace(self._caches.vms, new)
        return vm

    async def _follow_strategy(self, vm: Obj, vmi: Obj | None) -> str:
        """Start or stop as the run strategy says; return why a start was refused, or ''."""
        strategy = run_strategy(vm)
        asked = [one.get("action") for one in dig(vm, "status", "stateChangeRequests") or ()]
        begun = dig(vm, "status", "runStrategy") == strategy
        if vmi is not None:
            ended = is_final(vmi) and strategy in {"Always", "RerunOnFailure"}
            if strategy == "RerunOnFailure" and phase_of(vmi) == FAILED and "Start" not in asked:
                await self._request_start(vm)
            if ended or strategy == "Halted" or "Stop" in asked:
                await self._stop(vm, vmi)
            return ""
        wanted = {
            "Always": True,
            "RerunOnFailure": "Start" in asked or not begun,
            "Once": not begun,
            "Manual": "Start" in asked,
        }.get(strategy, "Start" in asked)
        if not wanted:
            return ""
        left = self._backoff_left(vm)
        if left > 0 and strategy in {"Always", "RerunOnFailure"}:
            self._queue.add_after(key_of(vm), left)
            return ""
        return await self._start(vm)

    def _backoff_left(self, vm: Obj) -> float:
        until = dig(vm, "status", "startFailure", "retryAfterTimestamp")
        return unstamp(until) - self._scribe.clock.now() if until else 0.0

    async def _start(self, vm: Obj) -> str:
        name = meta(vm)["name"]
        if self._scribe.chatter:
            await self._scribe.revise(vm, revision_name(vm))
        try:
            made = await self._scribe.create(self._caches.vmis, meta(vm)["namespace"], vmi_of(vm))
        except ApiError as error:
            note = f"Error creating virtual machine instance: {error.message}"
            await self._scribe.tell(vm, FAILED_CREATE, note, warning=True)
            return error.message
        self._started[key_of(vm)] = (meta(made)["uid"], copied(vm["spec"]["template"]["spec"]))
        note = f"Started the virtual machine by creating the new virtual machine instance {name}"
        await self._scribe.tell(vm, "SuccessfulCreate", note)
        return ""

    async def _stop(self, vm: Obj, vmi: Obj) -> None:
        key, uid = key_of(vm), meta(vmi)["uid"]
        if deleting(vmi) or self._stopped.get(key) == uid:
            return
        await self._scribe.delete(self._caches.vmis, vmi)
        self._stopped[key] = uid
        note = f"Stopped the virtual machine by deleting the virtual machine instance {uid}"
        await self._scribe.tell(vm, "SuccessfulDelete", note)

    async def _request_start(self, vm: Obj) -> None:
        new = copied(vm)
        new.setdefault("status", {}).setdefault("stateChangeRequests", []).append({"action": "Start"})
        await self._scribe.replace(self._caches.vms, new, subresource="status")

    async def _release(self, vmi: Obj) -> None:
        """Take our finalizer off a final VMI that is being deleted; a stranger's finalizer still holds it."""
        if is_final(vmi) and deleting(vmi) and has_finalizer(vmi, VM_FINALIZER):
            new = copied(vmi)
            drop_finalizer(new, VM_FINALIZER)
            operations = changed("/metadata/finalizers", meta(vmi)["finalizers"], meta(new).get("finalizers"))
            await self._scribe.patch(self._caches.vmis, vmi, operations)

    async def _needs_restart(self, vm: Obj, vmi: Obj) -> bool:
        """Say whether the VM's template was changed beyond what reaches its VMI; without a revision nobody knows."""
        uid, started = self._started.get(key_of(vm), ("", {}))
        if uid != meta(vmi)["uid"]:
            name = dig(vmi, "status", "virtualMachineRevisionName") or ""
            spec = await self._scribe.revised(vm, name) if self._scribe.chatter and name else None
            if spec is None:
                return False
            started = spec["template"]["spec"]
            self._started[key_of(vm)] = (meta(vmi)["uid"], started)
        return needs_restart(started, vm["spec"]["template"]["spec"], live_update=self._config().live_update)

    async def _live_update(self, vm: Obj, vmi: Obj) -> None:
        if not self._config().live_update or deleting(vm) or deleting(vmi) or is_final(vmi):
            return
        template: Obj = vm["spec"]["template"]["spec"]
        for field in PLACEMENT:
            wanted = template.get(field) or None
            if (vmi["spec"].get(field) or None) == wanted:
                continue
            operation: Obj = {"op": "remove", "path": f"/spec/{field}"}
            if wanted is not None:
                operation = {"op": "add", "path": f"/spec/{field}", "value": wanted}
            vmi = await self._scribe.patch(self._caches.vmis, vmi, [operation])

    async def _write_status(self, key: str, before: Obj | None, failure: str, *, restart: bool) -> None:
        vm = self._caches.vms.at(key)
        if vm is None:
            return
        after = self._vmi(vm)
        # Told from the VMI before this round, as KubeVirt does; without chatter from the newest at once.
        vmi = before if self._scribe.chatter else after
        failures = new_failure(vm, vmi)
        seen = VmSeen(
            vmi=vmi,
            started=after,
            volumes=self._caches.volumes(vm["spec"]["template"]["spec"], meta(vm)["namespace"]),
            failure=failure,
            jitter=self._jitter(meta(vmi)["uid"], backoff_base(failures) // 2) if failures and vmi else 0,
            now=self._scribe.clock.now(),
            restart=restart,
        )
        new = next_status(vm, seen)
        settled = {"Start"} if before is None and after is not None else set()
        settled |= {"Stop"} if before is None else set()
        left = [one for one in new["status"].pop("stateChangeRequests", ()) if one.get("action") not in settled]
        if left:
            new["status"]["stateChangeRequests"] = left
        if new != vm and (self._scribe.chatter or _acts_on(new) != _acts_on(vm)):
            await self._scribe.replace(self._caches.vms, new, subresource="status")


def _acts_on(vm: Obj) -> Obj:
    """Return the part of a VM's status that its controller, or somebody who waits for it, acts on."""
    names = ("printableStatus", "startFailure", "stateChangeRequests", "runStrategy", "ready")
    told = {kind: condition(vm, kind) for kind in ("Failure", CONDITION)}
    return {name: dig(vm, "status", name) for name in names} | told
