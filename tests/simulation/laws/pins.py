"""What the API server shows of launchers: none is let go without its pin, and the pins never add up to too much."""

from typing import Any

from typing_extensions import override

from binder.memory_journal import MemoryJournal
from deploy.world.fitting import allocatable_of, pinned_to, requests_of
from deploy.world.history import Change
from deploy.world.manifests import Obj, controller_of, dig, key_of, meta, pod_ended
from deploy.world.store import Listener
from schemas.kinds import NODE, POD
from schemas.names import GATE, KUBEVIRT_LABEL, LAUNCHER_VALUE, MIGRATION_LABEL, REFERENCE_LABEL
from tests.simulation.labels import CLASSES
from tests.simulation.laws.law import Law
from tests.simulation.picture import Picture
from tests.simulation.world import World


class Pins(Law, Listener):
    """A launcher loses our gate in the same write that pins it, to the node that a durable decision names (D3, T21)."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._journal: MemoryJournal = world.journal
        self._most: dict[str, dict[str, int]] = {}
        self._let: dict[str, str] = {}
        for obj in world.cluster.objects(NODE):
            self._note_node(obj)
        world.cluster.api.store.listen(self)

    @override
    def changed(self, change: Change) -> None:
        if change.resource == NODE and change.type != "DELETED":
            self._note_node(change.object)
        if change.resource == POD and change.type != "DELETED":
            before, after = change.before, change.object
            if not is_launcher(after):
                return
            if before is None and not is_gated(after) and MIGRATION_LABEL not in meta(after)["labels"]:
                self._created(after)
            if before is not None and is_gated(before) and not is_gated(after):
                self._let_go(after)

    @override
    def reset(self) -> None:
        """Forget who was let go before the API server went back in time: who stands there again is not our doing."""
        self._let.clear()

    def _note_node(self, obj: Obj) -> None:
        most = self._most.setdefault(meta(obj)["name"], {})
        for resource, amount in allocatable_of(obj).items():
            most[resource] = max(most.get(resource, 0), amount)

    def _created(self, pod: Obj) -> None:
        """Without our gate a launcher is made for the node that its VMI's set was booked on at admission (P1)."""
        self.picture.catch_up()
        nodes, owner = pinned_to(pod), controller_of(pod) or {}
        if nodes is None or len(nodes) != 1 or nodes[0] not in self.picture.booked.get(owner.get("uid", ""), []):
            self.found.append(f"launcher {key_of(pod)} was created without our gate, pinned to {nodes}")
            return
        self._let[meta(pod)["uid"]] = nodes[0]
        self._add_up(nodes[0])

    def _let_go(self, pod: Obj) -> None:
        self.picture.catch_up()
        nodes = pinned_to(pod)
        placed = self.picture.placed.get(meta(pod)["uid"], [])
        if nodes is None or len(nodes) != 1:
            self.found.append(f"launcher {key_of(pod)} was let go without a pin")
        elif nodes[0] not in placed:
            self.found.append(f"launcher {key_of(pod)} was let go onto {nodes[0]}, the log says {placed or 'nothing'}")
        else:
            self._let[meta(pod)["uid"]] = nodes[0]
            self._add_up(nodes[0])

    def _add_up(self, node: str) -> None:
        """Count what all living launchers that were let go onto the node take of what it ever offered."""
        pods = self.world.cluster.objects(POD)
        living = [pod for pod in pods if is_let_go(pod) and self._let.get(meta(pod)["uid"]) == node]
        for resource in CLASSES.values():
            total = sum(requests_of(pod).get(resource, 0) for pod in living)
            most = self._most.get(node, {}).get(resource, 0)
            if total > most:
                names = ", ".join(key_of(pod) for pod in living)
                self.found.append(
                    f"{total // 1000} of {resource} are let go onto {node}, which has {most // 1000}: {names}"
                )


class OneStart(Law):
    """A VM never has two launchers that may run, and no two VMIs one pod."""

    @override
    def step(self) -> Any:
        running: dict[str, set[str]] = {}
        for pod in self.world.cluster.objects(POD):
            owner = controller_of(pod)
            if is_let_go(pod) and owner is not None and MIGRATION_LABEL not in meta(pod)["labels"]:
                running.setdefault(f"{meta(pod)['namespace']}/{owner['name']}", set()).add(key_of(pod))
        for vm, pods in sorted(running.items()):
            if len(pods) > 1:
                yield f"VM {vm} has {len(pods)} launchers that may run: {', '.join(sorted(pods))}"


def is_launcher(pod: Obj) -> bool:
    """Say whether a pod is a launcher of a VMI that refers to GPUs."""
    labels = meta(pod).get("labels") or {}
    return labels.get(KUBEVIRT_LABEL) == LAUNCHER_VALUE and REFERENCE_LABEL in labels


def is_gated(pod: Obj) -> bool:
    """Say whether our gate holds a pod."""
    return any(gate["name"] == GATE for gate in dig(pod, "spec", "schedulingGates") or ())


def is_let_go(pod: Obj) -> bool:
    """Say whether a launcher lives and is not held by our gate."""
    return is_launcher(pod) and not is_gated(pod) and not pod_ended(pod)
