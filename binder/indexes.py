"""Where to find what belongs together: pods by their VMI, volumes by their claims, claims by their owner.

Derived from the tables alone, and compared anew by `invariants.check`; members stand in the order they
came, so whoever decides by them sorts (T10).
"""

from collections.abc import Callable, Iterator
from operator import attrgetter

from binder.launchers import claim_names
from binder.members import Elder, Elders, Members
from schemas.objects import AnyView, ClaimView, PodView, PvcView, VmiView, VmView

PLACED_BY: dict[type, Callable[[AnyView | None], object]] = {
    PodView: attrgetter("admission", "owner_uid", "pvcs"),
    VmiView: attrgetter("uid", "volumes", "gpus"),
    PvcView: attrgetter("volume"),
    ClaimView: attrgetter("owner_uid", "template", "class_name"),
}
"""What says where an object stands, beside its key; objects of other kinds stand nowhere but in their table."""


class Indexes:
    """Members by key. `vmis`: VMIs by uid, as long as they are seen.

    `claim_vms`, `claim_vmis`: who names a held claim, by the claim's key, of VMs the oldest first; `class_claims`: the
    held claims of a class.
    """

    def __init__(self) -> None:
        self.pods_by_vmi = Members()
        self.pods_by_stamp = Members()
        self.vmis: dict[str, VmiView] = {}
        self.volume_pvcs = Members()
        self.pvc_vmis = Members()
        self.pvc_pods = Members()
        self.owner_claims = Members()
        self.claim_vms = Elders()
        self.claim_vmis = Members()
        self.class_claims = Members()

    def move(self, key: str, before: AnyView | None, view: AnyView | None) -> None:
        """Take an object from where it stood to where it belongs now; None stands for one that is not there."""
        if isinstance(before, VmView) or isinstance(view, VmView):
            self._move_namer(before, view)
            return
        if isinstance(before, VmiView):
            self.vmis.pop(before.uid, None)
        if isinstance(view, VmiView):
            self.vmis[view.uid] = view
        if _stand_alike(before, view):
            # Most changes are of a status, and move nothing.
            return
        for members, under, member in self._places(key, before):
            members.drop(under, member)
        for members, under, member in self._places(key, view):
            members.add(under, member)

    def _move_namer(self, before: AnyView | None, view: AnyView | None) -> None:
        """Let a VM stand by its age among those that name each of its claims."""
        if isinstance(before, VmView):
            for claim in named_by(before):
                self.claim_vms.drop(claim, elder_of(before))
        if isinstance(view, VmView):
            for claim in named_by(view):
                self.claim_vms.add(claim, elder_of(view))

    def _places(self, key: str, view: AnyView | None) -> Iterator[tuple[Members, str, str]]:
        """Name the indexes that hold an object: each with the key it stands under, and as which member."""
        match view:
            case PodView():
                if view.admission:
                    yield self.pods_by_stamp, f"{view.namespace}/{view.admission}", key
                if view.owner_uid:
                    yield self.pods_by_vmi, view.owner_uid, key
                    for name in view.pvcs:
                        yield self.pvc_pods, f"{view.namespace}/{name}", key
            case VmiView():
                for name in view.volumes:
                    yield self.pvc_vmis, f"{view.namespace}/{name}", view.uid
                for name in claim_names(view.gpus):
                    yield self.claim_vmis, f"{view.namespace}/{name}", view.uid
            case PvcView():
                if view.volume:
                    yield self.volume_pvcs, view.volume, key
            case ClaimView():
                if view.owner_uid:
                    yield self.owner_claims, view.owner_uid, key
                if not view.template:
                    yield self.class_claims, view.class_name, key
            case _:
                pass


def _stand_alike(before: AnyView | None, view: AnyView | None) -> bool:
    if type(before) is not type(view):
        return False
    told_by = PLACED_BY.get(type(view))
    return told_by is None or told_by(before) == told_by(view)


def named_by(vm: VmView) -> list[str]:
    """Return the keys of the held claims that a VM names."""
    return [f"{vm.namespace}/{name}" for name in claim_names(vm.gpus)]


def elder_of(vm: VmView) -> Elder:
    """Return what a VM's age is told by; ages have one-second grain."""
    return (vm.created, vm.uid, vm.key)
