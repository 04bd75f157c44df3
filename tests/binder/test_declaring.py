"""What is declared on paper, and who is told that it is too much: kinds that come late, owners that are none."""

import pytest
from msgspec.structs import replace

from schemas import decisions as d
from schemas import events as e
from schemas.names import BUDGET_CLASS_PREFIX
from schemas.objects import ClassView, NamespaceView, PoolView, ReplicaSetView, VmiView, VmView
from schemas.reasons import Refusal
from tests.binder.scene import Decisions, Scene, launcher
from tests.binder.tenancy import L40S, Tenancy, key, places

A, B, ROOT = "tenant-a", "tenant-a-b", "tenant-root"
TWO = '[{"className":"l40s","count":2}]'
POOLS, SETS = "virtualmachinepools", "virtualmachineinstancereplicasets"


def declared(scene: Scene, namespace: str, name: str = "l40s") -> int:
    """Return the units that a namespace and all below it declare of a class."""
    return scene.book.declared.units(namespace, key(name))


def write(view: e.Writable, before: e.Writable | None = None) -> e.WriteRequest:
    """Return the request of somebody who writes an object."""
    kinds = {VmView: "virtualmachines", VmiView: "virtualmachineinstances", PoolView: POOLS, ReplicaSetView: SETS}
    return e.WriteRequest("w", kinds[type(view)], view.namespace, view.name, "somebody", view, before)


def order(count: int = 1, *views: ClassView, name: str = "l40s") -> e.OrderRequest:
    """Return the request of somebody who orders."""
    return e.OrderRequest("o", A, "c", "somebody", name, count, views, home=NamespaceView(A, "u", "1"))


def reason(said: Decisions) -> Refusal | None:
    """Return why a request was refused, None where it passed."""
    if isinstance(said[0], d.Refused):
        return said[0].reason
    assert isinstance(said[0], d.WritePassed)
    return None


def test_c28_what_a_child_declares_counts_in_every_parent() -> None:
    """C28, C29: refused by the nearest budget that has too few left, whosever it is; another tenant's is not asked."""
    world = Tenancy()
    world.budget(ROOT, l40s=3)
    world.budget(B, l40s=9)
    world.scene.show(VmView("vm", "u", "", B, gpus=TWO))

    said = world.scene.send(write(VmView("vm2", "u2", "", B, gpus=TWO)))

    assert (declared(world.scene, B), declared(world.scene, A), declared(world.scene, ROOT)) == (2, 2, 2)
    assert isinstance(said[0], d.Refused)
    told = f"{BUDGET_CLASS_PREFIX}l40s is limited to 3, 2 are declared, 2 more are asked"
    assert said[0].message.startswith(f"budget of {ROOT}: {told}")
    assert reason(world.scene.send(write(VmView("vm2", "u2", "", "other", gpus=TWO)))) is None


@pytest.mark.parametrize("gpus", ["", "not JSON", "[]", '[{"className":"l40s","count":65}]', '[{"claimName":"c"}]'])
def test_what_names_no_class_declares_nothing(gpus: str) -> None:
    """N2: entries that can't be read, or that name claims alone, ask for nothing of a budget."""
    world = Tenancy()
    world.budget(A, l40s=0)

    assert reason(world.scene.send(write(VmView("vm", "u", "", A, gpus=gpus)))) is None
    world.scene.show(VmView("vm", "u", "", A, gpus=gpus))
    assert not world.scene.book.declared.used


@pytest.mark.parametrize("replicas", [0, -1, -(2**31)])
def test_no_replicas_declare_nothing(replicas: int) -> None:
    """B2: a pool scaled to zero, or below it by whoever wrote that, counts nothing."""
    world = Tenancy()
    world.scene.show(PoolView("p", "u", "", A, gpus=TWO, replicas=replicas))

    assert not world.scene.book.declared.used


def test_an_owner_is_believed_where_it_is_seen_in_the_same_namespace() -> None:
    """B2: a VM of another namespace's pool, of a VM, or of a pool that is gone counts by itself."""
    world = Tenancy()
    world.scene.show(PoolView("p", "pool", "", A, gpus=TWO, replicas=3))
    world.scene.show(VmView("own", "u1", "", A, gpus=TWO, owner_uid="pool"))
    world.scene.show(VmView("far", "u2", "", B, gpus=TWO, owner_uid="pool"))
    world.scene.show(VmView("of-a-vm", "u3", "", A, gpus=TWO, owner_uid="u1"))
    assert (declared(world.scene, B), declared(world.scene, A)) == (2, 10)

    world.scene.remove(POOLS, f"{A}/p")
    assert declared(world.scene, A) == 6


