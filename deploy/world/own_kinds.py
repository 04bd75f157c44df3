"""Our own kinds in the model world: what their CRDs fill in and refuse on a real server.

The types that the CRDs are drawn from check the shape; rules about change are said again here, and the
tests of both say the same things of both servers.
"""

import re
from collections.abc import Iterator

import msgspec

from binder.kube import Cause
from deploy.world.apiserver import ApiServer
from deploy.world.manifests import Obj, dig
from deploy.world.refusals import INVALID
from deploy.world.validation import Rule
from schemas.budgets import GpuBudget
from schemas.claims import Claim
from schemas.classes import GpuClass
from schemas.conditions import ShownStamp
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, GPU_CLASS, WORKLOAD, WORKLOAD_MONITOR
from schemas.structural import Shape
from schemas.workloads import Workload, WorkloadMonitor

_FIXED = ("className", "count")
_PLACE = re.compile(r"`\$\.?([^`]*)`")


def install(server: ApiServer) -> None:
    """Let the server treat our kinds as their CRDs would have it."""
    server.default(GPU_CLAIM, _one_unit)
    for resource, shape in ((GPU_CLAIM, Claim), (GPU_CLASS, GpuClass), (GPU_BUDGET, GpuBudget)):
        server.rule(resource, _of_shape(shape))
        server.rule(resource, _stamp_stays)
    server.rule(GPU_CLAIM, _spec_stays)
    server.rule(WORKLOAD, _of_shape(Workload))
    server.rule(WORKLOAD_MONITOR, _of_shape(WorkloadMonitor))


def _one_unit(claim: Obj) -> Obj:
    spec = claim.get("spec")
    return claim | {"spec": {"count": 1} | spec} if isinstance(spec, dict) else claim


def _of_shape(shape: type[Shape]) -> Rule:
    def wrong(_: Obj | None, new: Obj) -> Iterator[Cause]:
        try:
            msgspec.convert(new, shape)
        except msgspec.ValidationError as error:
            place = _PLACE.search(str(error))
            yield Cause(place[1] if place else "", INVALID)

    return wrong


def _spec_stays(old: Obj | None, new: Obj) -> Iterator[Cause]:
    for field in _FIXED:
        if old is not None and dig(old, "spec", field) != dig(new, "spec", field):
            yield Cause(f"spec.{field}", INVALID)


def _stamp_stays(old: Obj | None, new: Obj) -> Iterator[Cause]:
    """T22: once there, the stamp must be there and must not go back."""
    before, after = (_stamp(obj) if obj is not None else None for obj in (old, new))
    if before is not None and (after is None or after < before):
        yield Cause("status", INVALID)


def _stamp(obj: Obj) -> tuple[int, int, int] | None:
    found = dig(obj, "status", "stamp")
    if found is None:
        return None
    stamp = msgspec.convert(found, ShownStamp)
    return stamp.generation, stamp.sequence, stamp.entry
