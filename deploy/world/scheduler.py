"""The scheduler of the model world: puts ungated pods on nodes, one per step, highest priority first.

It filters as kube-scheduler does (`deploy.world.fitting`) and then takes the node with the fewest pods.
What fits nowhere waits until a node, a volume or a pod that left makes it worth another look.
"""

import heapq
from collections.abc import Iterable

from typing_extensions import override

from binder.kube import ApiError, PatchKind
from deploy.world import fitting
from deploy.world.apiserver import ApiServer
from deploy.world.clock import Clock, WallClock, stamp
from deploy.world.fitting import Amounts
from deploy.world.history import Change
from deploy.world.manifests import Obj, dig, encode
from deploy.world.parts import Part
from schemas import kinds

USER = "system:kube-scheduler"


class Scheduler(Part):
    """`Scheduler(server, clock=..., name="default-scheduler")`: serves the pods that name it.

    Preemption, spreading, scores and volumes that are still to be made are not modelled. A node counts
    as tainted not-ready unless its Ready condition is True: the node-lifecycle controller isn't there.
    """

    def __init__(self, server: ApiServer, *, clock: Clock | None = None, name: str = "default-scheduler") -> None:
        self._server = server
        self._door = server.as_user(USER)
        self._clock = clock or WallClock()
        self._name = name
        self._queue: list[tuple[int, int, str]] = []  # (-priority, arrival, key)
        self._queued: dict[str, int] = {}  # key -> the arrival that counts
        self._arrivals = 0
        self._waiting: dict[str, None] = {}
        self._used: dict[str, Amounts] = {}
        self._counts: dict[str, int] = {}  # node -> pods on it
        self._bound: dict[str, Obj] = {}
        self._minding: dict[str, Obj] = {}  # those of them that don't stand beside just any pod
        super().__init__(server.store)
        self.reset()

    @override
    def reset(self) -> None:
        self._queue.clear()
        for table in (self._queued, self._waiting, self._used, self._counts, self._bound, self._minding):
            table.clear()
        for change in self._server.store.collection(kinds.POD).objects.values():
            self._note_pod(change._replace(before=None))
        super().reset()

    @override
    def noted(self, change: Change) -> None:
        if change.resource == kinds.POD:
            self._note_pod(change)
        elif (change.resource == kinds.NODE and _node_matters(change)) or change.resource in (kinds.PV, kinds.PVC):
            self._look_again()

    def _note_pod(self, change: Change) -> None:
        gone = change.type == "DELETED"
        if change.before is not None and _occupies(change.before):
            self._account(change.before, change.key, -1)
        if not gone and _occupies(change.object):
            self._account(change.object, change.key, 1)
        elif change.before is not None and _occupies(change.before):
            self._look_again()
        if gone or not self._is_mine(change.object):
            self._queued.pop(change.key, None)
            self._waiting.pop(change.key, None)
        elif change.before is None or change.before["spec"] != change.object["spec"]:
            self._enqueue(change.key, change.object)

    def _is_mine(self, pod: Obj) -> bool:
        spec = pod["spec"]
        if spec.get("nodeName") or spec.get("schedulingGates") or spec.get("schedulerName") != self._name:
            return False
        return "deletionTimestamp" not in pod["metadata"] and dig(pod, "status", "phase") == "Pending"

    def _account(self, pod: Obj, key: str, sign: int) -> None:
        node = pod["spec"]["nodeName"]
        used = self._used.setdefault(node, {})
        for name, value in fitting.requests_of(pod).items():
            used[name] = used.get(name, 0) + sign * value
        self._counts[node] = self._counts.get(node, 0) + sign
        self._bound.pop(key, None)
        self._minding.pop(key, None)
        if sign > 0:
            self._bound[key] = pod
            if fitting.minds(pod):
                self._minding[key] = pod

    def _enqueue(self, key: str, pod: Obj) -> None:
        self._arrivals += 1
        self._queued[key] = self._arrivals
        self._waiting.pop(key, None)
        heapq.heappush(self._queue, (-int(pod["spec"].get("priority", 0)), self._arrivals, key))

    def _look_again(self) -> None:
        for key in list(self._waiting):
            found = self._server.store.get(kinds.POD, key)
            if found is not None:
                self._enqueue(key, found.object)

    @override
    def has_work(self) -> bool:
        return bool(self._queue)

    @override
    async def step(self) -> bool:
        while self._queue:
            _, arrival, key = heapq.heappop(self._queue)
            found = self._server.store.get(kinds.POD, key)
            if self._queued.get(key) != arrival or found is None:
                continue
            del self._queued[key]
            await self._place(key, found.object)
            return True
        return False

    async def _place(self, key: str, pod: Obj) -> None:
        nodes = self._nodes(fitting.pinned_to(pod))
        fitting_nodes = [node for node in nodes if self._fits(pod, node)]
        meta = pod["metadata"]
        if not fitting_nodes:
            self._waiting[key] = None
            await self._say_why(pod)
            return
        names = [node["metadata"]["name"] for node in fitting_nodes]
        chosen = min(names, key=lambda name: (self._counts.get(name, 0), name))
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(self._clock.now())}
        self._server.writes.bind(meta["namespace"], meta["name"], chosen, _with_condition(pod, scheduled))

    def _nodes(self, names: Iterable[str] | None) -> list[Obj]:
        nodes = self._server.store.collection(kinds.NODE).objects
        if names is None:
            return [change.object for change in nodes.values()]
        return [nodes[name].object for name in names if name in nodes]

    def _fits(self, pod: Obj, node: Obj) -> bool:
        name = node["metadata"]["name"]
        if not fitting.selects(pod, node) or not fitting.tolerates(pod, fitting.taints_of(node)):
            return False
        used, offered = self._used.get(name, {}), fitting.allocatable_of(node)
        wanted = fitting.requests_of(pod).items()
        if any(value > 0 and used.get(one, 0) + value > offered.get(one, 0) for one, value in wanted):
            return False
        return self._reached(pod, node) and not self._repelled(pod, node)

    def _reached(self, pod: Obj, node: Obj) -> bool:
        """Whether the pod's bound volumes reach the node."""
        for volume in pod["spec"].get("volumes") or ():
            name = dig(volume, "persistentVolumeClaim", "claimName")
            if name is None:
                continue
            claim = self._server.store.get(kinds.PVC, f"{pod['metadata']['namespace']}/{name}")
            if claim is None:
                return False
            bound = self._server.store.get(kinds.PV, dig(claim.object, "spec", "volumeName") or "")
            required = dig(bound.object, "spec", "nodeAffinity", "required") if bound else None
            if required is not None and not fitting.matches_terms(required["nodeSelectorTerms"], node):
                return False
        return True

    def _repelled(self, pod: Obj, node: Obj) -> bool:
        """Whether a pod that stands where this one would doesn't go with it, on the node or in its zone."""
        # Pods that don't mind any neighbour, nearly all, need only be held against those that do.
        others = self._bound if fitting.minds(pod) else self._minding
        if not others:
            return False
        labels = node["metadata"].get("labels") or {}
        nodes = self._server.store.collection(kinds.NODE).objects
        for other in others.values():
            keys = [*fitting.repels(pod, other), *fitting.repels(other, pod)]
            name = other["spec"]["nodeName"]
            theirs = nodes[name].object["metadata"].get("labels") or {} if keys and name in nodes else {}
            if any(key in labels and labels[key] == theirs.get(key) for key in keys):
                return True
        return False

    async def _say_why(self, pod: Obj) -> None:
        count = len(self._server.store.collection(kinds.NODE).objects)
        message = f"0/{count} nodes are available." if count else "no nodes available to schedule pods"
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        for old in dig(pod, "status", "conditions") or ():
            if all(old.get(name) == value for name, value in condition.items()):
                return
        told = _with_condition(pod, condition | {"lastTransitionTime": stamp(self._clock.now())})
        patch: Obj = {"status": {"conditions": told["status"]["conditions"]}}
        meta = pod["metadata"]
        try:
            await self._door.patch(
                kinds.POD, meta["namespace"], meta["name"], encode(patch), kind=PatchKind.MERGE, subresource="status"
            )
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _occupies(pod: Obj) -> bool:
    """Whether the pod takes room of a node."""
    return bool(pod["spec"].get("nodeName")) and dig(pod, "status", "phase") not in ("Succeeded", "Failed")


def _node_matters(change: Change) -> bool:
    """Whether a node changed in a way that could let another pod in; heartbeats don't."""
    if change.before is None or change.type == "DELETED":
        return True
    old, new = change.before, change.object
    same = old.get("spec") == new.get("spec") and old["metadata"].get("labels") == new["metadata"].get("labels")
    return not (
        same
        and fitting.taints_of(old) == fitting.taints_of(new)
        and fitting.allocatable_of(old) == fitting.allocatable_of(new)
    )


def _with_condition(pod: Obj, condition: Obj) -> Obj:
    others = [one for one in dig(pod, "status", "conditions") or () if one["type"] != condition["type"]]
    return pod | {"status": pod["status"] | {"conditions": [*others, condition]}}
