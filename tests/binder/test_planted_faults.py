"""Faults planted in the heart, one at a time: a story or a random history finds each.

A fault that nothing finds would mean that a rule stands in the code alone.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.binder import faults_of_kubevirt as kubevirt
from tests.binder import faults_of_the_budgets as limits
from tests.binder import faults_of_the_fold as fold
from tests.binder import faults_of_the_held as held
from tests.binder import faults_of_the_nodes as nodes
from tests.binder import faults_of_the_pass as serve
from tests.binder import faults_of_the_starts as begun
from tests.binder.histories import lived, seeded
from tests.binder.oracle import untold
from tests.binder.test_budget_use import test_c34_each_unit_is_counted_once
from tests.binder.test_budgets import test_unreadable_quotas_are_the_last_known_and_never_unlimited
from tests.stories.test_stories import HERE, retold

Plant = Callable[[pytest.MonkeyPatch], None]
SEEDS, LENGTH = 60, 250


def _found_by_story(path: Path) -> bool:
    text = path.read_text("utf-8")
    try:
        return retold(text) != text
    except Exception:  # noqa: BLE001 - whatever a planted fault breaks, it was found
        return True


def _found_by_history(seed: int) -> bool:
    try:
        return bool(untold(lived(seeded(seed, LENGTH)).scene.book.state))
    except Exception:  # noqa: BLE001 - whatever a planted fault breaks, it was found
        return True


FAULTS: tuple[tuple[Plant, str, bool], ...] = (
    (fold.observation_overrides, "observed-status", False),
    (serve.union_of_tolerations, "every-class-tolerates", True),
    (fold.cores_of_others_ignored, "other-resources", False),
    (serve.release_on_phase, "release", True),
    (fold.no_epoch_fence, "epoch-fence", False),
    (fold.placing_while_listing, "not-synced", False),
    (fold.no_version_check, "older-version", True),
    (fold.old_sessions_heard, "old-session", True),
    (fold.list_removes_nothing, "deletion-missed", True),
    (fold.dirty_forgotten_at_the_bound, "bound", False),
    (fold.no_bound, "bound", False),
    (serve.copied_stamps_believed, "forged-stamp", False),
    (serve.anybody_is_listed, "not-listed", True),
    (serve.any_stamp_is_admitted, "forged-stamp", True),
    (serve.foreign_gates_ignored, "foreign-gate", True),
    (serve.mismatch_ignored, "mismatch", True),
    (fold.no_back_off, "refused-pin", False),
    (fold.old_outcomes_heard, "refused-pin", False),
    (serve.reasons_repeated, "noise", True),
    (serve.reasons_stale, "reasons-change", False),
    (serve.nearest_is_last, "nearest-reason", True),
    (fold.time_unclamped, "logical-time", False),
    (fold.first_wait_lost, "order", False),
    (serve.priority_ignored, "order", False),
    (serve.emptiest_first, "fullest-node", False),
    (fold.booking_counted_twice, "temporary-pod", True),
    (fold.booking_not_counted, "burst", True),
    (fold.temporary_pod_not_shared, "temporary-pod", False),
    (fold.deadline_kept, "", True),
    (serve.volumes_of_one_node, "volumes", False),
    (serve.missing_volumes_ignored, "volumes", True),
    (fold.volumes_of_the_pod_forgotten, "volumes-named-by-the-pod", False),
    (serve.class_of_now, "class-renamed", False),
    (serve.strays_left, "undecided-claims", False),
    (fold.stale_evidence_believed, "evidence", False),
    (serve.waiting_for_rooms_deaf, "waits-without-refusal", True),
    (serve.set_in_parts, "whole-set", True),
    (serve.skips_ignored, "node-refuses-alone", True),
    (fold.refusals_forgotten, "node-refuses", False),
    (fold.every_failure_is_a_refusal, "refusal-reasons", False),
    (fold.flaps_end_every_skip, "plugin-flaps", False),
    (fold.stuck_for_ever, "unschedulable", False),
    (serve.kept_node_given_away, "waited-long", False),
    (serve.kept_for_ever, "waited-long-and-left", False),
    (serve.kept_in_vain, "waited-long-in-vain", True),
    (serve.nothing_kept_next, "waited-long-and-left", False),
    (serve.first_choice_kept, "waited-long-in-vain", False),
    (held.attached_counted_twice, "held-claims", True),
    (held.released_on_stop, "held-claims", False),
    (held.claims_of_others_taken, "claims-of-others", True),
    (held.youngest_has_it, "claims-of-others", True),
    (held.groups_stay_split, "claims-together", True),
    (held.each_by_itself, "claims-together", True),
    (held.orders_before_lost, "claims-in-order", False),
    (held.orders_before_launchers, "claims-in-order", False),
    (held.own_units_are_anothers, "gathered-with-claims", True),
    (held.homes_left, "gathered-with-claims", False),
    (held.freed_under_a_launcher, "claims-freed", False),
    (held.status_places, "claims-status", True),
    (held.resource_of_now, "claims-by-resource", False),
    (held.backup_ignored, "claims-said-again", False),
    (held.claims_not_bounded, "claims-bound", False),
    (held.waiting_not_looked_at, "claims-leave-room", False),
    (held.claims_kept_attached, "held-claims", True),
    (held.namers_not_told, "claims-of-others", True),
    (held.confirmed_by_anything, "claims-status", False),
    (serve.class_gone_before_its_claims, "class-deleted", True),
    (serve.finalizers_wait_for_kubevirt, "class-deleted-without-kubevirt", False),
    (serve.classes_guarded_again_and_again, "class-deleted", True),
    (limits.budgets_ignored, "budget", True),
    (limits.parents_ignored, "", True),
    (limits.zero_is_unset, "budget-lowered", True),
    (limits.lost_count_nothing, "", True),
    (limits.asked_again, "budget-of-claims", True),
    (limits.budgets_wake_nobody, "budget", True),
    (limits.use_is_told, "noise", True),
    (limits.freed_units_stay, "budget", True),
    (limits.releases_lose, "", True),
    (limits.writes_unchecked, "declared", False),
    (limits.whole_writes_asked, "declared", False),
    (limits.owners_unknown, "declared-replicas", True),
    (limits.templates_alone, "declared-replicas", True),
    (limits.gone_stay_declared, "declared", True),
)


EVERY = (*FAULTS, *nodes.FAULTS, *kubevirt.FAULTS, *begun.FAULTS)


@pytest.mark.parametrize(("plant", "story", "random"), EVERY, ids=[plant.__name__ for plant, _, _ in EVERY])
def test_a_planted_fault_is_found(plant: Plant, story: str, random: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault changes its story; one without a story shows in a random history."""
    plant(monkeypatch)

    if story:
        assert _found_by_story(HERE / f"{story}.story"), f"{story} tells the same with the fault"
    else:
        assert random
        assert any(map(_found_by_history, range(SEEDS))), "no random history finds it"


TOLD_BY_TESTS: tuple[tuple[Plant, Callable[[], None]], ...] = (
    (limits.own_pods_are_raw, test_c34_each_unit_is_counted_once),
    (limits.unreadable_is_unlimited, test_unreadable_quotas_are_the_last_known_and_never_unlimited),
)
"""Faults that lead to no decision: a test of what is counted finds each."""


@pytest.mark.parametrize(("plant", "test"), TOLD_BY_TESTS, ids=[plant.__name__ for plant, _ in TOLD_BY_TESTS])
def test_a_fault_in_what_is_counted_is_found(
    plant: Plant, test: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault fails the test of what it counts wrongly, which holds without it."""
    test()
    plant(monkeypatch)

    with pytest.raises(AssertionError):
        test()


RANDOM = [plant for plant, story, random in EVERY if story and random]


@pytest.mark.soak
@pytest.mark.parametrize("plant", RANDOM, ids=[plant.__name__ for plant in RANDOM])
def test_a_random_history_finds_it(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without being told what to look for, one of a few random histories finds the fault."""
    plant(monkeypatch)

    assert any(map(_found_by_history, range(SEEDS))), "no random history finds it"
