"""What speaks against a VMI's start, one rule each, in the order in which they speak."""

from collections.abc import Callable, Iterable

from binder.rules.gpu_sets import (
    MODE_VGPU,
    Asked,
    Entries,
    Objection,
    asked_for,
    claim_missing,
    class_missing,
    devices_of,
    mark_of,
    no_entitlement,
    resolved,
    units_max,
)
from binder.rules.licences import licence_copy_for, licence_marks
from schemas import names
from schemas.events import VmiRequest
from schemas.objects import ClassView
from schemas.reasons import Refusal

AllAsked = tuple[Asked, ...]


def _class_missing(_request: VmiRequest, asked: AllAsked) -> Objection | None:
    return class_missing(asked)


def _claim_unfit(_request: VmiRequest, asked: AllAsked) -> Objection | None:
    """A held claim lives on its own and is there to stay: one of another VMI's template, or one that goes, is none."""
    for one in asked:
        if one.claim is not None and one.claim.template:
            return Objection(
                Refusal.TEMPLATE_CLAIM,
                f'names the claim "{one.claim.name}" in entry {one.index}, which was made for another VM and goes '
                f'with it: name its class "{one.class_name}" with className instead, or a claim of your own',
            )
        if one.claim is not None and one.claim.deleting:
            return Objection(
                Refusal.CLAIM_DELETED,
                f'names the held claim "{one.claim.name}" in entry {one.index}, which is being deleted: '
                "name another claim",
            )
    return None


def _class_unfit(_request: VmiRequest, asked: AllAsked) -> Objection | None:
    """A3: the class is being deleted, or another class has its resource name (K1).

    What a held claim was given before stays its own: its class waits for it, and its resource is recorded (K2, T24).
    """
    views = [one.view for one in asked if one.view is not None]
    for one in asked:
        view = one.view
        if view is None or one.is_recorded:
            continue
        if view.deleting:
            return Objection(Refusal.CLASS_DELETED, f"names {one.named}, which is being deleted: choose another class")
        elder = _elder(view, views)
        if view.conflict or elder is not None:
            other = f' ("{elder.name}")' if elder else ""
            return Objection(
                Refusal.CLASS_CONFLICT,
                f"names {one.named}, whose resource name {view.resource} belongs "
                f"to an older class{other} (ResourceNameConflict): choose that class, or ask the platform operator "
                f'to give "{view.name}" a resource name of its own',
            )
    return None


def _elder(view: ClassView, others: Iterable[ClassView]) -> ClassView | None:
    """Return the class that keeps the name of `view`: the older by creation time, then by name (K1)."""
    rivals = [other for other in others if other.resource == view.resource and other.name != view.name]
    older = [other for other in rivals if (other.created, other.name) < (view.created, view.name)]
    return min(older, key=lambda other: (other.created, other.name), default=None)


def _reserved_marks(request: VmiRequest, _asked: AllAsked) -> Objection | None:
    """Marks of KubeVirt's own would reach the launcher and pass it off as a migration target or a temporary pod."""
    if not request.marks:
        return None
    return Objection(
        Refusal.RESERVED_MARK,
        f"carries {listed(request.marks)}, which KubeVirt alone may put on launchers: "
        "remove it from the template's metadata",
    )


def _own_gpus(request: VmiRequest, _asked: AllAsked) -> Objection | None:
    """A7: the entries under devices.gpus are ours to write."""
    if not request.own_gpus:
        return None
    return Objection(
        Refusal.OWN_GPUS,
        f"lists GPU devices of its own ({listed(request.own_gpus)}) beside the annotation {names.GPUS_ANNOTATION}: "
        "remove them from spec.domain.devices.gpus or from its instancetype; the annotation's entries become devices",
    )


def _host_devices(request: VmiRequest, asked: AllAsked) -> Objection | None:
    """A7, C48: a host device of a class's resource would add to what the launcher requests."""
    clash = _handed_out(request, asked, request.host_devices)
    if clash is None:
        return None
    resource, name = clash
    return Objection(
        Refusal.OWN_GPUS,
        f'lists the host device {resource}, which is handed out as the GPU class "{name}": '
        f"remove it from spec.domain.devices.hostDevices and name the class in {names.GPUS_ANNOTATION}",
    )


def _resource_keys(request: VmiRequest, asked: AllAsked) -> Objection | None:
    """A2, C48: a key under domain.resources overrides the number of devices in the launcher's requests."""
    clash = _handed_out(request, asked, request.resource_keys)
    if clash is None:
        return None
    resource, name = clash
    return Objection(
        Refusal.RESOURCE_KEY,
        f'requests {resource} under spec.domain.resources, which is handed out as the GPU class "{name}": '
        f"remove the key; the entries of {names.GPUS_ANNOTATION} are what the launcher requests",
    )


