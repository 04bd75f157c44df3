"""A witness of whole histories: no node is ever given more than it offers, no pod ungated without its pin.

Laws hold over the watch history, not over the end: whoever looks only at the end misses a moment of
two VMs on one GPU. What a test wants to know of the way there (which VMIs, which bookings) is kept too.
"""

import asyncio
import json
from collections.abc import Callable, Mapping

import aiohttp

from schemas.kinds import GPU_CLAIM, POD, VMI, Resource
from schemas.names import GATE, MIGRATION_LABEL, POLICY_ANNOTATION, POLICY_SCHEDULE, REFERENCE_LABEL
from tests.cluster.api import Api, Object, Refused

GPU_MARK = "nvidia.com/"
_FINAL = ("Succeeded", "Failed")
_AGAIN_SECONDS = 0.1


class Witness:
    """Follows one namespace; `broken` names every law that was ever broken.

    `vmis`: uids that each VM had, oldest first; `launchers`: pods that each VMI uid had; `bookings`: nodes
    that each claim uid was Bound to.
    """

    def __init__(self, api: Api, namespace: str, offers: Mapping[str, Mapping[str, int]]) -> None:
        """`offers`: what each node offers of each resource that is counted; the test keeps it true."""
        self._api = api
        self._namespace = namespace
        self._offers = offers
        self._pods: dict[str, Object] = {}
        self.broken: list[str] = []
        self.ungated: dict[str, str] = {}
        self.vmis: dict[str, list[str]] = {}
        self.launchers: dict[str, list[str]] = {}
        self.bookings: dict[str, list[str]] = {}

    async def run(self) -> None:
        """Watch for ever."""
        kinds = ((POD, self._see_pod), (VMI, self._see_vmi), (GPU_CLAIM, self._see_claim))
        async with asyncio.TaskGroup() as group:
            for resource, see in kinds:
                group.create_task(self._follow(resource, see))

    async def _follow(self, resource: Resource, see: Callable[[str, Object], None]) -> None:
        """Begin again from a list where the server forgot or restarted."""
        path = resource.path(self._namespace)
        while True:
            try:
                listed = await self._api.get(path)
                if resource is POD:
                    self._pods = {}
                for item in listed["items"]:
                    see("ADDED", item)
                async for event in self._api.watch(path, listed["metadata"]["resourceVersion"], seconds=300):
                    see(event["type"], event["object"])
            except (Refused, aiohttp.ClientError, json.JSONDecodeError):
                await asyncio.sleep(_AGAIN_SECONDS)

    def _see_pod(self, event: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if event == "DELETED":
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod
            for owner in pod["metadata"].get("ownerReferences") or ():
                _note(self.launchers, owner["uid"], uid)
            if GATE not in gates(pod) and _is_ours(pod):
                self._see_ungated(uid, pod)
        self._judge()

    def _see_ungated(self, uid: str, pod: Object) -> None:
        node, name = pinned_node(pod), pod["metadata"]["name"]
        if not node:
            self._break(f"{name} is ungated and not pinned")
        if self.ungated.setdefault(uid, node) != node:
            self._break(f"{name} was pinned to {self.ungated[uid]}, then to {node}")

    def _see_vmi(self, _event: str, vmi: Object) -> None:
        _note(self.vmis, vmi["metadata"]["name"], vmi["metadata"]["uid"])

    def _see_claim(self, event: str, claim: Object) -> None:
        status = claim.get("status") or {}
        if event != "DELETED" and status.get("phase") == "Bound":
            _note(self.bookings, claim["metadata"]["uid"], status["nodeName"])

    def _judge(self) -> None:
        """Add up what living, ungated pods request of each node: those that are bound, and those that we placed.

        Under Schedule kube-scheduler places: it may bind to units while we pin to them, and one of the two waits.
        """
        bound: dict[tuple[str, str], int] = {}
        placed: dict[tuple[str, str], int] = {}
        for pod in self._pods.values():
            if GATE in gates(pod) or pod.get("status", {}).get("phase") in _FINAL:
                continue
            node = pod["spec"].get("nodeName") or ""
            _add(bound, node, pod)
            if (pod["metadata"].get("annotations") or {}).get(POLICY_ANNOTATION) != POLICY_SCHEDULE:
                _add(placed, node or pinned_node(pod), pod)
        for (node, resource), amount in (*bound.items(), *placed.items()):
            offered = self._offers.get(node, {}).get(resource, 0)
            if amount > offered:
                self._break(f"{node} gives {amount} {resource}, it offers {offered}")

    def _break(self, law: str) -> None:
        if law not in self.broken:
            self.broken.append(law)


def _is_ours(pod: Object) -> bool:
    """Say whether the pod is one that we place: under Schedule kube-scheduler does, and so it does with migrations."""
    metadata = pod["metadata"]
    labels, policy = metadata.get("labels") or {}, (metadata.get("annotations") or {}).get(POLICY_ANNOTATION)
    return REFERENCE_LABEL in labels and MIGRATION_LABEL not in labels and policy != POLICY_SCHEDULE


def _note(table: dict[str, list[str]], key: str, value: str) -> None:
    """Append a value to a key's history unless it is there."""
    history = table.setdefault(key, [])
    if value not in history:
        history.append(value)


def gates(pod: Object) -> list[str]:
    """Return the pod's scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def pinned_node(pod: Object) -> str:
    """Return the one node that every required term names by metadata.name, '' where it is not so."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms") or ()
    named = [
        field["values"][0]
        for term in terms
        for field in term.get("matchFields") or ()
        if field["key"] == "metadata.name" and field["operator"] == "In"
    ]
    return named[0] if named and len(named) == len(terms) and len(set(named)) == 1 else ""


def _add(used: dict[tuple[str, str], int], node: str, pod: Object) -> None:
    for container in pod["spec"]["containers"] if node else ():
        for resource, amount in (container.get("resources", {}).get("requests") or {}).items():
            if resource.startswith(GPU_MARK):
                used[node, resource] = used.get((node, resource), 0) + int(amount)
