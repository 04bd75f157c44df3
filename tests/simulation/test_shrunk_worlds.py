"""Worlds that once broke a law, as short as they became, and what they showed, said of the part it was in."""

import pytest

from schemas import events as e
from schemas.reasons import Order
from tests.binder.scene import Scene
from tests.simulation.acts.act import Step
from tests.simulation.acts.budgets import SetBudget
from tests.simulation.acts.holders import GiveBack, OrderClaim, Say
from tests.simulation.acts.licences import Entitle, NeedLicence, WriteLicence
from tests.simulation.acts.machines import Cordon, NodeDown, RemoveNode
from tests.simulation.acts.tenants import CreateVm, DeleteVm, StopVm
from tests.simulation.acts.troubles import ApiRefuses, Backup, Crash, LastWords, LogLost, Restore, Slow
from tests.simulation.cluster import Setting
from tests.simulation.life import lived
from tests.simulation.takeover import FEWER, WHOLE, Loss


def test_last_words_of_two_ingests_block_nothing() -> None:
    """A session that a dead ingest opened, landing late, does not replace its successor's: placing goes on (T11)."""
    steps = [
        Step(LastWords(name="ingest-2", late_s=6.0), 0.0),
        Step(Slow(way="watch", most_s=0.3, seconds=6.0), 0.0),
        Step(LastWords(name="ingest-1", late_s=6.0), 0.0),
        Step(CreateVm(vm=3, ask=2), 8.22),
        Step(CreateVm(vm=6, ask=2, zone=1, disk=3), 0.0),
        Step(Cordon(node=0), 2.7),
    ]

    assert lived(19, Setting(cards=(2, 3, 1), slices=(0, 2, 0), ingests=2, boot_s=2.0), steps).broken is None


def test_a_refused_status_of_a_set_that_waits_is_written_later() -> None:
    """A conflict over the status of claims that have no node leaves them without a word for a while only (T23)."""
    steps = [
        Step(CreateVm(vm=0, ask=1, zone=2), 0.2),
        Step(DeleteVm(vm=0), 7.0),
        Step(ApiRefuses(code=409, share=0.2, seconds=5.0), 2.0),
        Step(CreateVm(vm=3, ask=7, zone=1, disk=1), 1.0),
    ]

    assert lived(9, Setting(cards=(1, 1), slices=(4, 4), snapshot_every=5), steps).broken is None


def test_d7_the_next_temporary_pod_does_not_follow_to_a_node_that_did_not_take_the_one_before() -> None:
    """A booking is kept for the launcher that comes after a temporary pod, unless its node is skipped by then (D7)."""
    steps = [Step(CreateVm(vm=4, zone=1, disk=3), 1.0), Step(NodeDown(node=0, silent=False), 0.0)]
    setting = Setting(
        cards=(1, 2), slices=(2, 2), projectors=2, boot_s=2.0, schedule_s=4.0, snapshot_every=5, scarred=0
    )

    assert lived(4, setting, steps).broken is None


def test_t12_a_node_that_goes_and_a_server_that_comes_back_with_it() -> None:
    """What new writes hide of a restore in one kind is shown by another: no pod of before is overlooked (T12)."""
    steps = [
        Step(CreateVm(vm=1, ask=1, disk=1), 4.0),
        Step(Backup(), 0.0),
        Step(RemoveNode(node=0), 0.0),
        Step(Restore(), 0.0),
        Step(DeleteVm(vm=1), 1.0),
    ]

    assert lived(61, Setting(cards=(2, 1), slices=(0, 0), lag_s=1.5, schedule_s=4.0), steps).broken is None


def test_t4_snapshots_that_outlast_their_log_keep_nobody_from_the_next_one() -> None:
    """NATS loses both logs and not the snapshots: whoever follows the new log does not go on from an old one (T4)."""
    steps = [Step(CreateVm(vm=0), 8.0), Step(LogLost(Loss(snapshots=True)), 10.0), Step(CreateVm(vm=1), 1.0)]

    assert lived(4, Setting((2, 2), (0, 0), snapshot_every=5), steps).broken is None


@pytest.mark.parametrize("kept", [500, WHOLE])
def test_t4_decisions_that_outlast_their_inputs_are_taken_over_and_read(kept: int) -> None:
    """EVENTS ends before what DECISIONS covers: adopt begins the next generation, and whoever follows reads on (T4)."""
    loss = Loss(kept, events=FEWER)
    steps = [Step(CreateVm(vm=0), 8.0), Step(LogLost(loss), 10.0), Step(CreateVm(vm=1), 4.0), Step(Crash("binder-1"))]

    assert lived(4, Setting((2, 2), (0, 0)), steps).broken is None


