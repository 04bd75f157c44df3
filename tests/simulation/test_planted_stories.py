"""Faults in budgets, classes, takeovers and licences, each found by a story made for it."""

import pytest

from schemas.admission import WRITE_PATH
from tests.binder import faults_of_the_budgets as budgets
from tests.simulation import planted_stories as planted
from tests.simulation.acts.act import Act, Step
from tests.simulation.acts.budgets import UNREADABLE, Release, SetBudget
from tests.simulation.acts.holders import EditClass, OrderClaim
from tests.simulation.acts.licences import Entitle, NeedLicence, Tamper, WriteLicence
from tests.simulation.acts.machines import RemoveNode
from tests.simulation.acts.tenants import NOTHING, CreateClass, CreateVm, DeleteClaim, DeleteVm
from tests.simulation.acts.troubles import ApiAway, KubeVirtAway, LogLost
from tests.simulation.acts.writers import DeskTrouble
from tests.simulation.cluster import Setting
from tests.simulation.labels import OTHER_NAME, TWIN
from tests.simulation.laws.budgets import Budgeted, BudgetShown, Woken
from tests.simulation.laws.classes import Elder, Named
from tests.simulation.laws.endings import Served
from tests.simulation.laws.law import Law
from tests.simulation.laws.licences import Licensed
from tests.simulation.laws.seen import Seen
from tests.simulation.laws.takeovers import TakenOver
from tests.simulation.life import lived
from tests.simulation.planted import Plant

ROOM = Setting((4,), (4,), binders=1)
TOTAL, RAW = 0, 3
"""Numbers of budget keys."""
ROOT, PARENT, CHILD = 0, 1, 2
"""Levels of the tree; VMs and claims of odd numbers are the child's."""


def steps_of(*acts: Act | float) -> list[Step]:
    """Return acts with a second after each, or as many as the number behind it."""
    steps: list[Step] = []
    for act in acts:
        if isinstance(act, Act):
            steps.append(Step(act))
        else:
            steps[-1] = Step(steps[-1].act, act)
    return steps


UNASKED = DeskTrouble("away", 1.0, 9000.0, WRITE_PATH)
"""Whoever writes a VM is not asked about it: what binds has to see to the budget."""

