"""Workloads as records: what one must hold, what is seen of it, and the write that makes the two agree (T22).

Every write is one request on condition of the version that was seen; a record that belongs to an owner
before this one is deleted and made anew, so that no two owners share one.
"""

from typing import Final

import msgspec

from binder.kube import ApiError, Kube, PatchKind
from projector.mirror import Mirror, Mirrored
from projector.reads import namespace_is_over
from projector.verdicts import LANDED, SETTLED, Kind, Verdict, again, judged
from schemas import names
from schemas.kinds import WORKLOAD
from schemas.labels import label_value
from schemas.workloads import WorkloadStatus
from schemas.writes import ALREADY_EXISTS, BlockingOwner, OwnerReference

NAME_MAX: Final = 253


def record_name(prefix: str, name: str) -> str:
    """Return a record's name: the prefix of its kind and the object's name, cut with a hash beyond 253 (N3, W2)."""
    return label_value(prefix + name, NAME_MAX)


class Record(msgspec.Struct, frozen=True):
    """A Workload as it must be. Labels and annotations of others stay, but for those that name a monitor."""

    namespace: str
    name: str
    owner: BlockingOwner
    status: WorkloadStatus
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class SeenRecord(Mirrored, frozen=True, kw_only=True):
    """A Workload as it stands."""

    labels: dict[str, str]
    annotations: dict[str, str]
    owners: tuple[OwnerReference, ...]
    status: WorkloadStatus | None

    def owned_by(self, uid: str) -> bool:
        """Say whether an owner has that uid."""
        return any(owner.uid == uid for owner in self.owners)

    @property
    def monitor(self) -> str:
        """Which monitor it belongs to, as the label says; '' where it belongs to none."""
        return self.labels.get(names.MONITOR_LABEL, "")

    @property
    def marks(self) -> dict[str, str]:
        """The labels that are a record's own: whoever else puts one there makes it another's."""
        return {key: value for key, value in self.labels.items() if key.startswith(names.WORKLOAD_LABEL_PREFIX)}


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    deletion_timestamp: str | None = None


class _Body(msgspec.Struct, frozen=True):
    metadata: _Metadata
    status: WorkloadStatus | None = None


class _Bare(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _NewMetadata(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: str
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    owner_references: tuple[BlockingOwner, ...]


class _New(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _NewMetadata
    status: WorkloadStatus
    api_version: str = WORKLOAD.api_version
    kind: str = WORKLOAD.kind


_body = msgspec.json.Decoder(_Body)
_bare = msgspec.json.Decoder(_Bare)


def read_record(raw: msgspec.Raw | bytes) -> SeenRecord:
    """Read a Workload; a status that is none of one counts as no status."""
    try:
        found = _body.decode(raw)
    except msgspec.ValidationError:
        found = _Body(_bare.decode(raw).metadata)
    metadata = found.metadata
    return SeenRecord(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        rv=metadata.resource_version,
        deleting=metadata.deletion_timestamp is not None,
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
        owners=metadata.owner_references or (),
        status=found.status,
    )


def shows(seen: SeenRecord, record: Record) -> bool:
    """Say whether the Workload is as it must be."""
    return (
        [owner.uid for owner in seen.owners] == [record.owner.uid]
        and record.labels.items() <= seen.labels.items()
        and seen.marks.keys() <= record.labels.keys()
        and record.annotations.items() <= seen.annotations.items()
        and seen.status == record.status
    )


class Records:
    """Writes Workloads. `seen` mirrors them, and takes in each answer at once."""

    def __init__(self, kube: Kube, seen: Mirror[SeenRecord]) -> None:
        self._kube = kube
        self._seen = seen

    async def write(self, record: Record) -> Verdict:
        """Have the Workload be as it must be; AGAIN where what was seen is outdated. Raises nothing."""
        seen = self._seen.get(record.namespace, record.name)
        try:
            if seen is None:
                return await self._create(record)
            if not seen.owned_by(record.owner.uid):
                await self.delete(seen)
                return Verdict(Kind.AGAIN, 409, ALREADY_EXISTS)
            patch = _patch(record, seen)
            body = await self._kube.patch(WORKLOAD, record.namespace, record.name, patch, kind=PatchKind.MERGE)
            self._seen.put(body)
            return LANDED
        except ApiError as error:
            return again(error) if error.code in {404, 409} else judged(error)

    async def _create(self, record: Record) -> Verdict:
        metadata = _NewMetadata(record.name, record.namespace, record.labels, record.annotations, (record.owner,))
        body = msgspec.json.encode(_New(metadata, record.status))
        try:
            self._seen.put(await self._kube.create(WORKLOAD, record.namespace, body))
            return LANDED
        except ApiError as error:
            if error.code == 404 and await namespace_is_over(self._kube, record.namespace):
                return SETTLED
            raise

    async def delete(self, seen: SeenRecord) -> None:
        """Delete the Workload as it was seen. Raises `ApiError`, but not where it is gone."""
        try:
            await self._kube.delete(WORKLOAD, seen.namespace, seen.name, uid=seen.uid, resource_version=seen.rv)
        except ApiError as error:
            if error.code != 404:
                raise


def _patch(record: Record, seen: SeenRecord) -> bytes:
    """Return the merge patch from what is seen to what must be; its resourceVersion is the precondition."""
    foreign: dict[str, None] = dict.fromkeys(key for key in seen.marks if key not in record.labels)
    status = msgspec.to_builtins(record.status)
    # A merge keeps what it does not name: amounts that are counted no more are named to go.
    before = seen.status.resources if seen.status is not None else {}
    status["resources"] = dict.fromkeys(before) | status["resources"]
    status = {"type": None, "operational": None} | status
    metadata = {
        "resourceVersion": seen.rv,
        "labels": record.labels | foreign,
        "annotations": record.annotations,
        "ownerReferences": [record.owner],
    }
    return msgspec.json.encode({"metadata": metadata, "status": status})
