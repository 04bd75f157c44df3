"""What each node really has: its kubelet allocates from here at once, its node's status follows when it is reported."""

from collections.abc import Mapping

from deploy.world.kubelet import UNEXPECTED, Kubelet, Refusal, effective_requests
from deploy.world.manifests import Obj, deleting, has_condition
from schemas.kinds import NODE
from tests.simulation.cluster import Cluster, Setting, allocatable, node_name
from tests.simulation.labels import CARD, SLICE

Devices = Mapping[str, int]
"""Units by resource name; a resource without a plugin has no key."""


class Hardware:
    """The devices of all nodes, which plugins may lose between two reports (C13, C41)."""

    def __init__(self, cluster: Cluster, setting: Setting) -> None:
        self._cluster = cluster
        self._whole = [
            {CARD: cards, SLICE: slices} for cards, slices in zip(setting.cards, setting.slices, strict=True)
        ]
        self._devices = {node_name(number): dict(whole) for number, whole in enumerate(self._whole)}
        self._refusing: dict[str, Refusal] = {}
        cluster.kubevirt.kubelet.plugin = self._refusal

    @property
    def _kubelet(self) -> Kubelet:
        return self._cluster.kubevirt.kubelet

    def whole(self, number: int) -> Devices:
        """Return what a node has when nothing is wrong with it."""
        return self._whole[number]

    def change(self, number: int, devices: Devices) -> None:
        """Let a node have other devices from now on; who holds one keeps it."""
        self._devices[node_name(number)] = dict(devices)

    def refuse(self, number: int, reason: str) -> None:
        """Let a node's kubelet refuse every pod with devices for that reason; none: it takes them again."""
        self._refusing.pop(node_name(number), None)
        if reason:
            self._refusing[node_name(number)] = Refusal(reason, "on purpose")

    def report(self, number: int) -> None:
        """Write what the node has into its status, unless its kubelet is silent: then it does once it is back."""

        def reported(obj: Obj) -> Obj:
            obj["status"]["allocatable"] = dict(allocatable(self._devices[node_name(number)]))
            return obj

        node = self._cluster.find(NODE, node_name(number))
        if node is not None and not deleting(node) and not has_condition(node, "Ready", "Unknown"):
            self._cluster.alter(NODE, node_name(number), reported)

    def _refusal(self, pod: Obj) -> Refusal | None:
        node = pod["spec"]["nodeName"]
        devices = self._devices.get(node, {})
        wanted = effective_requests(pod)
        for resource in (CARD, SLICE):
            asked, taken = wanted.get(resource, 0), self._kubelet.taken(node, resource)
            if asked and node in self._refusing:
                return self._refusing[node]
            if asked and asked + taken > 1000 * devices.get(resource, 0):
                return UNEXPECTED
        return None


def is_silent(cluster: Cluster, node: str) -> bool:
    """Say whether nobody can tell what runs on a node: it is there, and its kubelet says nothing."""
    found = cluster.find(NODE, node)
    return found is not None and has_condition(found, "Ready", "Unknown")
