"""Faults planted in the program, one at a time: each is found in one of a few worlds."""

import pytest

from tests.binder import faults_of_the_fold as fold
from tests.binder import faults_of_the_held as held
from tests.binder import faults_of_the_nodes as nodes
from tests.binder import faults_of_the_pass as serve
from tests.simulation import planted
from tests.simulation.acts.act import Step
from tests.simulation.acts.machines import NodeDown
from tests.simulation.acts.tenants import CreateVm
from tests.simulation.cluster import Setting
from tests.simulation.life import STEPS, lived
from tests.simulation.planted import Plant
from tests.simulation.script import script_of, setting_of

FAULTS: tuple[tuple[Plant, str, int], ...] = (
    (fold.booking_not_counted, "tenants", 10),
    (serve.release_on_phase, "tenants", 10),
    (serve.set_in_parts, "tenants", 20),
    (serve.reasons_repeated, "tenants", 10),
    (fold.no_back_off, "tenants api", 60),
    (planted.unit_freed_on_deletion, "tenants", 20),
    (planted.observation_overrides, "tenants", 10),
    (planted.late_events_believed, "tenants crashes", 40),
    (planted.no_fence, "tenants crashes journal", 40),
    (planted.decided_again, "tenants crashes", 20),
    (planted.snapshot_of_another_place, "tenants", 20),
    (planted.gone_is_lost, "tenants", 10),
    (planted.let_go_without_pin, "tenants", 5),
    (planted.told_over_and_over, "tenants crashes", 40),
    (planted.left_unwritten, "tenants crashes", 40),
    (held.attached_counted_twice, "holders", 15),
    (held.released_on_stop, "holders", 15),
    (held.claims_of_others_taken, "holders", 5),
    (held.freed_under_a_launcher, "holders", 15),
    (held.groups_stay_split, "holders nodes", 20),
    (planted.waiting_is_charged, "tenants", 10),
    (planted.nobody_owns_a_record, "tenants", 10),
)
"""Each fault, the sorts of act in its worlds, and in how many of them it must show at the latest."""


@pytest.mark.parametrize(("plant", "sorts", "seeds"), FAULTS, ids=[plant.__name__ for plant, _, _ in FAULTS])
def test_a_planted_fault_is_found(plant: Plant, sorts: str, seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law breaks in one of the first worlds: the laws see what they are for."""
    plant(monkeypatch)

    assert any(_is_found(seed, sorts.split()) for seed in range(seeds)), "no world finds it"


def _is_found(seed: int, sorts: list[str]) -> bool:
    return lived(seed, setting_of(seed), script_of(seed, STEPS, sorts)).broken is not None


@pytest.mark.parametrize("plant", [None, nodes.unreachable_is_dead], ids=["as it is", "unreachable is dead"])
def test_what_runs_on_a_silent_node_is_left_alone(plant: Plant | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """C35: a world in which a node never speaks again breaks no law, and shows a program that takes it for dead."""
    if plant is not None:
        plant(monkeypatch)
    steps = [Step(CreateVm(0), 10.0), Step(NodeDown(0), 330.0)]

    broken = lived(0, Setting((1, 1), (0, 0), scarred=0), steps).broken

    assert (broken.law if broken is not None else None) == (None if plant is None else "Kept")