@pytest.mark.parametrize("owner", [VmView("vm", "u", "", A), ReplicaSetView("s", "u", "", A, gpus=TWO, replicas=0)])
def test_t25_a_vmi_that_somebody_writes_is_asked_about_for_itself(owner: VmView | ReplicaSetView) -> None:
    """T25, B2: whoever writes a VMI writes its owner: one that is seen and declares nothing is no way past."""
    world = Tenancy()
    world.budget(A, l40s=1)
    world.scene.show(owner)

    assert reason(world.scene.send(write(VmiView("vm", "v", "", A, gpus=TWO, owner_uid="u")))) is Refusal.OVER_BUDGET
    one = '[{"className":"l40s","count":1}]'
    assert reason(world.scene.send(write(VmiView("vm", "v", "", A, gpus=one, owner_uid="u")))) is None


@pytest.mark.parametrize("kind", [VmView, ReplicaSetView])
def test_what_names_an_owner_counts_for_no_less(kind: type[VmView] | type[ReplicaSetView]) -> None:
    """B2: a tenant writes owner references: who names a VM or replica set that has its VMI is asked for its own units.

    What an owner makes of its template is declared with it, once, and one that asks for more than that for more.
    """
    world = Tenancy()
    world.budget(A, l40s=5)
    world.scene.show(kind("owner", "owner", "", A, gpus=TWO))
    made = VmiView("owner", "u1", "", A, gpus=TWO, owner_uid="owner")
    assert reason(world.scene.send(write(made))) is None
    world.scene.show(made)
    assert declared(world.scene, A) == 2

    forged = replace(made, name="forged", uid="u2")
    assert reason(world.scene.send(write(forged))) is None
    world.scene.show(forged)
    assert declared(world.scene, A) == 4
    assert reason(world.scene.send(write(replace(made, name="another", uid="u3")))) is Refusal.OVER_BUDGET
    world.scene.remove("virtualmachineinstances", f"{A}/forged")
    assert declared(world.scene, A) == 2


def test_two_that_own_each_other_count_once_each() -> None:
    """B2: a circle of owners is no way to count nothing."""
    world = Tenancy()
    world.scene.show(VmView("one", "u1", "", A, gpus=TWO, owner_uid="u2"))
    world.scene.show(VmView("two", "u2", "", A, gpus=TWO, owner_uid="u1"))

    assert declared(world.scene, A) == 4


def test_c61_placing_waits_for_neither_pools_nor_replica_sets() -> None:
    """C61: not served, or listed anew, they hold nobody up; once they are listed they count."""
    world = Tenancy()
    for kind in (POOLS, SETS):
        world.scene.open(kind)
        world.scene.send(e.NotServed(kind, world.scene.sessions[kind]))
    world.start(A, "vm", l40s=1)

    assert places(world.order(A, "c")) == [f"{A}/c"]
    world.scene.newer(ReplicaSetView("s", "u", "", A, gpus=TWO, replicas=2))
    world.scene.relist(SETS)
    assert declared(world.scene, A) == 6


def test_t15_what_stands_is_counted_before_what_is_asked() -> None:
    """T15: the object as the API server holds it is evidence: no watch has shown it yet, and only the rise is asked."""
    world = Tenancy()
    world.budget(A, l40s=3)
    before = PoolView("p", "u", "50", A, gpus=TWO, replicas=1)

    refused = world.scene.send(write(PoolView("p", "u", "50", A, gpus=TWO, replicas=2), before))

    assert isinstance(refused[0], d.Refused)
    assert "2 are declared, 2 more are asked" in refused[0].message
    assert declared(world.scene, A) == 2
    assert reason(world.scene.send(write(PoolView("p", "u", "50", A, gpus=TWO, replicas=0), before))) is None


def test_b2_a_lowered_budget_takes_nothing_from_what_becomes_less() -> None:
    """B2: beyond its budget a template may change to another class as far as that one and the sum have room."""
    world = Tenancy()
    view = VmView("vm", "u", "9", A, gpus='[{"className":"l40s","count":4}]')
    world.scene.show(view)
    world.budget(A, l40s=1, h100=1, total=1)

    def change(gpus: str) -> Refusal | None:
        return reason(world.scene.send(write(VmView("vm", "u", "9", A, gpus=gpus))))

    assert change('[{"className":"l40s","count":3}]') is None
    assert change('[{"className":"h100","count":1}]') is None
    assert change('[{"className":"h100","count":2}]') is Refusal.OVER_BUDGET


def test_t6_a_view_of_another_kind_is_malformed() -> None:
    """T6: a message whose view is not of its kind is rejected, and changes nothing."""
    world = Tenancy()
    wrong = e.WriteRequest("w", POOLS, A, "vm", "x", VmView("vm", "u", "1", A, gpus=TWO))
    strange = e.WriteRequest("w", "pods", A, "vm", "x", VmView("vm", "u", "1", A, gpus=TWO))

    for request in (wrong, strange):
        (said,) = world.scene.send(request)
        assert isinstance(said, d.Rejected)


