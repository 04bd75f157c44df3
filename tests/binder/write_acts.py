"""What can happen to what declares units, told by numbers: pools, replica sets, owners, and who asks to write."""

from msgspec.structs import replace

from schemas import decisions as d
from schemas import events as e
from schemas.objects import AnyView, PoolView, ReplicaSetView, VmiView, VmView
from tests.binder.budget_acts import BudgetActs
from tests.binder.cluster_acts import CLASSES, ENTRIES, NAMESPACES

POOLS, SETS = "virtualmachinepools", "virtualmachineinstancereplicasets"
VMS, VMIS = "virtualmachines", "virtualmachineinstances"


class WriteActs(BudgetActs):
    """Acts on pools and replica sets, on whom they own, and requests to write any of these."""

    def _scaled(self, a: int, b: int, c: int, *_: int) -> None:
        """A pool or a replica set comes or changes; with no entries, where its template lost them."""
        namespace, gpus = NAMESPACES[b % 2], ENTRIES[c % len(ENTRIES)] if c % 13 else ""
        make, name = (ReplicaSetView, PoolView)[a % 2], f"{('set', 'pool')[a % 2]}{a % 3}"
        self.scene.show(make(name, f"{namespace}-{name}", "", namespace, gpus=gpus, replicas=c % 4))

    def _scaled_gone(self, a: int, b: int, *_: int) -> None:
        kind = (POOLS, SETS)[a % 2]
        view = self._pick(kind, b)
        if view is not None:
            self.scene.remove(kind, view.key)

    def _owned(self, a: int, b: int, c: int, *_: int) -> None:
        """Somebody writes an owner reference: of what made it, of another kind, or of nothing."""
        kind = (VMS, VMIS)[a % 2]
        view = self._pick(kind, b)
        owner = self._pick((VMS, POOLS, SETS, VMIS)[c % 4], c // 4)
        if isinstance(view, VmView | VmiView):
            uid = owner.uid if owner is not None else ("nobody", "")[c % 2]
            self.scene.show(replace(view, owner_uid=uid))

    def _asks(self, a: int, b: int, c: int, dd: int) -> None:
        """Somebody asks to write an object, new or as it stands; it is written where that passes."""
        if a % 5 == 4:
            self._asks_to_order(b, c)
            return
        kind = (VMS, VMIS, POOLS, SETS)[a % 4]
        namespace, gpus = NAMESPACES[b % 2], ENTRIES[c % len(ENTRIES)]
        before = self._pick(kind, b) if dd % 3 else None
        view = self._changed(before, gpus, dd) or self._fresh(kind, namespace, gpus, dd)
        if view is None:
            return
        assert isinstance(view, VmView | VmiView | PoolView | ReplicaSetView)
        assert before is None or isinstance(before, VmView | VmiView | PoolView | ReplicaSetView)
        request = e.WriteRequest(f"w{self.count}", kind, view.namespace, view.name, "somebody", view, before)
        (said, *_) = self.scene.send(request)
        if isinstance(said, d.WritePassed):
            self.scene.show(view)

    def _changed(self, before: AnyView | None, gpus: str, replicas: int) -> AnyView | None:
        if isinstance(before, PoolView | ReplicaSetView):
            return replace(before, gpus=gpus, replicas=replicas % 5)
        return replace(before, gpus=gpus) if isinstance(before, VmView) else None

    def _fresh(self, kind: str, namespace: str, gpus: str, replicas: int) -> AnyView | None:
        name = f"new{self.count}"
        make = {VMS: VmView, VMIS: VmiView, POOLS: PoolView, SETS: ReplicaSetView}[kind]
        fresh: AnyView = make(name, f"uid-{name}", "", namespace, gpus=gpus)
        return replace(fresh, replicas=replicas % 3) if isinstance(fresh, PoolView | ReplicaSetView) else fresh

    def _asks_to_order(self, b: int, c: int) -> None:
        name, view = CLASSES[c % 3], self.scene.objects["gpuclasses"].get(CLASSES[c % 3])
        classes = (view,) if view is not None else ()
        missing = () if classes else (name,)
        self.scene.send(
            e.OrderRequest(
                f"o{self.count}", NAMESPACES[b % 2], "new", "somebody", name, 1 + c % 3, classes, missing  # type: ignore[arg-type]  # the table of classes
            )
        )  # fmt: skip
