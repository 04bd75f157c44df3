"""What speaks against a VMI's start, one rule each, in the order in which they speak."""

from collections.abc import Callable, Iterable

from binder.rules.gpu_sets import (
    MODE_VGPU,
    Entries,
    Objection,
    class_missing,
    class_view,
    class_views,
    devices_of,
    mark_of,
    resolved,
    units_max,
)
from schemas import names
from schemas.events import VmiRequest
from schemas.objects import ClassView
from schemas.reasons import Refusal


def _class_unfit(request: VmiRequest, entries: Entries) -> Objection | None:
    """A3: the class is being deleted, or another class has its resource name (K1)."""
    for index, entry in enumerate(entries):
        view = class_view(request, entry.class_name)
        if view is not None and view.deleting:
            return Objection(
                Refusal.CLASS_DELETED,
                f'names the GPU class "{view.name}" in entry {index}, which is being deleted: choose another class',
            )
        elder = _elder(view, class_views(request, entries)) if view else None
        if view is not None and (view.conflict or elder is not None):
            other = f' ("{elder.name}")' if elder else ""
            return Objection(
                Refusal.CLASS_CONFLICT,
                f'names the GPU class "{view.name}" in entry {index}, whose resource name {view.resource} belongs '
                f"to an older class{other} (ResourceNameConflict): choose that class, or ask the platform operator "
                f'to give "{view.name}" a resource name of its own',
            )
    return None


def _elder(view: ClassView, others: Iterable[ClassView]) -> ClassView | None:
    """Return the class that keeps the name of `view`: the older by creation time, then by name (K1)."""
    rivals = [other for other in others if other.resource == view.resource and other.name != view.name]
    older = [other for other in rivals if (other.created, other.name) < (view.created, view.name)]
    return min(older, key=lambda other: (other.created, other.name), default=None)


def _reserved_marks(request: VmiRequest, _entries: Entries) -> Objection | None:
    """Marks of KubeVirt's own would reach the launcher and pass it off as a migration target or a temporary pod."""
    if not request.marks:
        return None
    return Objection(
        Refusal.RESERVED_MARK,
        f"carries {listed(request.marks)}, which KubeVirt alone may put on launchers: "
        "remove it from the template's metadata",
    )


def _own_gpus(request: VmiRequest, _entries: Entries) -> Objection | None:
    """A7: the entries under devices.gpus are ours to write."""
    if not request.own_gpus:
        return None
    return Objection(
        Refusal.OWN_GPUS,
        f"lists GPU devices of its own ({listed(request.own_gpus)}) beside the annotation {names.GPUS_ANNOTATION}: "
        "remove them from spec.domain.devices.gpus or from its instancetype; the annotation's entries become devices",
    )


def _host_devices(request: VmiRequest, _entries: Entries) -> Objection | None:
    """A7, C48: a host device of a class's resource would add to what the launcher requests."""
    clash = _classes_of(request, request.host_devices)
    if clash is None:
        return None
    return Objection(
        Refusal.OWN_GPUS,
        f'lists the host device {clash.resource}, which is handed out as the GPU class "{clash.name}": '
        f"remove it from spec.domain.devices.hostDevices and name the class in {names.GPUS_ANNOTATION}",
    )


def _resource_keys(request: VmiRequest, _entries: Entries) -> Objection | None:
    """A2, C48: a key under domain.resources overrides the number of devices in the launcher's requests."""
    clash = _classes_of(request, request.resource_keys)
    if clash is None:
        return None
    return Objection(
        Refusal.RESOURCE_KEY,
        f'requests {clash.resource} under spec.domain.resources, which is handed out as the GPU class "{clash.name}": '
        f"remove the key; the entries of {names.GPUS_ANNOTATION} are what the launcher requests",
    )


def _classes_of(request: VmiRequest, resources: tuple[str, ...]) -> ClassView | None:
    return next((view for view in request.classes if view.resource in resources), None)


def _bound_gpus(request: VmiRequest, entries: Entries) -> Objection | None:
    """C26: what has our prefix is ours only if it is exactly what we would write; the prefix proves nothing."""
    ours = tuple(mark_of(device.name, device.device_name) for device in devices_of(resolved(request, entries)))
    if not request.bound_gpus or request.bound_gpus == ours:
        return None
    return Objection(
        Refusal.RESERVED_MARK,
        f"lists GPU devices named {names.GPU_ENTRY_PREFIX}..., a reserved prefix, that differ from what the annotation "
        f"{names.GPUS_ANNOTATION} gives: remove them from spec.domain.devices.gpus",
    )


def _vgpu_mix(request: VmiRequest, entries: Entries) -> Objection | None:
    """A4: one VM has one vGPU class."""
    vgpus = [view.name for view in class_views(request, entries) if view.mode == MODE_VGPU]
    if len(vgpus) < 2:
        return None
    return Objection(
        Refusal.VGPU_MIX,
        f'names the vGPU classes "{vgpus[0]}" and "{vgpus[1]}" together: one VM can have one vGPU class only, '
        "keep one of them",
    )


def _over_maximum(request: VmiRequest, entries: Entries) -> Objection | None:
    """A4: units above the class's effective maximum."""
    for index, entry in enumerate(entries):
        view = class_view(request, entry.class_name)
        if view is not None and entry.count > units_max(view):
            return Objection(
                Refusal.OVER_MAXIMUM,
                f'asks for {entry.count} units of the GPU class "{view.name}" in entry {index}, of which one VM can '
                f"have {units_max(view)} at most: lower count to {units_max(view)}",
            )
    return None


def _not_permitted(request: VmiRequest, entries: Entries) -> Objection | None:
    """A6: KubeVirt would accept the VMI and leave it Pending without a pod; without a table it checks nothing."""
    table = request.kubevirt.permitted if request.kubevirt else None
    for index, entry in enumerate(entries):
        view = class_view(request, entry.class_name)
        if view is not None and table is not None and view.resource not in table:
            return Objection(
                Refusal.NOT_PERMITTED,
                f'names the GPU class "{view.name}" in entry {index}, whose resource {view.resource} is not in '
                "KubeVirt's permittedHostDevices: the platform operator has to add it to the KubeVirt resource first",
            )
    return None


OBJECTIONS: tuple[Callable[[VmiRequest, Entries], Objection | None], ...] = (
    class_missing,
    _class_unfit,
    _reserved_marks,
    _own_gpus,
    _host_devices,
    _resource_keys,
    _bound_gpus,
    _vgpu_mix,
    _over_maximum,
    _not_permitted,
)


def first_objection(request: VmiRequest, entries: Entries) -> Objection | None:
    """Return what the first rule that objects says, None where all are content."""
    return next((said for rule in OBJECTIONS if (said := rule(request, entries))), None)


def listed(items: tuple[str, ...], shown: int = 3) -> str:
    """Name the first few of the items, and how many more there are."""
    more = f" and {len(items) - shown} more" if len(items) > shown else ""
    return ", ".join(items[:shown]) + more
