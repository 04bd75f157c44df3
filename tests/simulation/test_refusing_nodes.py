"""Nodes that refuse launchers, in a whole world: model KubeVirt restarts the VM, and the laws hold (D7)."""

from typing_extensions import override

from deploy.world.history import Change
from deploy.world.kubelet import UNEXPECTED
from deploy.world.manifests import dig, meta
from deploy.world.store import Listener
from schemas.kinds import POD, VMI
from tests.simulation.acts.act import Step, vm_key
from tests.simulation.acts.machines import PluginBack, PluginLost, Refuses
from tests.simulation.acts.tenants import CreateVm
from tests.simulation.cluster import Setting, node_name
from tests.simulation.life import Life
from tests.simulation.world import World, worlds_own_chance


class Refused(Listener):
    """Counts the launchers that failed, each once, by node."""

    def __init__(self) -> None:
        self.uids: dict[str, str] = {}

    @override
    def changed(self, change: Change) -> None:
        pod = change.object
        if change.resource == POD and dig(pod, "status", "phase") == "Failed":
            self.uids[meta(pod)["uid"]] = pod["spec"]["nodeName"]

    @override
    def reset(self) -> None:
        """The API server does not go back in these worlds."""

    def on(self, node: int) -> int:
        """How many failed on a node."""
        return list(self.uids.values()).count(node_name(node))


def live(cards: tuple[int, ...], steps: list[Step]) -> tuple[World, Refused]:
    """Live a world of one VM to its rest; every law is held on the way."""
    life, refused = Life(1, Setting(cards, (0,) * len(cards), binders=1)), Refused()
    life.world.cluster.api.store.listen(refused)
    with worlds_own_chance(life.world):
        try:
            life.run(steps)
        finally:
            life.world.end()
    return life.world, refused


def runs_on(world: World) -> str:
    """Return the node of the running VMI, '' where it does not run."""
    vmi = world.cluster.find(VMI, vm_key(0))
    if vmi is None or dig(vmi, "status", "phase") != "Running":
        return ""
    return str(dig(vmi, "status", "nodeName"))


def test_the_next_vmi_goes_to_another_node() -> None:
    """D7, C14: the node refuses once, and KubeVirt's next VMI of the VM runs elsewhere."""
    world, refused = live((1, 1), [Step(Refuses(0, UNEXPECTED.reason)), Step(CreateVm(0), 60.0)])

    assert runs_on(world) == node_name(1)
    assert len(refused.uids) == refused.on(0) == 1


def test_a_node_that_stands_alone_is_tried_once_in_ten_minutes() -> None:
    """C14: without another node and without a change there is one new try after ten minutes, refused as well."""
    steps = [Step(Refuses(0, "OutOfcpu")), Step(CreateVm(0), 590.0), Step(Refuses(0, "OutOfcpu"), 60.0)]
    world, refused = live((1,), [*steps, Step(Refuses(0))])

    assert refused.on(0) == 2
    assert runs_on(world) == node_name(0)


def test_a_flapping_plugin_burns_few_vmis() -> None:
    """C41: allocatable goes and comes every five seconds for ten minutes, and at most six launchers are refused."""
    flaps = [Step(act(0), 2.5) for _ in range(120) for act in (PluginLost, PluginBack)]
    world, refused = live((1,), [Step(Refuses(0, UNEXPECTED.reason)), Step(CreateVm(0)), *flaps, Step(Refuses(0))])

    assert 3 <= refused.on(0) <= 6
    assert runs_on(world) == node_name(0)
