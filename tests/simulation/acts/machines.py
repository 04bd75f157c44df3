"""Nodes: they fail, reboot, lose their device plugins, are tainted, cordoned, relabelled, removed and added again."""

from typing_extensions import override

from deploy.world.manifests import Obj, key_of, meta
from schemas.kinds import NODE, POD
from tests.simulation.acts.act import Act, create, delete, hands
from tests.simulation.cluster import allocatable, node, node_name
from tests.simulation.labels import CARD, SLICE, TAINT_KEY, ZONE, ZONES
from tests.simulation.world import World


def _is_ready(obj: Obj, word: str) -> Obj:
    obj["status"]["conditions"] = [{"type": "Ready", "status": word}]
    return obj


class NodeDown(Act, frozen=True):
    """A node is not ready; what runs there may still run."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Say so."""
        world.cluster.alter(NODE, node_name(self.node), lambda obj: _is_ready(obj, "Unknown"))


class NodeUp(Act, frozen=True):
    """A node is ready again."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Say so."""
        world.cluster.alter(NODE, node_name(self.node), lambda obj: _is_ready(obj, "True"))


class Reboot(Act, frozen=True):
    """A node reboots: its pods fail, and it is back a little later."""

    node: int
    away_s: float = 8.0

    @override
    def begin(self, world: World) -> None:
        """Fail its pods, and let it come back."""
        NodeDown(self.node).begin(world)
        for pod in world.cluster.objects(POD):
            if pod["spec"].get("nodeName") == node_name(self.node) and pod["status"].get("phase") == "Running":
                hands(world, world.cluster.kubevirt.kubelet.end(meta(pod)["namespace"], meta(pod)["name"]))
        world.lane.call_later(self.away_s, NodeUp(self.node).begin, world)


class PluginLost(Act, frozen=True):
    """A node's device plugin restarts: it offers no device for a while."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Offer nothing."""

        def none(obj: Obj) -> Obj:
            obj["status"]["allocatable"] |= {CARD: "0", SLICE: "0"}
            return obj

        world.cluster.alter(NODE, node_name(self.node), none)


class PluginBack(Act, frozen=True):
    """A node's device plugin is back."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Offer what the node has."""
        cards, slices = world.setting.cards[self.node], world.setting.slices[self.node]

        def all_of_it(obj: Obj) -> Obj:
            obj["status"]["allocatable"] = dict(allocatable(cards, slices))
            return obj

        world.cluster.alter(NODE, node_name(self.node), all_of_it)


class Taint(Act, frozen=True):
    """A node is tainted: with the taint that our classes tolerate, or with one that they don't."""

    node: int
    tolerated: bool = False

    @override
    def begin(self, world: World) -> None:
        """Taint it."""
        key = TAINT_KEY if self.tolerated else "example.org/broken"

        def tainted(obj: Obj) -> Obj:
            obj.setdefault("spec", {})["taints"] = [{"key": key, "effect": "NoSchedule"}]
            return obj

        world.cluster.alter(NODE, node_name(self.node), tainted)


class Untaint(Act, frozen=True):
    """A node's taints and its cordon are taken off."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Take them off."""

        def bare(obj: Obj) -> Obj:
            return obj | {"spec": {}}

        world.cluster.alter(NODE, node_name(self.node), bare)


class Cordon(Act, frozen=True):
    """A node is cordoned."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Cordon it."""

        def cordoned(obj: Obj) -> Obj:
            return obj | {"spec": (obj.get("spec") or {}) | {"unschedulable": True}}

        world.cluster.alter(NODE, node_name(self.node), cordoned)


class Relabel(Act, frozen=True):
    """A node moves to a zone."""

    node: int
    zone: int = 1

    @override
    def begin(self, world: World) -> None:
        """Label it."""

        def moved(obj: Obj) -> Obj:
            meta(obj)["labels"][ZONE] = ZONES[self.zone - 1]
            return obj

        world.cluster.alter(NODE, node_name(self.node), moved)


class RemoveNode(Act, frozen=True):
    """A node is removed, and its pods with it."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Delete the node and what stands on it."""
        delete(world, NODE, node_name(self.node))
        for pod in world.cluster.objects(POD):
            if pod["spec"].get("nodeName") == node_name(self.node):
                delete(world, POD, key_of(pod), grace_seconds=0)


class AddNode(Act, frozen=True):
    """A node is there again under its old name, as it was at first."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Register it."""
        create(world, NODE, "", node(self.node, world.setting.cards[self.node], world.setting.slices[self.node]))
