"""Pods, from bytes to views: launchers with all that placing needs, other pods as the room they take."""

import msgspec

from ingest.classes import TolerationBody
from ingest.metadata import Affinity, Metadata, OwnerReference, gone, head
from ingest.requests import Container, ContainerStatus, Present, Resources, effective_requests
from schemas import kinds, names
from schemas.objects import Gone, PodView

TERMINAL = frozenset({"Succeeded", "Failed"})
RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"
POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"


class _Gate(msgspec.Struct, frozen=True):
    name: str


class _ClaimName(msgspec.Struct, frozen=True, rename="camel"):
    claim_name: str


class _Volume(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    persistent_volume_claim: _ClaimName | None = None
    ephemeral: Present | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    resources: Resources | None = None
    overhead: dict[str, str] | None = None
    scheduling_gates: tuple[_Gate, ...] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[TolerationBody, ...] | None = None
    priority: int | None = None
    volumes: tuple[_Volume, ...] | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str = ""
    reason: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    conditions: tuple[_Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None


class _Pod(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


_pod = msgspec.json.Decoder(_Pod)


def read_pod(raw: msgspec.Raw | bytes) -> PodView | Gone:
    """Read a pod. One that is no launcher matters while it stands on a node, for the room it takes alone.

    Raises `msgspec.DecodeError`, `MalformedObject`.
    """
    pod = _pod.decode(raw)
    metadata, spec = pod.metadata, pod.spec
    launcher = (
        metadata.label(names.KUBEVIRT_LABEL) == names.LAUNCHER_VALUE
        and metadata.label(names.REFERENCE_LABEL) == names.REFERENCE_VALUE
    )
    if not launcher and not spec.node_name:
        return gone(metadata)
    owner = _owning_vmi(metadata)
    room = PodView(
        **head(metadata),
        node=spec.node_name,
        ended=pod.status.phase in TERMINAL,
        requests=_room(pod),
        owner_uid=owner.uid if owner else "",
        owner_name=owner.name if owner else "",
    )
    return _launcher(room, pod) if launcher else room


def _room(pod: _Pod) -> dict[str, int]:
    spec, status = pod.spec, pod.status
    return effective_requests(
        spec.containers or (),
        spec.init_containers or (),
        spec.resources,
        spec.overhead,
        _containers(status),
        infeasible=any(c.type == RESIZE_PENDING and c.reason == INFEASIBLE for c in status.conditions or ()),
    )


def _containers(status: _Status) -> list[ContainerStatus]:
    return [*(status.container_statuses or ()), *(status.init_container_statuses or ())]


def _is_unschedulable(condition: _Condition) -> bool:
    """A gated pod is not scheduled either, for another reason."""
    return (condition.type, condition.status, condition.reason) == (POD_SCHEDULED, "False", UNSCHEDULABLE)


def _launcher(room: PodView, pod: _Pod) -> PodView:
    metadata, spec = pod.metadata, pod.spec
    return msgspec.structs.replace(
        room,
        phase=pod.status.phase,
        reason=pod.status.reason,
        gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
        launcher=True,
        admission=metadata.annotation(names.ADMISSION_ANNOTATION),
        temporary=metadata.annotation(names.EPHEMERAL_ANNOTATION) == "true",
        migration=names.MIGRATION_LABEL in (metadata.labels or {}),
        node_selector=spec.node_selector or {},
        terms=spec.affinity.required_terms() if spec.affinity else None,
        tolerations=tuple(body.view() for body in spec.tolerations or ()),
        priority=spec.priority or 0,
        pvcs=_claims(metadata.name, spec.volumes or ()),
        created=metadata.created,
        ran=any(one.ran for one in _containers(pod.status)),
        unschedulable=any(_is_unschedulable(condition) for condition in pod.status.conditions or ()),
    )


def _owning_vmi(metadata: Metadata) -> OwnerReference | None:
    owner = metadata.controller()
    if owner and owner.kind == names.VMI_KIND and owner.api_version.split("/")[0] == kinds.VMI.group:
        return owner
    return None


def _claims(pod: str, volumes: tuple[_Volume, ...]) -> tuple[str, ...]:
    """Return the pod's PVCs; that of a generic ephemeral volume is named after pod and volume."""
    return tuple(
        volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim else f"{pod}-{volume.name}"
        for volume in volumes
        if volume.persistent_volume_claim or volume.ephemeral
    )
