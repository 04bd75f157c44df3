"""virt-handler, one for all nodes: a Scheduled VMI boots to Running, a VMI being deleted shuts down.

It alone writes the phase of a VMI between Scheduled and its end.
"""

from collections.abc import Callable

from deploy.world.informer import Informer
from deploy.world.manifests import Obj, condition, copied, deleting, dig, meta, set_condition
from deploy.world.virt_config import Config
from deploy.world.virt_names import RUNNING, SCHEDULED, SUCCEEDED
from deploy.world.virt_scribe import Scribe
from deploy.world.virt_status import phase_of
from deploy.world.workqueue import WorkQueue


class VirtHandler:
    """Reconciles VMIs by key. `boot_s`, `shutdown_s`: how long a guest takes."""

    def __init__(
        self,
        vmis: Informer,
        config: Callable[[], Config],
        scribe: Scribe,
        queue: WorkQueue,
        *,
        boot_s: float = 0.0,
        shutdown_s: float = 0.0,
    ) -> None:
        self._vmis = vmis
        self._scribe = scribe
        self._queue = queue
        self._config = config
        self._boot_s = boot_s
        self._shutdown_s = shutdown_s
        self._since: dict[tuple[str, str], float] = {}

    async def reconcile(self, key: str) -> None:
        """Boot the guest or shut it down. Raises `ApiError` where it has to be tried again."""
        vmi = self._vmis.at(key)
        if vmi is None or phase_of(vmi) not in {SCHEDULED, RUNNING}:
            return
        if deleting(vmi):
            if self._waited(key, meta(vmi)["uid"], "shutdown", self._shutdown_s):
                await self._set_phase(vmi, SUCCEEDED)
        elif phase_of(vmi) == SCHEDULED and self._waited(key, meta(vmi)["uid"], "boot", self._boot_s):
            await self._set_phase(vmi, RUNNING)

    def _waited(self, key: str, uid: str, what: str, seconds: float) -> bool:
        """Say whether so much time has passed since this was first wanted; else come back then."""
        now = self._scribe.clock.now()
        since = self._since.setdefault((uid, what), now)
        if now - since >= seconds:
            del self._since[uid, what]
            return True
        if since == now:
            self._queue.add_after(key, seconds)
        return False

    async def _set_phase(self, vmi: Obj, phase: str) -> None:
        new = copied(vmi)
        status: Obj = new["status"]
        status["phase"] = phase
        times: list[Obj] = status.setdefault("phaseTransitionTimestamps", [])
        times.append({"phase": phase, "phaseTransitionTimestamp": self._scribe.now()})
        if phase == RUNNING and condition(vmi, "LiveMigratable") is None:
            set_condition(new, live_migratable(vmi, self._config()))
        await self._scribe.replace(self._vmis, new)


def live_migratable(vmi: Obj, config: Config) -> Obj:
    """Return the LiveMigratable condition: one mediated GPU under its gate can move, other host devices can't."""
    fine: Obj = {"type": "LiveMigratable", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    gpus: list[Obj] = dig(vmi, "spec", "domain", "devices", "gpus") or []
    others = dig(vmi, "spec", "domain", "devices", "hostDevices") or ()
    if not gpus and not others:
        return fine
    told = fine | {"status": "False", "reason": "HostDeviceNotLiveMigratable"}
    if others:
        return told | {"message": "VMI uses a PCI host devices"}
    if not config.gate("VGPULiveMigration"):
        return told | {"message": "VMI specifies a GPU but feature gate VGPULiveMigration is not enabled"}
    if len(gpus) > 1:
        return told | {"message": "VMI specifies more than one GPU"}
    if gpus[0].get("deviceName") not in config.mediated:
        return told | {"message": "VMI uses a GPU that is not a mediated device"}
    return fine
