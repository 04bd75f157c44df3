"""A VMI under review: the view of it that goes onto the stream, and the patch of an answer (A1, T16)."""

from http import HTTPStatus

import msgspec

from binder.rules.gpu_sets import devices_of, mark_of
from schemas import names
from schemas.decisions import VmiAdmitted
from schemas.entries import COUNT_MAX, ENTRIES_MAX, as_kept
from schemas.events import VmiRequest
from webhooks import licence_disk
from webhooks.evidence import Evidence
from webhooks.reviews import UNREADABLE, MalformedReview, Metadata, PatchOp, Review, TurnedAway, annotate, pointer

DEVICES_MAX = 256
"""Most host devices, and most resource keys, that a request may carry; more are refused, never cut off."""

RESOURCE_NAME_MAX = 317
"""Longest name of an extended resource: what is longer can be no class's."""

_Device = dict[str, msgspec.Raw]
_WRITTEN = frozenset({"name", "deviceName"})


class _Devices(msgspec.Struct, frozen=True, rename="camel"):
    gpus: tuple[_Device, ...] | None = None
    disks: tuple[_Device, ...] | None = None
    host_devices: tuple[_Device, ...] | None = None


class _Resources(msgspec.Struct, frozen=True):
    requests: dict[str, msgspec.Raw] | None = None
    limits: dict[str, msgspec.Raw] | None = None


class _Domain(msgspec.Struct, frozen=True):
    devices: _Devices | None = None
    resources: _Resources | None = None


class _Spec(msgspec.Struct, frozen=True):
    domain: _Domain
    volumes: tuple[_Device, ...] | None = None


class Vmi(msgspec.Struct, frozen=True):
    """What is read of a VMI: everything else in it, cloud-init data among it, stays behind (T16)."""

    spec: _Spec
    metadata: Metadata = Metadata()


_decoder = msgspec.json.Decoder(Vmi)


def read_vmi(raw: msgspec.Raw) -> Vmi:
    """Read the VMI of a review. Raises `MalformedReview`, which names the field and never its value."""
    try:
        return _decoder.decode(raw)
    except UNREADABLE as error:
        raise MalformedReview(f"the VirtualMachineInstance can't be read: {error}") from None


def other_resources(vmi: Vmi) -> tuple[str, ...]:
    """Return the resources that the VMI names beside its GPU entries: a class may have one of them (A2, A7)."""
    return tuple(dict.fromkeys((*_host_devices(vmi), *(key for key in _resource_keys(vmi) if "/" in key))))


def request_of(review: Review, vmi: Vmi, evidence: Evidence) -> VmiRequest:
    """Return the request as it is decided on and replayed: whitelisted fields and the evidence read for it."""
    devices = vmi.spec.domain.devices
    gpus = (devices.gpus if devices else None) or ()
    ours = [gpu for gpu in gpus if _has_our_prefix(gpu)]
    own = [
        _text(gpu, "deviceName") or _text(gpu, "name") or "one without a name"
        for gpu in gpus
        if not _has_our_prefix(gpu)
    ]
    marks = [f"label {names.MIGRATION_LABEL}"] if vmi.metadata.label(names.MIGRATION_LABEL) is not None else []
    if vmi.metadata.annotation(names.EPHEMERAL_ANNOTATION) is not None:
        marks.append(f"annotation {names.EPHEMERAL_ANNOTATION}")
    return VmiRequest(
        request=review.uid,
        namespace=review.namespace,
        name=review.name,
        user=review.user,
        gpus=gpus_text(vmi.metadata),
        own_gpus=tuple(name[:RESOURCE_NAME_MAX] for name in own[:DEVICES_MAX]),
        # One more than could ever be ours is enough to see that they are not.
        bound_gpus=tuple(_mark(gpu) for gpu in ours[: ENTRIES_MAX * COUNT_MAX + 1]),
        host_devices=_host_devices(vmi),
        resource_keys=_resource_keys(vmi),
        marks=tuple(marks),
        bound_licence=licence_disk.found(vmi.spec.volumes or (), (devices.disks if devices else None) or ()),
        classes=evidence.classes,
        missing=evidence.missing,
        claims=evidence.claims,
        missing_claims=evidence.missing_claims,
        kubevirt=evidence.kubevirt,
        home=evidence.home,
    )


def patch_of(vmi: Vmi, admitted: VmiAdmitted) -> tuple[PatchOp, ...]:
    """Return what is still to be written: one gpus entry per unit (A1), the licence's disk (L5), the policy mark."""
    devices = vmi.spec.domain.devices
    gpus = devices_of(admitted.entries)
    ops: tuple[PatchOp, ...] = ()
    # An admitted VMI has either no entries or exactly ours: another mutator made the API server ask again.
    if devices is None:
        ops = (PatchOp(pointer("spec", "domain", "devices"), {"gpus": gpus}),)
    elif not devices.gpus:
        ops = (PatchOp(pointer("spec", "domain", "devices", "gpus"), gpus),)
    disks = devices.disks if devices is not None else None
    ops += licence_disk.ops(admitted.licence, vmi.spec.volumes, disks)
    return ops + annotate(vmi.metadata, names.POLICY_ANNOTATION, admitted.policy)


def warnings_of(vmi: Vmi, admitted: VmiAdmitted) -> tuple[str, ...]:
    """Return what the requester should know of an admitted VMI: a reserved annotation was overwritten."""
    if vmi.metadata.annotation(names.POLICY_ANNOTATION) in {None, admitted.policy}:
        return ()
    return (
        f"the annotation {names.POLICY_ANNOTATION} is set by the platform: {admitted.policy} replaces what it said",
    )


def gpus_text(metadata: Metadata) -> str:
    """Return the GPU annotation; what is longer than any readable one is cut just beyond that length."""
    return as_kept(metadata.annotation(names.GPUS_ANNOTATION) or "")


def _text(device: _Device, field: str) -> str:
    try:
        return msgspec.json.decode(device.get(field, b'""'), type=str)
    except UNREADABLE:
        return ""


def _has_our_prefix(gpu: _Device) -> bool:
    return _text(gpu, "name").startswith(names.GPU_ENTRY_PREFIX)


def _mark(gpu: _Device) -> str:
    others = [field for field, value in gpu.items() if field not in _WRITTEN and bytes(value) != b"null"]
    return mark_of(_text(gpu, "name"), _text(gpu, "deviceName"), others)[: 2 * RESOURCE_NAME_MAX]


def _host_devices(vmi: Vmi) -> tuple[str, ...]:
    devices = vmi.spec.domain.devices
    found = (devices.host_devices if devices else None) or ()
    return _bounded("spec.domain.devices.hostDevices", [_text(device, "deviceName") for device in found])


def _resource_keys(vmi: Vmi) -> tuple[str, ...]:
    resources = vmi.spec.domain.resources or _Resources()
    return _bounded("spec.domain.resources", [*(resources.requests or ()), *(resources.limits or ())])


def _bounded(field: str, found: list[str]) -> tuple[str, ...]:
    distinct = tuple(dict.fromkeys(name for name in found if name and len(name) <= RESOURCE_NAME_MAX))
    if len(distinct) > DEVICES_MAX:
        raise TurnedAway(
            "malformed",
            HTTPStatus.FORBIDDEN,
            "TooManyResources",
            f"{field} names {len(distinct)} different resources: at most {DEVICES_MAX} are possible with GPU classes",
        )
    return distinct
