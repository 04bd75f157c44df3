"""The kubelets of all nodes: bound pods are admitted against the node's devices, run, and end.

Devices are allocated first: too few of a plugin's are an `UnexpectedAdmissionError`. What the node does not
have at all, and too little of anything else, is `OutOf<resource>`; a test can have a plugin refuse a pod that
fits. A node whose `Ready` is Unknown has no kubelet: what stands there stays as it is. Unbound pods are
nobody's here: the API server lets them go.
"""

from collections.abc import Callable, Iterable

import msgspec

from binder.kube import ApiError, Kube
from deploy.world.amounts import millis
from deploy.world.clock import Clock
from deploy.world.informer import Informer
from deploy.world.manifests import (
    Obj,
    copied,
    deleting,
    dig,
    has_condition,
    is_temporary,
    meta,
    pod_ended,
    set_condition,
)
from deploy.world.virt_names import SECRET
from deploy.world.virt_scribe import Scribe
from deploy.world.workqueue import Retry, WorkQueue
from schemas.kinds import NODE, POD


class Refusal(msgspec.Struct, frozen=True):
    """Why a kubelet does not run a pod: the reason and message of its status."""

    reason: str
    message: str


UNEXPECTED = Refusal("UnexpectedAdmissionError", "Allocate failed due to requested number of devices unavailable")

Plugin = Callable[[Obj], Refusal | None]
"""A device plugin's word on a pod that fits: None lets it run."""


