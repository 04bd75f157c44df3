"""What a binder knows is what the log says, and at rest that is what the API server shows."""

from collections.abc import Iterator

from typing_extensions import override

from deploy.world.manifests import Obj, key_of, meta
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, GPU_CLASS, NODE, POD, VM, VM_POOL, VMI, VMI_REPLICA_SET
from schemas.names import REFERENCE_LABEL
from tests.simulation.laws.law import Law
from tests.simulation.laws.pins import is_launcher

KINDS = (NODE, POD, VMI, GPU_CLAIM, VM, VM_POOL, VMI_REPLICA_SET, GPU_BUDGET, GPU_CLASS)


class Seen(Law):
    """Observations are folded in the order and sessions they came in, none twice, none late, none lost (T11, T12)."""

    @override
    def step(self) -> Iterator[str]:
        for process in self.world.processes.values():
            follower = process.binder.follower if process.binder is not None else None
            if follower is None or follower.book.state.events_seq != self.picture.sequence:
                continue
            if follower.tip.generation != self.picture.generation:
                continue
            for kind in KINDS:
                known, said = follower.book.state.objects[kind.plural], self.picture.objects.get(kind.plural, {})
                if known != said:
                    keys = sorted(key for key in known | said if known.get(key) != said.get(key))
                    yield f"{process.name} knows {kind.plural} {', '.join(keys)} otherwise than the log says"

    @override
    def rest(self) -> Iterator[str]:
        for kind in KINDS:
            there = {key_of(obj): meta(obj)["uid"] for obj in self.world.cluster.objects(kind) if _matters(obj)}
            known = {key: view.uid for key, view in self.picture.objects.get(kind.plural, {}).items()}
            for key in sorted(there.keys() | known.keys()):
                if there.get(key) != known.get(key):
                    yield f"{kind.kind} {key} is {there.get(key, 'gone')}, the log knows {known.get(key, 'none')}"


def _matters(obj: Obj) -> bool:
    """Say whether an object is one that the binder is to hear of."""
    if obj["kind"] == POD.kind:
        return is_launcher(obj) or bool(obj["spec"].get("nodeName"))
    return obj["kind"] != VMI.kind or REFERENCE_LABEL in (meta(obj).get("labels") or {})