def test_o1_orders_are_refused_while_nobody_knows_what_is_free() -> None:
    """O1, T11: a kind that is listed anew, or a cluster that is taken over first, is waited for; not by writes."""
    world = Tenancy()
    view = world.scene.objects["gpuclasses"]["l40s"]
    assert isinstance(view, ClassView)
    assert reason(world.scene.send(order(1, view))) is None

    world.scene.open("nodes")
    assert reason(world.scene.send(order(1, view))) is Refusal.NOT_READY
    assert reason(world.scene.send(write(VmView("vm", "u", "", A, gpus=TWO)))) is None
    world.scene.adopt()
    assert reason(world.scene.send(order(1, view))) is Refusal.NOT_READY


def test_o1_a_class_is_what_was_read_of_it() -> None:
    """O1, T15: one that nobody has seen yet is read for the order and counted by; one that is not there is named."""
    world = Tenancy(units=3)
    fresh = ClassView("new", "u", "99", resource="nvidia.com/AD102GL_L40S")

    assert reason(world.scene.send(order(3, fresh, name="new"))) is None
    assert reason(world.scene.send(order(4, fresh, name="new"))) is Refusal.NO_UNITS
    assert reason(world.scene.send(order(1, name="ghost"))) is Refusal.CLASS_NOT_FOUND


def test_c28_children_at_writing() -> None:
    """C28: a child above its parent is held by the parent, a key that nobody names is no limit, zero is one."""
    world = Tenancy()
    child = {name: f"{A}-{name}" for name in "bcd"}
    world.budget(A, l40s=4)
    world.budget(child["c"], l40s=9, h100=2)
    world.budget(child["d"], total=0)

    def may(namespace: str, gpu_class: str, count: int) -> bool:
        name = f"vm{world.scene.rv}"
        gpus = f'[{{"className":"{gpu_class}","count":{count}}}]'
        passed = reason(world.scene.send(write(VmView(name, f"u-{name}", "", namespace, gpus=gpus)))) is None
        if passed:
            world.scene.show(VmView(name, f"u-{name}", "", namespace, gpus=gpus))
        return passed

    assert may(child["b"], "l40s", 3)
    assert not may(child["c"], "l40s", 2)
    assert may(child["c"], "l40s", 1)
    assert not may(A, "l40s", 1)
    assert may(A, "h100", 5)
    assert not may(child["c"], "h100", 3)
    assert not may(child["d"], "h100", 1)


def test_c29_the_tree_stands_in_names_at_writing() -> None:
    """C29: `tenant-ab` is not below `tenant-a`, `tenant-a-b-c` is, and what is no tenant's is bound by none."""
    world = Tenancy()
    world.budget(ROOT, total=3)
    world.budget(A, total=2)
    one = '[{"className":"l40s","count":1}]'
    world.scene.show(VmView("v1", "u1", "", "tenant-ab", gpus=one))
    world.scene.show(VmView("v2", "u2", "", "tenant-a-b-c", gpus=TWO))

    assert (declared(world.scene, A), declared(world.scene, ROOT)) == (2, 3)
    for namespace, refused in ((A, True), ("tenant-ab", True), ("default", False), ("tenant", False)):
        said = world.scene.send(write(VmView("v3", "u3", "", namespace, gpus=one)))
        assert (reason(said) is Refusal.OVER_BUDGET) is refused, namespace


def test_c43_a_migration_declares_nothing() -> None:
    """C43: while source and target run, the VM is declared once, and a second one has no room."""
    world = Tenancy()
    world.budget(A, total=1)
    world.scene.show(VmView("vm", "vm-uid", "", A, gpus='[{"className":"l40s","count":1}]'))
    world.start(A, "vm", l40s=1)
    world.run(A, "vm")
    vmi = world.scene.objects["virtualmachineinstances"][f"{A}/vm"]
    assert isinstance(vmi, VmiView)
    world.scene.show(replace(vmi, owner_uid="vm-uid"))
    world.scene.admit(vmi, "target")
    target = launcher(vmi, "target", "target", {L40S: 1, "cpu": 1000})
    world.scene.show(replace(target, gates=(), node="n1", migration=True, phase="Running"))

    assert (declared(world.scene, A), world.held(A, "l40s")) == (1, 1)
    other = VmView("other", "u2", "", A, gpus='[{"className":"l40s","count":1}]')
    assert reason(world.scene.send(write(other))) is Refusal.OVER_BUDGET


def test_c50_what_went_is_declared_no_more() -> None:
    """C50: a budget below its use refuses what is new, and takes it once a child's namespace went."""
    world = Tenancy()
    world.budget(A, total=4)
    world.order(B, "s", count=2)
    world.scene.show(VmView("vm", "u", "", B, gpus=TWO))
    world.budget(A, total=1)
    view = world.scene.objects["gpuclasses"]["l40s"]
    assert isinstance(view, ClassView)

    assert reason(world.scene.send(order(1, view))) is Refusal.OVER_BUDGET
    assert world.holding(B, "s").node == "n1"
    world.scene.remove("virtualmachines", f"{B}/vm")
    claim = world.scene.objects["gpuclaims"][f"{B}/s"]
    world.scene.show(replace(claim, deleting=True))
    assert not world.scene.book.declared.used
    assert reason(world.scene.send(order(1, view))) is None
