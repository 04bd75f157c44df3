"""What can happen to held claims and to who names them, told by numbers. Few names, so that everything meets."""

from msgspec.structs import replace

from schemas import events as e
from schemas.objects import ClaimView, Stamp, VmiView, VmView
from tests.binder.cluster_acts import CLASSES, ENTRIES, NAMESPACES
from tests.binder.machine_acts import MachineActs


class ClaimActs(MachineActs):
    """Acts on held claims, their writes, and the VMs that name them."""

    def _held(self, number: int) -> ClaimView | None:
        table = self.scene.objects["gpuclaims"]
        held = [view for _, view in sorted(table.items()) if isinstance(view, ClaimView) and not view.template]
        return held[number % len(held)] if held else None

    def _order(self, a: int, b: int, c: int, d: int) -> None:
        """A tenant orders a claim; its status may say whatever it likes."""
        key = f"{NAMESPACES[b % 2]}/mine{a % 3}"
        if key in self.scene.objects["gpuclaims"]:
            return
        namespace, name = key.split("/")
        class_name = (*CLASSES, "ghost")[c % 4] if c % 9 == 0 else CLASSES[c % 3]
        view = ClaimView(name, f"held{self.count}", "", namespace, class_name=class_name, created=self.count // 4)
        said = replace(view, phase="Bound", node=f"n{d % 3}") if d % 5 == 0 else view
        self.scene.show(replace(said, count=1 + d % 7 // 5, finalizers=("f",) if d % 2 else ()))

    def _order_ends(self, a: int, b: int, c: int, *_: int) -> None:
        """A claim is being deleted, often one that is used, and goes when it is freed; or it is gone at once."""
        used = [key for key, one in sorted(self.scene.book.state.holdings.items()) if one.attached and one.node]
        known = self.scene.objects["gpuclaims"].get(used[a % len(used)]) if used and c % 2 else self._held(a)
        view = known if isinstance(known, ClaimView) else None
        if view is None:
            return
        holding = self.scene.book.state.holdings.get(view.key)
        if b % 4 == 0 or (view.deleting and holding is not None and holding.freed):
            self.scene.remove("gpuclaims", view.key)
        else:
            self.scene.show(replace(view, deleting=True))

    def _claim_shown(self, a: int, b: int, *_: int) -> None:
        """The projector's write of a claim is seen, and it says that it has landed."""
        view = self._held(a)
        holding = self.scene.book.state.holdings.get(view.key) if view is not None else None
        if view is None or holding is None or holding.claim.uid != view.uid:
            return
        old = Stamp(holding.stamp.generation, holding.stamp.sequence - 1, 0)
        stamp = holding.stamp if b % 3 else old
        self.scene.show(replace(view, stamp=stamp, node=holding.node, resource=holding.claim.resource))
        outcome = e.Outcome("status", view.namespace, view.name, "", stamp, 422 if b % 7 == 6 else 0)
        self.scene.send(e.Outcomes((outcome,)))

    def _names_claims(self, a: int, b: int, c: int, d: int) -> None:
        """A VM names claims, or others than before."""
        namespace, name = NAMESPACES[b % 2], f"vm{a % 5}"
        known = self.scene.objects["virtualmachines"].get(f"{namespace}/{name}")
        entries = [one for one in ENTRIES if "claimName" in one]
        view = known if isinstance(known, VmView) else VmView(name, f"vm-{self.count}", "", namespace, created=d % 3)
        self.scene.show(replace(view, gpus=entries[c % len(entries)]))

    def _uses_claims(self, a: int, b: int, c: int, d: int) -> None:
        """A VM that names claims is started, as it goes when all goes well."""
        namespace, name = NAMESPACES[b % 2], f"vm{a % 5}"
        if f"{namespace}/{name}" in self.scene.objects["virtualmachineinstances"]:
            return
        entries = [one for one in ENTRIES if "claimName" in one]
        view = VmiView(name, f"vmi{self.count}", "", namespace, gpus=entries[c % len(entries)])
        fresh = self.scene.newer(view)
        self.scene.watch("virtualmachineinstances", [fresh])
        self.scene.admit(fresh, f"r{self.count}")
        self._pod(fresh, f"r{self.count}", c, d)
        self._listed_all(fresh)
