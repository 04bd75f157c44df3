"""Who leaves what made it, on paper: asked for what that makes more (B2)."""

import pytest
from msgspec.structs import replace

from schemas.objects import PoolView, ReplicaSetView, VmiView, VmView
from schemas.reasons import Refusal
from tests.binder.tenancy import Tenancy
from tests.binder.test_declaring import TWO, A, declared, reason, write


def test_who_leaves_its_owner_is_asked_for_what_that_makes_more() -> None:
    """B2: a VM taken off its pool counts by itself, and the pool goes on to declare as many: asked as a new one is."""
    world = Tenancy()
    world.budget(A, l40s=7)
    pool = PoolView("p", "pool", "", A, gpus=TWO, replicas=3)
    made = [VmView(f"vm{n}", f"u{n}", "", A, gpus=TWO, owner_uid="pool") for n in range(4)]
    world.scene.show(pool)
    for view in made[:3]:
        world.scene.show(view)
    assert declared(world.scene, A) == 6

    assert reason(world.scene.send(write(replace(made[0], owner_uid=""), made[0]))) is Refusal.OVER_BUDGET
    assert reason(world.scene.send(write(replace(made[0], owner_uid="gone"), made[0]))) is Refusal.OVER_BUDGET
    # One that is more than its pool asks for takes with it what it added there.
    world.budget(A, l40s=8)
    world.scene.show(made[3])
    assert declared(world.scene, A) == 8
    assert reason(world.scene.send(write(replace(made[3], owner_uid=""), made[3]))) is None
    world.scene.show(replace(made[3], owner_uid=""))
    assert declared(world.scene, A) == 8
    assert reason(world.scene.send(write(made[3], replace(made[3], owner_uid="")))) is None


@pytest.mark.parametrize("owner", [VmView("vm", "o", "", A, gpus=TWO), ReplicaSetView("s", "o", "", A, gpus=TWO)])
def test_a_vmi_that_leaves_what_started_it_is_asked_for_its_entries(owner: VmView | ReplicaSetView) -> None:
    """B2: its VM or replica set stays and starts another; declared would be both."""
    world = Tenancy()
    world.budget(A, l40s=3)
    vmi = VmiView("vm", "v", "", A, gpus=TWO, owner_uid="o")
    world.scene.show(owner)
    world.scene.show(vmi)
    assert declared(world.scene, A) == 2

    assert reason(world.scene.send(write(replace(vmi, owner_uid=""), vmi))) is Refusal.OVER_BUDGET
    world.budget(A, l40s=4)
    assert reason(world.scene.send(write(replace(vmi, owner_uid=""), vmi))) is None
