"""Usage records at work on a scene: claims of sets and of tenants, what was decided of them, what their records say."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from binder.book import Book
from binder.kube import Kube
from binder.state import GpuSet, Holding
from deploy.world.apiserver import ApiServer
from deploy.world.collector import Collector
from projector.records import record_name
from projector.usage_records import UsageRecords
from schemas.decisions import HeldClaim, HeldPlaced
from schemas.kinds import GPU_CLAIM, VMI, WORKLOAD
from schemas.names import CLAIM_RECORD_PREFIX, STAMP_ANNOTATION, TEMPLATE_LABEL
from schemas.reasons import Placing
from tests.projector.scene import RESOURCE, SECONDS, Obj, Scene

UNITS = "gpus.cozystack.io/l40s"


class Recording:
    """`records` at work beside a scene's state."""

    def __init__(self, scene: Scene, records: UsageRecords) -> None:
        self.scene = scene
        self.records = records

    def decide(self, *sets: GpuSet) -> None:
        """Let these be the newest decisions of their sets."""
        for one in sets:
            self.scene.state.sets[one.vmi.uid] = one
            self.scene.state.events_seq = max(self.scene.state.events_seq, one.stamp.sequence)
        self.records.take(self.scene.state, [one.vmi.uid for one in sets], [])

    def hold(self, holding: Holding) -> None:
        """Let this be the newest decision of an ordered claim."""
        state, claim = self.scene.state, holding.claim
        state.holdings[f"{holding.namespace}/{claim.name}"] = holding
        state.events_seq = max(state.events_seq, holding.stamp.sequence)
        said = HeldPlaced(holding.namespace, (claim,), holding.node, Placing.ORDERED)
        self.records.take(state, [], [(holding.stamp, said)])


@asynccontextmanager
async def recording(scene: Scene, kube: Kube | None = None) -> AsyncIterator[Recording]:
    """Keep the records of the scene's state; on the model the collector works beside."""
    scene.state.generation = 1
    records = UsageRecords(kube or scene.kube)
    parts = [records.run(Book(scene.state))]
    if isinstance(scene.kube, ApiServer):
        parts.append(Collector(scene.kube).run())
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        yield Recording(scene, records)
        for task in tasks:
            assert not task.done(), task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def claims_of(scene: Scene, gpu_set: GpuSet) -> list[Obj]:
    """Create the template claims of a set, as the projector does."""
    vmi = gpu_set.vmi
    owner = {"apiVersion": VMI.api_version, "kind": VMI.kind, "name": vmi.name, "uid": vmi.uid}
    return [
        await scene.create(
            GPU_CLAIM,
            {
                "metadata": {"name": one.name, "labels": {TEMPLATE_LABEL: "true"}, "ownerReferences": [owner]},
                "spec": {"className": one.class_name, "count": one.count},
            },
        )
        for one in gpu_set.claims
    ]


async def order(scene: Scene, name: str = "mine", count: int = 3) -> Holding:
    """Create a claim as a tenant orders it; return what the books know of it."""
    made = await scene.create(GPU_CLAIM, {"metadata": {"name": name}, "spec": {"className": "l40s", "count": count}})
    return Holding(scene.namespace, HeldClaim(name, made["metadata"]["uid"], "l40s", count, RESOURCE))


async def record(scene: Scene, claim: str, so: Callable[[Obj], bool] = lambda _: True) -> Obj:
    """Wait until the claim's record is so; return it."""
    name = record_name(CLAIM_RECORD_PREFIX, claim)
    deadline = asyncio.get_running_loop().time() + SECONDS
    while True:
        found = await scene.find(WORKLOAD, name)
        if found is not None and so(found):
            return found
        assert asyncio.get_running_loop().time() < deadline, f"{name}: {found}"
        await asyncio.sleep(0.02)


async def gone(scene: Scene, claim: str) -> None:
    """Wait until the claim's record is gone."""
    name = record_name(CLAIM_RECORD_PREFIX, claim)
    deadline = asyncio.get_running_loop().time() + SECONDS
    while await scene.find(WORKLOAD, name) is not None:
        assert asyncio.get_running_loop().time() < deadline, f"{name} is still there"
        await asyncio.sleep(0.02)


def units(shown: Obj) -> str:
    """Return how many units a record says."""
    found: str = shown["status"]["resources"][UNITS]
    return found


def stamped(at: int) -> Callable[[Obj], bool]:
    """Whether a record shows the decision on that input."""
    return lambda shown: shown["metadata"]["annotations"].get(STAMP_ANNOTATION) == f"1.{at}.0"


def saying(amount: int) -> Callable[[Obj], bool]:
    """Whether a record says that many units."""
    return lambda shown: units(shown) == str(amount)