class Kubelet:
    """Reconciles bound pods by key. `start_s`, `stop_s`: how long a pod takes to run and to end.

    `secrets`: whether a Secret volume has to exist before its pod runs.
    """

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        queue: WorkQueue,
        pods: Informer,
        *,
        start_s: float = 0.0,
        stop_s: float = 0.0,
        secrets: bool = True,
        plugin: Plugin = lambda _: None,
    ) -> None:
        self.pods = pods
        self.nodes = Informer(kube, NODE, clock)
        self.queue = queue
        self.plugin = plugin
        self._kube = kube
        self._scribe = Scribe(kube, clock, chatter=False)
        self._start_s = start_s
        self._stop_s = stop_s
        self._secrets = secrets
        self._admitted: dict[str, dict[str, dict[str, int]]] = {}
        self._since: dict[str, float] = {}
        self.pods.listen(self._pod_changed)
        self.nodes.listen(self._node_changed)

    def _pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        pod = new if new is not None else old
        assert pod is not None
        node = pod["spec"].get("nodeName")
        if not node:
            return
        if new is None or pod_ended(new):
            # Its devices are free; who failed for want of them has failed for good.
            self._admitted.get(node, {}).pop(meta(pod)["uid"], None)
        elif dig(new, "status", "phase") == "Running":
            self._admitted.setdefault(node, {}).setdefault(meta(new)["uid"], effective_requests(new))
        if new is not None:
            self.queue.add(f"{meta(new)['namespace']}/{meta(new)['name']}")

    def _node_changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is None:
            return
        for pod in self.pods:
            if pod["spec"].get("nodeName") == meta(new)["name"] and (
                deleting(pod) or dig(pod, "status", "phase") == "Pending"
            ):
                self.queue.add(f"{meta(pod)['namespace']}/{meta(pod)['name']}")

    async def reconcile(self, key: str) -> None:
        """Bring a bound pod one step on. Raises `Retry` or `ApiError` where it has to be tried again."""
        pod = self.pods.at(key)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        node = self.nodes.get("", pod["spec"]["nodeName"])
        if node is not None and has_condition(node, "Ready", "Unknown"):
            return  # its kubelet is silent; whoever forces a pod's end does so past it
        if deleting(pod):
            if self._waited(key, f"stop {meta(pod)['uid']}", self._stop_s):
                await self._remove(pod)
        elif dig(pod, "status", "phase") == "Pending" and node is not None:  # no such node, no kubelet
            await self._start(key, node, pod)

    async def _start(self, key: str, node: Obj, pod: Obj) -> None:
        uid = meta(pod)["uid"]
        admitted = self._admitted.setdefault(meta(node)["name"], {})
        if uid not in admitted:
            refusal = self._admit(node, pod)
            if refusal is not None:
                await self._fail(pod, refusal)
                return
            # Held from here on, in one breath with the check: a second pod sees them taken.
            admitted[uid] = effective_requests(pod)
        if not self._waited(key, f"start {uid}", self._start_s):
            return
        await self._check_secrets(pod)
        await self._scribe.replace(self.pods, running(pod, self._scribe.now()), subresource="status")

    def _waited(self, key: str, what: str, seconds: float) -> bool:
        """Say whether so much time has passed since this was first wanted; else come back then."""
        if not seconds:
            return True
        now = self._scribe.clock.now()
        first = what not in self._since
        since = self._since.setdefault(what, now)
        if now - since >= seconds:
            del self._since[what]
            return True
        if first:
            self.queue.add_after(key, seconds)
        return False

    def _admit(self, node: Obj, pod: Obj) -> Refusal | None:
        name = meta(node)["name"]
        allocatable: Obj = dig(node, "status", "allocatable") or {}
        wanted = effective_requests(pod).items()
        for resource, asked in sorted(wanted, key=lambda one: (not _is_device(one[0]), one[0])):
            taken = self.taken(name, resource)
            have = millis(allocatable.get(resource, 0))
            if taken + asked > have:
                return _short_of(resource, asked // 1000, taken // 1000, have // 1000)
        return self.plugin(pod)

    def taken(self, node: str, resource: str) -> int:
        """Return how much of a resource the pods hold that the node's kubelet has let in, in thousandths."""
        return sum(one.get(resource, 0) for one in self._admitted.get(node, {}).values())

    async def _check_secrets(self, pod: Obj) -> None:
        for volume in pod["spec"].get("volumes") or () if self._secrets else ():
            secret = volume.get("secret")
            if secret is None or secret.get("optional"):
                continue
            try:
                await self._kube.get(SECRET, meta(pod)["namespace"], secret["secretName"])
            except ApiError as error:
                if error.code != 404:
                    raise
                raise Retry(f'secret "{secret["secretName"]}" not found') from error

    async def _fail(self, pod: Obj, refusal: Refusal) -> None:
        new = copied(pod)
        status: Obj = new.setdefault("status", {})
        message = f"Pod was rejected: {refusal.message}"
        status |= {"phase": "Failed", "reason": refusal.reason, "message": message, "startTime": self._scribe.now()}
        await self._scribe.replace(self.pods, new, subresource="status")

    async def _remove(self, pod: Obj) -> None:
        self._since.pop(f"start {meta(pod)['uid']}", None)
        try:
            await self._kube.delete(
                POD, meta(pod)["namespace"], meta(pod)["name"], uid=meta(pod)["uid"], grace_seconds=0
            )
        except ApiError as error:
            if error.code not in {404, 409}:
                raise

    async def end(self, namespace: str, name: str, *, phase: str = "Failed", reason: str = "") -> None:
        """End a pod on its node: its containers have stopped. Raises `ApiError` where it is gone."""
        pod = msgspec.json.decode(await self._kube.get(POD, namespace, name))
        new = copied(pod)
        status: Obj = new.setdefault("status", {})
        status["phase"] = phase
        if reason:
            status["reason"] = reason
        for container in status.get("containerStatuses") or ():
            container["state"] = {"terminated": {"exitCode": 0 if phase == "Succeeded" else 1}}
        await self._scribe.replace(self.pods, new, subresource="status")


def _is_device(resource: str) -> bool:
    """Say whether a device plugin hands the resource out: Kubernetes' own have no domain in their names."""
    return "/" in resource


def _short_of(resource: str, asked: int, taken: int, have: int) -> Refusal:
    if _is_device(resource) and have:
        counted = f"Requested: {asked}, Available: {max(have - taken, 0)}"
        return Refusal(UNEXPECTED.reason, f"{UNEXPECTED.message} for {resource}. {counted}, which is unexpected")
    said = f"Node didn't have enough resource: {resource}, requested: {asked}"
    return Refusal(f"OutOf{resource}", f"{said}, used: {taken}, capacity: {have}")


def running(pod: Obj, now: str) -> Obj:
    """Return the pod as its kubelet reports it: running, or done at once where it only binds volumes."""
    new = copied(pod)
    status: Obj = new.setdefault("status", {})
    if is_temporary(pod):
        return new | {"status": status | {"phase": "Succeeded", "startTime": now}}
    for kind in ("Initialized", "Ready", "ContainersReady"):
        set_condition(new, {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now})
    status["phase"] = "Running"
    status["startTime"] = now
    status["containerStatuses"] = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": container.get("image", ""),
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for container in pod["spec"]["containers"]
    ]
    return new


def effective_requests(pod: Obj) -> dict[str, int]:
    """Return what a pod takes of its node, in thousandths, and one pod.

    Per resource the larger of: containers and sidecars together; each init container with the sidecars
    started before it (C33). Overhead comes on top.
    """
    spec = pod["spec"]
    mains = _sum(_requests(container) for container in spec.get("containers") or ())
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = _sum((sidecars, _requests(container)))
            peak = sidecars
        else:
            peak = _sum((sidecars, _requests(container)))
        starting = {name: max(starting.get(name, 0), peak.get(name, 0)) for name in starting | peak}
    steady = _sum((mains, sidecars))
    most = {name: max(steady.get(name, 0), starting.get(name, 0)) for name in steady | starting}
    overhead = {name: millis(value) for name, value in (spec.get("overhead") or {}).items()}
    return _sum((most, overhead, {"pods": 1000}))


def _requests(container: Obj) -> dict[str, int]:
    resources = container.get("resources") or {}
    asked = dict(resources.get("limits") or {}) | dict(resources.get("requests") or {})
    return {name: millis(value) for name, value in asked.items()}


def _sum(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total