def _handed_out(request: VmiRequest, asked: AllAsked, resources: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the first of these resources that a class, or a held claim of this VMI, counts by; and the class."""
    known = [(view.resource, view.name) for view in request.classes]
    recorded = [(one.resource, one.class_name) for one in asked if one.is_recorded]
    return next((pair for pair in (*known, *recorded) if pair[0] in resources), None)


def _bound_gpus(request: VmiRequest, asked: AllAsked) -> Objection | None:
    """C26: what has our prefix is ours only if it is exactly what we would write; the prefix proves nothing."""
    ours = tuple(mark_of(device.name, device.device_name) for device in devices_of(resolved(asked)))
    if not request.bound_gpus or request.bound_gpus == ours:
        return None
    return Objection(
        Refusal.RESERVED_MARK,
        f"lists GPU devices named {names.GPU_ENTRY_PREFIX}..., a reserved prefix, that differ from what the annotation "
        f"{names.GPUS_ANNOTATION} gives: remove them from spec.domain.devices.gpus",
    )


def _bound_licence(request: VmiRequest, asked: AllAsked) -> Objection | None:
    """C26: a volume or disk under the name of ours is ours only if it is exactly what we would write (L5)."""
    if not request.bound_licence or request.bound_licence == licence_marks(licence_copy_for(asked)):
        return None
    return Objection(
        Refusal.RESERVED_MARK,
        f"has a volume or a disk named {names.LICENCE_VOLUME}, a reserved name, that differs from the licence's: "
        "give yours another name",
    )


def _vgpu_mix(_request: VmiRequest, asked: AllAsked) -> Objection | None:
    """A4: one VM has one vGPU class, whether its units are named by class or held."""
    modes = [(one.class_name, one.view.mode) for one in asked if one.view is not None]
    vgpus = list(dict.fromkeys(name for name, mode in modes if mode == MODE_VGPU))
    if len(vgpus) < 2:
        return None
    return Objection(
        Refusal.VGPU_MIX,
        f'names the vGPU classes "{vgpus[0]}" and "{vgpus[1]}" together: one VM can have one vGPU class only, '
        "keep one of them",
    )


def _over_maximum(_request: VmiRequest, asked: AllAsked) -> Objection | None:
    """A4: units above the class's effective maximum, those of held claims among them."""
    for one in asked:
        view, alike = one.view, [other for other in asked if other.class_name == one.class_name]
        count = sum(other.count for other in alike)
        if view is None or count <= units_max(view):
            continue
        most = units_max(view)
        where, remedy = f"in entry {one.index}", f"lower count to {most}"
        if len(alike) > 1 or one.claim is not None:
            places = " and ".join(str(other.index) for other in alike)
            where = f"in entr{'y' if len(alike) == 1 else 'ies'} {places}, held claims counted in"
            remedy = "name fewer of them"
        return Objection(
            Refusal.OVER_MAXIMUM,
            f'asks for {count} units of the GPU class "{view.name}" {where}, of which one VM can have '
            f"{most} at most: {remedy}",
        )
    return None


def _no_entitlement(request: VmiRequest, asked: AllAsked) -> Objection | None:
    """A5: also of a held claim's class, whose units were given out before the namespace lost its entitlement."""
    said = (no_entitlement(one.view, request.home, f"names {one.named}") for one in asked if one.view is not None)
    return next((objection for objection in said if objection is not None), None)


def _not_permitted(request: VmiRequest, asked: AllAsked) -> Objection | None:
    """A6: KubeVirt would accept the VMI and leave it Pending without a pod; without a table it checks nothing."""
    table = request.kubevirt.permitted if request.kubevirt else None
    for one in asked:
        if table is not None and one.resource not in table:
            return Objection(
                Refusal.NOT_PERMITTED,
                f"names {one.named}, whose resource {one.resource} is not in "
                "KubeVirt's permittedHostDevices: the platform operator has to add it to the KubeVirt resource first",
            )
    return None


OBJECTIONS: tuple[Callable[[VmiRequest, AllAsked], Objection | None], ...] = (
    _claim_unfit,
    _class_missing,
    _class_unfit,
    _reserved_marks,
    _own_gpus,
    _host_devices,
    _resource_keys,
    _bound_gpus,
    _bound_licence,
    _vgpu_mix,
    _over_maximum,
    _no_entitlement,
    _not_permitted,
)


def first_objection(request: VmiRequest, entries: Entries) -> Objection | None:
    """Return what the first rule that objects says, None where all are content."""
    missing = claim_missing(request, entries)
    if missing is not None:
        return missing
    asked = asked_for(request, entries)
    return next((said for rule in OBJECTIONS if (said := rule(request, asked))), None)


def listed(items: tuple[str, ...], shown: int = 3) -> str:
    """Name the first few of the items, and how many more there are."""
    more = f" and {len(items) - shown} more" if len(items) > shown else ""
    return ", ".join(items[:shown]) + more
