"""What the usage record of a GPU claim must hold: the units decided, by class, and where they are (F2, N3)."""

import msgspec

from binder.charging import counts
from binder.state import State
from projector.mirror import Head, Mirrored
from projector.records import Record, SeenRecord, read_record, record_name
from schemas import names
from schemas.claims import ClaimSpec
from schemas.kinds import GPU_CLAIM
from schemas.labels import label_value
from schemas.objects import Stamp
from schemas.stamping import read_stamp, stamp_text
from schemas.workloads import WorkloadStatus
from schemas.writes import BlockingOwner


class MirroredClaim(Mirrored, frozen=True, kw_only=True):
    """Of a claim, what its record needs. `vmi_uid`: the VMI that owns a template claim."""

    class_name: str
    count: int
    template: bool
    vmi_uid: str

    @property
    def key(self) -> str:
        """Return the claim's key."""
        return f"{self.namespace}/{self.name}"

    @property
    def record(self) -> str:
        """Return the name of its record."""
        return record_name(names.CLAIM_RECORD_PREFIX, self.name)


class _Owner(msgspec.Struct, frozen=True):
    kind: str
    uid: str


class _Metadata(Head, frozen=True, rename="camel"):
    owner_references: tuple[_Owner, ...] | None = None
    deletion_timestamp: str | None = None


class _Claim(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: ClaimSpec


_claim = msgspec.json.Decoder(_Claim)


def read_claim(raw: msgspec.Raw | bytes) -> MirroredClaim:
    """Read a GPUClaim."""
    found = _claim.decode(raw)
    metadata = found.metadata
    return MirroredClaim(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        rv=metadata.resource_version,
        deleting=metadata.deletion_timestamp is not None,
        class_name=found.spec.class_name,
        count=found.spec.count,
        template=names.TEMPLATE_LABEL in (metadata.labels or {}),
        vmi_uid=next((one.uid for one in metadata.owner_references or () if one.kind == names.VMI_KIND), ""),
    )


class _Held(msgspec.Struct, frozen=True):
    """What was decided of one claim."""

    units: int = 0
    node: str = ""
    vm: str = ""
    stamp: Stamp = Stamp()


def record_of(state: State, claim: MirroredClaim) -> Record | None:
    """Return the record that a claim must have; None for a template claim that no set names (any more).

    Pending it holds nothing and the record says 0; Bound and Lost it holds its units, as in budgets.
    """
    held = _of_template(state, claim) if claim.template else _of_order(state, claim)
    if held is None:
        return None
    owner = BlockingOwner(GPU_CLAIM.api_version, GPU_CLAIM.kind, claim.name, claim.uid, block=False)
    units: dict[str, int | str] = {f"{names.BUDGET_CLASS_PREFIX}{claim.class_name}": str(held.units)}
    return Record(
        namespace=claim.namespace,
        name=claim.record,
        owner=owner,
        status=WorkloadStatus(names.CLAIM_RECORD_KIND, units, claim.class_name, operational=bool(held.node)),
        labels={
            names.CLASS_LABEL: label_value(claim.class_name),
            names.MANAGED_BY_LABEL: names.FIELD_MANAGER,
        },
        annotations={
            names.RECORD_NODE_ANNOTATION: held.node,
            names.RECORD_VM_ANNOTATION: held.vm,
            names.STAMP_ANNOTATION: stamp_text(held.stamp),
        },
    )


def _of_template(state: State, claim: MirroredClaim) -> _Held | None:
    gpu_set = state.sets.get(claim.vmi_uid)
    decided = next((one for one in gpu_set.claims if one.name == claim.name), None) if gpu_set else None
    if gpu_set is None or decided is None or gpu_set.vmi.namespace != claim.namespace:
        return None
    return _Held(decided.count if gpu_set.node else 0, gpu_set.node, gpu_set.vmi.name, gpu_set.stamp)


def _of_order(state: State, claim: MirroredClaim) -> _Held:
    holding = state.holdings.get(claim.key)
    if holding is None or holding.claim.uid != claim.uid:
        return _Held()
    vm = holding.attached.name if holding.attached else ""
    units = holding.claim.count if counts(holding) else 0
    return _Held(units, holding.node, vm, holding.stamp)


def stamp_of(record: SeenRecord) -> Stamp:
    """Return the stamp a record carries; one that can't be read is none."""
    return read_stamp(record.annotations.get(names.STAMP_ANNOTATION, "")) or Stamp()


def read_claim_record(raw: msgspec.Raw | bytes) -> SeenRecord | None:
    """Read a Workload that has the name of a claim's record; the others are no concern of claims."""
    record = read_record(raw)
    return record if record.name.startswith(names.CLAIM_RECORD_PREFIX) else None
