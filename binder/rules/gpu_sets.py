"""What a VMI's GPU entries come to: classes, units, devices, and what can't be read of them."""

from collections.abc import Iterable

import msgspec

from schemas import names
from schemas.decisions import GpuEntry
from schemas.entries import ClaimEntry, ClassEntry, MalformedEntries, parse_entries
from schemas.events import PodRequest, VmiRequest
from schemas.objects import ClassView
from schemas.reasons import Refusal

PASSTHROUGH_UNITS_MAX = 16
VGPU_UNITS_MAX = 1
MODE_VGPU = "VGPU"

Entries = tuple[ClassEntry, ...]


class Objection(msgspec.Struct, frozen=True):
    """Why a request is refused; `sentence` goes on after its subject: "VMI a/b" + sentence."""

    reason: Refusal
    sentence: str


class GpuDevice(msgspec.Struct, frozen=True, rename="camel"):
    """One element of a VMI's gpus list as we write it, and nothing beside these two fields."""

    name: str
    device_name: str


def devices_of(entries: Iterable[GpuEntry]) -> tuple[GpuDevice, ...]:
    """Return one device per unit, named by entry and unit: unique whatever the classes are called (A1, C60)."""
    return tuple(
        GpuDevice(f"{names.GPU_ENTRY_PREFIX}{index}-{unit}", entry.resource)
        for index, entry in enumerate(entries)
        for unit in range(entry.count)
    )


def mark_of(name: str, device: str, others: Iterable[str] = ()) -> str:
    """Spell one device for `VmiRequest.bound_gpus`: `others` are the fields that we never write."""
    return "+".join((f"{name}={device}", *sorted(others)))


def units_max(view: ClassView) -> int:
    """Return how many units of the class one VM may have: its maximum, else 16 whole cards or 1 vGPU (A4)."""
    if view.max_count is not None:
        return view.max_count
    return VGPU_UNITS_MAX if view.mode == MODE_VGPU else PASSTHROUGH_UNITS_MAX


def read_entries(text: str) -> Entries | Objection:
    """Return the class entries of the annotation, or what is wrong with it: which entry, which field (N2)."""
    try:
        parsed = parse_entries(text)
    except MalformedEntries as error:
        where = f"entry {error.entry} (counted from 0)" if error.entry >= 0 else "the list"
        field = f", field {error.field}" if error.field else ""
        return Objection(
            Refusal.MALFORMED,
            f"has a malformed annotation {names.GPUS_ANNOTATION}: {where}{field} {error.problem}",
        )
    for index, entry in enumerate(parsed):
        if isinstance(entry, ClaimEntry):
            return Objection(
                Refusal.UNSUPPORTED,
                f'names the held claim "{entry.claim_name}" in entry {index} of {names.GPUS_ANNOTATION}, and held '
                "claims are not yet supported: name a class with className and count instead",
            )
    return tuple(entry for entry in parsed if isinstance(entry, ClassEntry))


def class_view(request: VmiRequest | PodRequest, name: str) -> ClassView | None:
    """Return the class as it was read for this request, None where it did not exist."""
    return next((view for view in request.classes if view.name == name), None)


def class_views(request: VmiRequest | PodRequest, entries: Entries) -> tuple[ClassView, ...]:
    """Return the classes of the entries in their order, without those that do not exist."""
    return tuple(view for entry in entries if (view := class_view(request, entry.class_name)))


def class_missing(request: VmiRequest | PodRequest, entries: Entries) -> Objection | None:
    """A3: the class does not exist."""
    for index, entry in enumerate(entries):
        if class_view(request, entry.class_name) is None:
            return Objection(
                Refusal.CLASS_NOT_FOUND,
                f'names the GPU class "{entry.class_name}" in entry {index}, which does not exist: '
                "choose one that `kubectl get gpuclasses` lists",
            )
    return None


def resolved(request: VmiRequest, entries: Entries) -> tuple[GpuEntry, ...]:
    """Return the entries with their resource names (A1); every class must be there."""
    return tuple(
        GpuEntry(entry.class_name, entry.count, view.resource)
        for entry, view in zip(entries, class_views(request, entries), strict=True)
    )
