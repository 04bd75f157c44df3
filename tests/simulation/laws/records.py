"""At rest each claim has its usage record, which says what the claim's status says, and no record is left over (F2)."""

from collections.abc import Iterator

from typing_extensions import override

from deploy.world.manifests import Obj, dig, key_of, meta
from schemas.kinds import GPU_CLAIM, WORKLOAD
from schemas.names import BUDGET_CLASS_PREFIX, CLAIM_RECORD_PREFIX, MONITOR_LABEL, RECORD_NODE_ANNOTATION
from tests.simulation.laws.law import Law


class Recorded(Law):
    """One record for each claim, owned by it, under no monitor: its units where it is Bound or Lost, else none."""

    @override
    def pending(self) -> Iterator[str]:
        """Name each claim whose record is missing or wrong, and each record without its claim."""
        claims = {key_of(claim): claim for claim in self.world.cluster.objects(GPU_CLAIM)}
        left = {key_of(record): record for record in self.world.cluster.objects(WORKLOAD)}
        for key, claim in sorted(claims.items()):
            namespace, name = key.split("/", 1)
            record = left.pop(f"{namespace}/{CLAIM_RECORD_PREFIX}{name}", None)
            if record is None:
                yield f"claim {key} has no record"
            else:
                yield from (f"the record of claim {key} {wrong}" for wrong in _wrong(claim, record))
        yield from (f"record {key} is of no claim" for key in sorted(left))


def _wrong(claim: Obj, record: Obj) -> Iterator[str]:
    status = claim.get("status") or {}
    # One that went Lost with others before it had any units was never counted by a resource.
    counts = status.get("phase") == "Bound" or (status.get("phase") == "Lost" and status.get("resourceName"))
    units = str(claim["spec"]["count"] if counts else 0)
    shown = {
        "is owned by": ([owner["uid"] for owner in meta(record)["ownerReferences"]], [meta(claim)["uid"]]),
        "is under monitor": (dig(record, "metadata", "labels", MONITOR_LABEL), None),
        "says units": (
            dig(record, "status", "resources"),
            {f"{BUDGET_CLASS_PREFIX}{claim['spec']['className']}": units},
        ),
        "says node": (dig(record, "metadata", "annotations", RECORD_NODE_ANNOTATION), status.get("nodeName", "")),
    }
    for what, (found, due) in shown.items():
        if found != due:
            yield f"{what} {found}, not {due}"
