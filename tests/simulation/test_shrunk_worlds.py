"""Worlds that once broke a law, as short as they became, and what they showed, said of the part it was in."""

from schemas import events as e
from tests.binder.scene import Scene
from tests.simulation.acts.act import Step
from tests.simulation.acts.machines import Cordon
from tests.simulation.acts.tenants import CreateVm
from tests.simulation.acts.troubles import LastWords, Slow
from tests.simulation.cluster import Setting
from tests.simulation.life import lived


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