def test_t4_a_command_in_the_place_of_a_lost_input_is_no_broken_log() -> None:
    """Somebody publishes behind inputs that are lost before the next generation begins: frames of the old are over."""
    loss = Loss(800, snapshots=True, events=FEWER)
    steps = [Step(CreateVm(vm=0), 4.0), Step(LogLost(loss), 0.0), Step(Say(Order.RESUME), 10.0)]

    assert lived(70, Setting((2, 2), (0, 0)), steps).broken is None


def test_t4_a_takeover_forgets_no_licence() -> None:
    """Copies and conditions that fall due while a cluster is taken over are decided on once it is (T4, L1, L3)."""
    missing = [Step(LogLost(), 0.0), Step(NeedLicence(), 10.0)]
    entitled = [Step(WriteLicence()), Step(NeedLicence()), Step(LogLost(), 0.0), Step(Entitle(0), 10.0)]

    for steps in (missing, entitled):
        assert lived(2, Setting((1,), (2,)), steps).broken is None


def test_t12_a_vmi_that_a_backup_brings_back_is_served() -> None:
    """Its launcher behind our gate is the admitted one still, although both were seen to go (T25)."""
    stopped_and_back = [Step(Backup(), 0.0), Step(StopVm(vm=2), 0.0), Step(Restore(), 0.0)]
    steps = [Step(NodeDown(node=0, silent=False), 0.0), Step(CreateVm(vm=2, ask=6, disk=3), 1.0), *stopped_and_back]

    assert lived(125, Setting((1,), (2,), webhooks=2, snapshot_every=40), steps).broken is None


def test_t12_what_nobody_watches_is_written_again_by_a_server_back_from_a_backup() -> None:
    """T12: conditions and counts of classes and budgets stand again, whether anybody heard of the backup or not."""
    unheard = [Step(NeedLicence(), 0.0), Step(Backup(), 0.5), Step(Restore(), 0.0)]
    condition = [Step(NeedLicence(), 0.0), Step(Backup(), 30.0), Step(CreateVm(vm=0, ask=1), 60.0), Step(Restore())]
    use = [Step(CreateVm(vm=0, ask=1), 20.0), Step(SetBudget(1, ((0, 3),)), 0.0), Step(Backup(), 30.0), Step(Restore())]

    for steps in (unheard, condition, use):
        assert lived(14, Setting(slices=(4, 0), binders=1, lag_s=1.5, snapshot_every=40), steps).broken is None


def test_t12_a_server_restored_with_bumped_versions_is_believed_by_what_it_shows() -> None:
    """T12: no version goes back, objects do: claims, pins and finalizers of since then are written once more."""
    steps = [Step(CreateVm(vm=0, ask=1), 0.1), Step(Backup(), 20.0), Step(Restore(bump=1_000_000), 30.0)]
    held = [Step(OrderClaim(claim=1), 20.0), Step(Backup(), 0.0), Step(GiveBack(claim=1), 20.0)]

    for acts in (steps, [*held, Step(Restore(bump=1_000_000), 30.0)]):
        assert lived(14, Setting(slices=(4, 0), binders=1, schedule_s=4.0, snapshot_every=40), acts).broken is None


def test_l3_what_a_lost_log_said_of_a_licence_is_taken_back() -> None:
    """L3, T4: the next log knows nothing of it, and the class says no more that its licence is missing."""
    steps = [Step(NeedLicence(), 10.0), Step(LogLost(Loss()), 0.0), Step(NeedLicence(needs=False), 1.0)]

    assert lived(14, Setting(slices=(4, 0), binders=1, snapshot_every=40), steps).broken is None


def test_t11_a_late_opening_of_an_older_process_opens_nothing() -> None:
    """Of two processes the one that announced itself later has the say, whatever order their openings land in."""
    scene = Scene(synced=False)
    scene.send(e.SessionOpened("nodes", process=7))
    current = scene.book.state.sessions["nodes"]

    scene.send(e.SessionOpened("nodes", process=3))
    assert scene.book.state.sessions["nodes"] == current

    scene.send(e.SessionOpened("nodes", process=7))
    assert scene.book.state.sessions["nodes"].number == 3
    scene.send(e.SessionOpened("nodes", process=8))
    assert scene.book.state.sessions["nodes"].number == 4
