"""virt-controller for migrations: the target pod on request, its time limits, the handover.

The target is a launcher of the same VMI with a mark of its own; it carries the VMI's label with the
*source* node. Until the handover the VMI has two pods in activePods.
"""

from collections.abc import Callable

from binder.kube import ApiError
from deploy.world.clock import unstamp
from deploy.world.informer import Informer
from deploy.world.launcher import migration_target
from deploy.world.launcher_resources import NotRenderable
from deploy.world.manifests import (
    Obj,
    copied,
    deleting,
    dig,
    drop_finalizer,
    has_condition,
    has_finalizer,
    meta,
    pod_down,
    pod_runs,
)
from deploy.world.virt_config import Config
from deploy.world.virt_names import MIGRATION_FINALIZER, MIGRATION_UID_LABEL, NODE_NAME_LABEL, RUNNING
from deploy.world.virt_scribe import Scribe, changed
from deploy.world.virt_status import phase_of
from deploy.world.virt_vmi import Caches, current_pod
from deploy.world.workqueue import Retry, WorkQueue

UNSCHEDULABLE_S = 300
PENDING_S = 900
_NEXT = {"": "Pending", "Scheduled": "PreparingTarget", "PreparingTarget": "TargetReady", "TargetReady": RUNNING}


class MigrationController:
    """Reconciles migrations by key; virt-handler's part of a migration, the copying, takes no time."""

    def __init__(
        self, migrations: Informer, caches: Caches, config: Callable[[], Config], scribe: Scribe, queue: WorkQueue
    ) -> None:
        self._migrations = migrations
        self._vmis = caches.vmis
        self._pods = caches.pods
        self._config = config
        self._scribe = scribe
        self._queue = queue

    async def reconcile(self, key: str) -> None:
        """Bring the migration one phase on. Raises `Retry` or `ApiError` where it has to be tried again."""
        migration = self._migrations.at(key)
        if migration is None:
            return
        vmi = self._vmis.get(meta(migration)["namespace"], migration["spec"]["vmiName"])
        target = self._target(migration, vmi)
        phase = str(dig(migration, "status", "phase") or "")
        if phase in {"Succeeded", "Failed"} or deleting(migration):
            await self._finish(migration, target, phase)
            return
        if vmi is None or phase_of(vmi) != RUNNING or deleting(vmi):
            await self._set(migration, "Failed")
        elif phase == "Pending":
            await self._make_target(migration, vmi, target)
        elif phase == "Scheduling":
            await self._wait_for(migration, target)
        elif phase == RUNNING:
            await self._hand_over(migration, vmi, target)
        else:
            await self._set(migration, _NEXT[phase])

    def _target(self, migration: Obj, vmi: Obj | None) -> Obj | None:
        uid = meta(migration)["uid"]
        pods = self._pods.owned(meta(vmi)["uid"]) if vmi is not None else ()
        return next((pod for pod in pods if (meta(pod).get("labels") or {}).get(MIGRATION_UID_LABEL) == uid), None)

    async def _set(self, migration: Obj, phase: str) -> None:
        new = copied(migration)
        status: Obj = new.setdefault("status", {})
        status["phase"] = phase
        times: list[Obj] = status.setdefault("phaseTransitionTimestamps", [])
        times.append({"phase": phase, "phaseTransitionTimestamp": self._scribe.now()})
        vmi = self._vmis.get(meta(migration)["namespace"], migration["spec"]["vmiName"])
        source = current_pod(vmi, self._pods.owned(meta(vmi)["uid"])) if vmi is not None else None
        if phase == "Pending" and source is not None:
            status["migrationState"] = {"sourcePod": meta(source)["name"]}
        await self._scribe.replace(self._migrations, new, subresource="status")

    async def _make_target(self, migration: Obj, vmi: Obj, target: Obj | None) -> None:
        if target is None:
            try:
                body = migration_target(vmi, migration, self._config())
                target = await self._scribe.create(self._pods, meta(vmi)["namespace"], body)
            except NotRenderable as error:
                raise Retry(str(error)) from error
            except ApiError as error:
                note = f"Error creating pod: {error.message}"
                await self._scribe.tell(migration, "FailedCreate", note, warning=True)
                raise
            note = f"Created migration target pod {meta(target)['name']}"
            await self._scribe.tell(migration, "SuccessfulCreate", note)
        await self._set(migration, "Scheduling")

    async def _wait_for(self, migration: Obj, target: Obj | None) -> None:
        if target is None or pod_down(target):
            await self._set(migration, "Failed")
            return
        if pod_runs(target):
            await self._set(migration, "Scheduled")
            return
        unschedulable = has_condition(target, "PodScheduled", "False", "Unschedulable")
        most = UNSCHEDULABLE_S if unschedulable else PENDING_S
        left = unstamp(meta(target)["creationTimestamp"]) + most - self._scribe.clock.now()
        if left <= 0:
            await self._scribe.delete(self._pods, target)
            await self._set(migration, "Failed")
        else:
            self._queue.add_after(f"{meta(migration)['namespace']}/{meta(migration)['name']}", left)

    async def _hand_over(self, migration: Obj, vmi: Obj, target: Obj | None) -> None:
        if target is None or pod_down(target):
            await self._set(migration, "Failed")
            return
        node = target["spec"]["nodeName"]
        operations = changed("/status/nodeName", dig(vmi, "status", "nodeName"), node)
        labels = meta(vmi).get("labels") or {}
        operations += changed("/metadata/labels", meta(vmi).get("labels"), labels | {NODE_NAME_LABEL: node})
        if operations:
            await self._scribe.patch(self._vmis, vmi, operations)
        await self._set(migration, "Succeeded")

    async def _finish(self, migration: Obj, target: Obj | None, phase: str) -> None:
        if phase != "Succeeded" and target is not None and not deleting(target):
            await self._scribe.delete(self._pods, target)
        latest = self._migrations.get(meta(migration)["namespace"], meta(migration)["name"])
        if latest is not None and has_finalizer(latest, MIGRATION_FINALIZER):
            new = copied(latest)
            drop_finalizer(new, MIGRATION_FINALIZER)
            await self._scribe.replace(self._migrations, new)
