"""What a VMI's GPU entries come to: classes, held claims, units, devices, and what can't be read of them."""

from collections.abc import Iterable

import msgspec

from schemas import names
from schemas.decisions import GpuEntry
from schemas.entries import ClaimEntry, ClassEntry, MalformedEntries, parse_entries
from schemas.events import PodRequest, VmiRequest
from schemas.objects import ClaimView, ClassView, NamespaceView
from schemas.reasons import Refusal

PASSTHROUGH_UNITS_MAX = 16
VGPU_UNITS_MAX = 1
MODE_VGPU = "VGPU"

Entry = ClassEntry | ClaimEntry
Entries = tuple[Entry, ...]


class Objection(msgspec.Struct, frozen=True):
    """Why a request is refused; `sentence` goes on after its subject: "VMI a/b" + sentence."""

    reason: Refusal
    sentence: str


class Asked(msgspec.Struct, frozen=True):
    """What one entry asks for, as it was read for the request. `claim`: the held claim that it names, None for a class.

    `view`: its class, None where that does not exist.
    """

    index: int
    class_name: str
    count: int
    view: ClassView | None
    claim: ClaimView | None = None

    @property
    def resource(self) -> str:
        """What the units are counted by: what a held claim was first placed under, else the class's of now (T24)."""
        if self.is_recorded and self.claim is not None:
            return self.claim.resource
        return self.view.resource if self.view is not None else ""

    @property
    def is_recorded(self) -> bool:
        """Whether the units were given out already, under a resource that stands in the claim."""
        return self.claim is not None and bool(self.claim.resource)

    @property
    def named(self) -> str:
        """How a sentence names the entry; it ends with the class."""
        if self.claim is None:
            return f'the GPU class "{self.class_name}" in entry {self.index}'
        return f'the held claim "{self.claim.name}" in entry {self.index}, of the GPU class "{self.class_name}"'


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
    """Return the entries of the annotation, or what is wrong with it: which entry, which field (N2)."""
    try:
        return parse_entries(text)
    except MalformedEntries as error:
        where = f"entry {error.entry} (counted from 0)" if error.entry >= 0 else "the list"
        field = f", field {error.field}" if error.field else ""
        return Objection(
            Refusal.MALFORMED,
            f"has a malformed annotation {names.GPUS_ANNOTATION}: {where}{field} {error.problem}",
        )


def class_view(request: VmiRequest | PodRequest, name: str) -> ClassView | None:
    """Return the class as it was read for this request, None where it did not exist."""
    return next((view for view in request.classes if view.name == name), None)


def claim_view(request: VmiRequest | PodRequest, name: str) -> ClaimView | None:
    """Return the claim as it was read for this request, None where it did not exist."""
    return next((view for view in request.claims if view.name == name), None)


def no_entitlement(view: ClassView, home: NamespaceView | None, named: str) -> Objection | None:
    """A5: a vGPU needs a licence, and a namespace that may have one; where nobody read it, nothing is said."""
    if home is None or home.vgpu or view.mode != MODE_VGPU:
        return None
    return Objection(
        Refusal.NO_ENTITLEMENT,
        f"{named}, a class of vGPUs, which namespace {home.name} may not have: its label {names.VGPU_LABEL} is not "
        '"true"; choose a class of whole GPUs, or ask the platform operator for the label',
    )


def asked_for(request: VmiRequest | PodRequest, entries: Entries) -> tuple[Asked, ...]:
    """Return what the entries ask for, in their order, without the claims that do not exist."""
    found: list[Asked] = []
    for index, entry in enumerate(entries):
        if isinstance(entry, ClassEntry):
            found.append(Asked(index, entry.class_name, entry.count, class_view(request, entry.class_name)))
        elif claim := claim_view(request, entry.claim_name):
            view = class_view(request, claim.class_name)
            found.append(Asked(index, claim.class_name, claim.count, view, claim))
    return tuple(found)


def claim_missing(request: VmiRequest | PodRequest, entries: Entries) -> Objection | None:
    """A3 for held claims: there is none of that name in the VMI's namespace."""
    for index, entry in enumerate(entries):
        if isinstance(entry, ClaimEntry) and claim_view(request, entry.claim_name) is None:
            return Objection(
                Refusal.CLAIM_NOT_FOUND,
                f'names the held claim "{entry.claim_name}" in entry {index}, which does not exist: '
                f"choose one that `kubectl get gpuclaims -n {request.namespace}` lists",
            )
    return None


def class_missing(asked: Iterable[Asked]) -> Objection | None:
    """A3: the class does not exist; of a held claim's, nobody knows what it tolerates or how many one VM may have."""
    for one in asked:
        if one.view is None:
            remedy = "choose one that `kubectl get gpuclasses` lists"
            if one.claim is not None:
                remedy = "name a claim of another class, or ask the platform operator to create the class again"
            return Objection(Refusal.CLASS_NOT_FOUND, f"names {one.named}, which does not exist: {remedy}")
    return None


def resolved(asked: Iterable[Asked]) -> tuple[GpuEntry, ...]:
    """Return the entries with their resource names (A1)."""
    return tuple(
        GpuEntry(one.class_name, one.count, one.resource, one.claim.name if one.claim is not None else "")
        for one in asked
    )
