"""A witness of every pod's whole history: no node is ever given more than it offers, no pod ungated without its pin.

Laws hold over the watch history, not over the end: whoever looks only at the end misses a moment of
two VMs on one GPU.
"""

import asyncio
from collections.abc import Mapping

from schemas.names import GATE
from tests.cluster.api import Api, Object, Refused

_FINAL = ("Succeeded", "Failed")


class Witness:
    """Follows the pods of one namespace; `broken` names every law that was ever broken."""

    def __init__(self, api: Api, namespace: str, offers: Mapping[str, Mapping[str, int]]) -> None:
        """`offers`: what each node offers of each resource that is counted; the test keeps it true."""
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._offers = offers
        self._pods: dict[str, Object] = {}
        self.broken: list[str] = []
        self.ungated: dict[str, str] = {}

    async def run(self) -> None:
        """Watch for ever; begin again from a list where the server forgot or restarted."""
        while True:
            try:
                listed = await self._api.get(self._path)
                self._pods = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
                self._judge()
                async for event in self._api.watch(self._path, listed["metadata"]["resourceVersion"], seconds=300):
                    self._see(event)
            except (Refused, OSError):
                await asyncio.sleep(0.1)

    def _see(self, event: Object) -> None:
        pod = event["object"]
        uid = pod["metadata"]["uid"]
        if event["type"] == "DELETED":
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod
            if GATE not in gates(pod) and GPU_MARK in str(pod["spec"]) and uid not in self.ungated:
                self.ungated[uid] = pinned_node(pod)
                if not pinned_node(pod):
                    self.broken.append(f"{pod['metadata']['name']} is ungated and not pinned")
        self._judge()

    def _judge(self) -> None:
        """Add up what living, ungated pods request of each node they are bound or pinned to."""
        used: dict[tuple[str, str], int] = {}
        for pod in self._pods.values():
            node = pod["spec"].get("nodeName") or pinned_node(pod)
            if GATE in gates(pod) or not node or pod.get("status", {}).get("phase") in _FINAL:
                continue
            for container in pod["spec"]["containers"]:
                for resource, amount in (container.get("resources", {}).get("requests") or {}).items():
                    if resource.startswith("nvidia.com/"):
                        used[node, resource] = used.get((node, resource), 0) + int(amount)
        for (node, resource), amount in used.items():
            if amount > self._offers.get(node, {}).get(resource, 0):
                law = f"{node} gives {amount} {resource}, it offers {self._offers.get(node, {}).get(resource, 0)}"
                if law not in self.broken:
                    self.broken.append(law)


GPU_MARK = "nvidia.com/"


def gates(pod: Object) -> list[str]:
    """Return the pod's scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def pinned_node(pod: Object) -> str:
    """Return the one node that every required term names by metadata.name, '' where it is not so."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms") or ()
    named = [
        field["values"][0]
        for term in terms
        for field in term.get("matchFields") or ()
        if field["key"] == "metadata.name" and field["operator"] == "In"
    ]
    return named[0] if named and len(named) == len(terms) and len(set(named)) == 1 else ""
