"""Faults in the answers to writes and orders, each found by a story made for it."""

import pytest

from schemas.names import POLICY_REFUSE
from tests.simulation import planted_writes as planted
from tests.simulation.acts.act import Step
from tests.simulation.acts.budgets import SetBudget
from tests.simulation.acts.holders import OrderClaim
from tests.simulation.acts.tenants import NOTHING, CreateVm, DeleteVm
from tests.simulation.acts.troubles import JournalAway
from tests.simulation.acts.writers import CreateSet, Rescale, TryOut
from tests.simulation.cluster import Setting
from tests.simulation.laws.desk import Desk
from tests.simulation.laws.endings import Served
from tests.simulation.laws.law import Law
from tests.simulation.laws.writes import Answered, OnPaper
from tests.simulation.planted import Plant
from tests.simulation.test_planted_stories import CHILD, FULL, ROOM, TOTAL, shows, steps_of

NONE = SetBudget(CHILD, ((TOTAL, 0),))
REFUSING = Setting((4,), (4,), binders=1, policy=POLICY_REFUSE)
POOL = 2
"""A pool of the child's."""
FAULTS: tuple[tuple[Plant, Setting, list[Step], type[Law]], ...] = (
    (
        planted.what_is_held_is_declared,
        ROOM,
        steps_of(FULL, CreateVm(1, strategy="Halted"), 3.0, CreateVm(3, strategy="Halted")),
        Answered,
    ),
    (planted.refusals_count_twice, ROOM, steps_of(FULL, CreateVm(1), 3.0, CreateVm(3)), Answered),
    (
        planted.orders_need_no_room,
        Setting((1,), (0,), binders=1),
        steps_of(OrderClaim(1), 5.0, OrderClaim(3)),
        Answered,
    ),
    (planted.scales_change_nothing, ROOM, steps_of(FULL, CreateSet(POOL), 3.0, Rescale(POOL, 3)), Desk),
    (planted.orders_fail_open, ROOM, steps_of(JournalAway(15.0, "webhooks"), OrderClaim(1), 15.0), Desk),
    (planted.what_pools_make_counts_again, ROOM, steps_of(CreateSet(POOL), 5.0), OnPaper),
    (planted.what_is_gone_stays_declared, ROOM, steps_of(CreateVm(1), 5.0, DeleteVm(1)), OnPaper),
    (planted.dry_runs_are_logged, ROOM, steps_of(TryOut(1)), Desk),
    (
        planted.refusals_stand_for_a_minute,
        ROOM,
        steps_of(NONE, OrderClaim(1), 5.0, OrderClaim(1)),
        Desk,
    ),
    (planted.answers_are_not_heard, ROOM, steps_of(OrderClaim(1), 12.0), Desk),
    (
        planted.budgets_refuse_every_start,
        REFUSING,
        steps_of(SetBudget(CHILD, ((TOTAL, 2),)), CreateVm(1)),
        Served,
    ),
    (
        planted.held_claims_refuse_every_start,
        REFUSING,
        steps_of(OrderClaim(1), 3.0, CreateVm(1, NOTHING, claims=(1,))),
        Served,
    ),
)
"""Each fault, a world where it shows, and the law that it breaks there."""


@pytest.mark.parametrize(
    ("plant", "setting", "steps", "law"), FAULTS, ids=[plant.__name__ for plant, _, _, _ in FAULTS]
)
def test_a_story_finds_its_fault(
    plant: Plant, setting: Setting, steps: list[Step], law: type[Law], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world keeps every law as the program is, and breaks the law that is meant once the fault is planted."""
    shows(plant, setting, steps, law, monkeypatch)
