"""Nodes: they fail, reboot, lose their device plugins, are tainted, cordoned, relabelled, removed and added again."""

from collections.abc import Mapping

from typing_extensions import override

from deploy.world.manifests import Obj, key_of, meta
from schemas.kinds import NODE, POD
from tests.simulation.acts.act import Act, create, delete, hands
from tests.simulation.cluster import node, node_name
from tests.simulation.labels import CARD, OTHER_NAME, SLICE, TAINT_KEY, ZONE, ZONES
from tests.simulation.world import World


def _is_ready(obj: Obj, word: str) -> Obj:
    obj["status"]["conditions"] = [{"type": "Ready", "status": word}]
    return obj


def _pods_on(world: World, number: int) -> list[Obj]:
    return [pod for pod in world.cluster.objects(POD) if pod["spec"].get("nodeName") == node_name(number)]


class NodeDown(Act, frozen=True):
    """A node is not ready. Its kubelet is silent, and what runs there may still run; or it says so itself."""

    node: int
    silent: bool = True

    @override
    def begin(self, world: World) -> None:
        """Say so."""
        word = "Unknown" if self.silent else "False"
        world.cluster.alter(NODE, node_name(self.node), lambda obj: _is_ready(obj, word))


class NodeUp(Act, frozen=True):
    """A node is ready again."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Say so, and what it has."""
        world.cluster.alter(NODE, node_name(self.node), lambda obj: _is_ready(obj, "True"))
        world.hardware.report(self.node)


class Evict(Act, frozen=True):
    """The taint manager deletes the pods of a node; where its kubelet is silent, they stay and are terminating."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Delete them, as it does after five minutes."""
        for pod in _pods_on(world, self.node):
            delete(world, POD, key_of(pod))


class Reboot(Act, frozen=True):
    """A node reboots: its pods fail, it is back a little later, and its device plugin `plugin_s` after that (C13)."""

    node: int
    away_s: float = 8.0
    plugin_s: float = 0.0

    @override
    def begin(self, world: World) -> None:
        """Fail its pods, and let it come back."""
        NodeDown(self.node).begin(world)
        for pod in _pods_on(world, self.node):
            if pod["status"].get("phase") == "Running":
                hands(world, world.cluster.kubevirt.kubelet.end(meta(pod)["namespace"], meta(pod)["name"]))
        if self.plugin_s:
            PluginLost(self.node).begin(world)
            world.lane.call_later(self.away_s + self.plugin_s, PluginBack(self.node).begin, world)
        world.lane.call_later(self.away_s, NodeUp(self.node).begin, world)


class PluginLost(Act, frozen=True):
    """A node's device plugin restarts: no device can be had; the node's status says so `late_s` later (C16)."""

    node: int
    late_s: float = 0.0

    @override
    def begin(self, world: World) -> None:
        """Offer nothing."""
        _change(world, self.node, dict.fromkeys(world.hardware.whole(self.node), 0), self.late_s)


class PluginBack(Act, frozen=True):
    """A node's device plugin is back, with all that the node has."""

    node: int
    late_s: float = 0.0

    @override
    def begin(self, world: World) -> None:
        """Offer what the node has."""
        _change(world, self.node, world.hardware.whole(self.node), self.late_s)


class PluginFlaps(Act, frozen=True):
    """A node's device plugin is lost and back some times; the status shows each of it late (C41)."""

    node: int
    times: int = 3
    every_s: float = 4.0
    late_s: float = 1.0

    @override
    def begin(self, world: World) -> None:
        """Flap."""
        for time in range(self.times):
            world.lane.call_later(2 * time * self.every_s, PluginLost(self.node, self.late_s).begin, world)
            world.lane.call_later((2 * time + 1) * self.every_s, PluginBack(self.node, self.late_s).begin, world)


class Refuses(Act, frozen=True):
    """From now on a node's kubelet refuses every launcher for that reason; none: it takes them again (C14)."""

    node: int
    reason: str = ""

    @override
    def begin(self, world: World) -> None:
        """Tell the kubelet."""
        world.hardware.refuse(self.node, self.reason)


class UnitsLost(Act, frozen=True):
    """Cards of a node break: so many are left of those that it offers (C40)."""

    node: int
    left: int = 1
    late_s: float = 0.0

    @override
    def begin(self, world: World) -> None:
        """Offer fewer."""
        whole = world.hardware.whole(self.node)
        _change(world, self.node, dict(whole) | {CARD: min(self.left, whole[CARD])}, self.late_s)


class Renamed(Act, frozen=True):
    """A node offers its cards under another name: the old key is gone from its status (C45)."""

    node: int

    @override
    def begin(self, world: World) -> None:
        """Offer the other resource."""
        whole = world.hardware.whole(self.node)
        _change(world, self.node, {SLICE: whole[SLICE], OTHER_NAME: whole[CARD]}, 0.0)


def _change(world: World, number: int, devices: Mapping[str, int], late_s: float) -> None:
    world.hardware.change(number, devices)
    if late_s:
        world.lane.call_later(late_s, world.hardware.report, number)
    else:
        world.hardware.report(number)


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
    """A node is removed; the pod collector takes its pods away `late_s` later, unless it is there again."""

    node: int
    late_s: float = 0.0

    @override
    def begin(self, world: World) -> None:
        """Delete the node, and what stands on it."""
        delete(world, NODE, node_name(self.node))
        if self.late_s:
            world.lane.call_later(self.late_s, self._collect, world)
        else:
            self._end_pods(world)

    def _collect(self, world: World) -> None:
        if world.cluster.find(NODE, node_name(self.node)) is None:
            self._end_pods(world)

    def _end_pods(self, world: World) -> None:
        for pod in _pods_on(world, self.node):
            delete(world, POD, key_of(pod), grace_seconds=0)


class AddNode(Act, frozen=True):
    """A node is there under its old name, as it was at first; `fresh`: another machine, where no pod runs (C44)."""

    node: int
    fresh: bool = True

    @override
    def begin(self, world: World) -> None:
        """Register it, where none is registered."""
        if world.cluster.find(NODE, node_name(self.node)) is not None:
            return
        if self.fresh:
            for pod in _pods_on(world, self.node):
                delete(world, POD, key_of(pod), grace_seconds=0)
        world.hardware.change(self.node, world.hardware.whole(self.node))
        create(world, NODE, "", node(self.node, world.setting.cards[self.node], world.setting.slices[self.node]))