FULL = SetBudget(CHILD, ((TOTAL, 1),))
LICENCE = (WriteLicence(), NeedLicence(), Entitle(0), 4.0)
FAULTS: tuple[tuple[Plant, Setting, list[Step], type[Law]], ...] = (
    (budgets.budgets_ignored, ROOM, steps_of(UNASKED, FULL, CreateVm(1), CreateVm(3)), Budgeted),
    (budgets.parents_ignored, ROOM, steps_of(SetBudget(PARENT, ((TOTAL, 1),)), CreateVm(1), CreateVm(3)), Budgeted),
    (budgets.zero_is_unset, ROOM, steps_of(SetBudget(ROOT, ((TOTAL, 0),)), CreateVm(1)), Budgeted),
    (
        budgets.lost_count_nothing,
        Setting((1, 0), (0, 2), binders=1),
        steps_of(UNASKED, FULL, OrderClaim(1), 3.0, RemoveNode(0), 330.0, CreateVm(3, 4)),
        Budgeted,
    ),
    (budgets.asked_again, ROOM, steps_of(FULL, OrderClaim(1), CreateVm(1, NOTHING, claims=(1,))), Budgeted),
    (budgets.own_pods_are_raw, ROOM, steps_of(SetBudget(CHILD, ((RAW, 5),)), CreateVm(1)), BudgetShown),
    (
        budgets.budgets_wake_nobody,
        ROOM,
        steps_of(UNASKED, SetBudget(CHILD, ((TOTAL, 0),)), CreateVm(1), 3.0, FULL),
        Woken,
    ),
    (
        budgets.freed_units_stay,
        ROOM,
        steps_of(UNASKED, FULL, CreateVm(1), 5.0, DeleteVm(1), 15.0, CreateVm(3)),
        Budgeted,
    ),
    (
        budgets.releases_lose,
        ROOM,
        steps_of(ApiAway(30.0, "projector"), Release(1, ((TOTAL, 0),)), CreateVm(1)),
        Budgeted,
    ),
    (
        budgets.unreadable_is_unlimited,
        ROOM,
        steps_of(
            UNASKED,
            ApiAway(30.0, "projector"),
            Release(1, ((TOTAL, 1),)),
            Release(1, ((TOTAL, UNREADABLE),)),
            CreateVm(1),
            CreateVm(3),
        ),
        Budgeted,
    ),
    (
        planted.budget_freed_on_deletion,
        Setting((4,), (4,), binders=1, stop_s=15.0),
        steps_of(UNASKED, FULL, CreateVm(1), 5.0, DeleteVm(1), CreateVm(3)),
        Budgeted,
    ),
    (planted.budget_status_once, ROOM, steps_of(FULL, 3.0, CreateVm(1)), BudgetShown),
    (
        planted.edit_renames_what_is_booked,
        ROOM,
        steps_of(CreateVm(0), 5.0, EditClass("card", OTHER_NAME), DeleteClaim(0)),
        Named,
    ),
    (
        planted.edit_renames_what_is_held,
        Setting((1, 1), (0, 0), binders=1),
        steps_of(OrderClaim(0), 3.0, EditClass("card", OTHER_NAME), RemoveNode(0), 330.0),
        Named,
    ),
    (planted.the_younger_keeps_the_name, ROOM, steps_of(CreateClass(TWIN)), Elder),
    (
        planted.only_what_runs_is_adopted,
        Setting((1,), (0,), binders=1, schedule_s=15.0),
        steps_of(CreateVm(0), LogLost(), CreateVm(2)),
        TakenOver,
    ),
    (planted.statuses_alone_are_adopted, ROOM, steps_of(CreateVm(0), 5.0, LogLost()), TakenOver),
    (
        planted.gated_launchers_are_forgotten,
        Setting((1,), (0,), binders=1),
        steps_of(CreateVm(0), CreateVm(2), LogLost(), DeleteVm(0)),
        Served,
    ),
    (planted.adopted_without_claims_shown, ROOM, steps_of(OrderClaim(0), 3.0, LogLost()), TakenOver),
    (planted.licences_stay_behind, ROOM, steps_of(*LICENCE, Entitle(0, may=False)), Licensed),
    (planted.copies_are_written_once, ROOM, steps_of(*LICENCE, WriteLicence(2)), Licensed),
    (planted.own_secrets_are_overwritten, ROOM, steps_of(Tamper(0, "own"), *LICENCE), Licensed),
    (planted.unserved_is_gone, ROOM, steps_of(CreateVm(0), 5.0, KubeVirtAway(20.0), 10.0), Seen),
    (planted.placed_while_adopting, ROOM, steps_of(OrderClaim(0), CreateVm(2), 3.0, LogLost()), TakenOver),
)
"""Each fault, a world where it shows, and the law that it breaks there."""


def shows(plant: Plant, setting: Setting, steps: list[Step], law: type[Law], patch: pytest.MonkeyPatch) -> None:
    """Have a story lived without a fault and with it: only then it breaks a law, the one that is meant."""
    assert lived(0, setting, steps).broken is None

    plant(patch)

    broken = lived(0, setting, steps, laws=[law]).broken
    assert broken is not None
    assert broken.law == law.__name__


@pytest.mark.parametrize(
    ("plant", "setting", "steps", "law"), FAULTS, ids=[plant.__name__ for plant, _, _, _ in FAULTS]
)
def test_a_story_finds_its_fault(
    plant: Plant, setting: Setting, steps: list[Step], law: type[Law], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world keeps every law as the program is, and breaks the law that is meant once the fault is planted."""
    shows(plant, setting, steps, law, monkeypatch)
