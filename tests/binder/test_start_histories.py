"""Laws over random histories in which VMs start under Refuse: booked before they are there, and some never come."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binder.book import Book
from binder.snapshot import decode_state, encode_state, state_digest
from binder.state import empty_state
from binder.step import apply, step
from schemas import decisions as d
from schemas.reasons import Release
from tests.binder.histories import Act, lived, seeded
from tests.binder.oracle import untold
from tests.binder.start_acts import StartHistory
from tests.binder.test_histories import follow_epochs

NUMBERS = st.integers(0, 999)
ACTS: st.SearchStrategy[list[Act]] = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=60)
OFTEN = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@OFTEN
@given(ACTS)
def test_starts_keep_every_promise(acts: list[Act]) -> None:
    """Who is booked fits where it is booked, who is refused fits nowhere, nobody waits without cause (A12, T18, T25).

    All the laws of the other histories hold beside them: nothing is given twice, everyone at the gate is served.
    """
    history = lived(acts, kind=StartHistory)

    assert not untold(history.scene.book.state)


@OFTEN
@given(ACTS, st.integers(1, 7))
def test_a_restart_changes_no_start(acts: list[Act], every: int) -> None:
    """A book that goes on from its snapshot's bytes, and one that folds the log alone, tell what was lived (T10)."""
    history = lived(acts, lawful=False, kind=StartHistory)
    book, told = Book(empty_state()), Book(empty_state())
    for sequence, stamp_ns, body, decided in history.scene.log:
        for one in (book, told):
            follow_epochs(one, history, sequence)
        assert step(book, sequence, stamp_ns, body) == decided
        apply(told, sequence, stamp_ns, body, decided)
        if sequence % every == 0:
            book = Book(decode_state(encode_state(book.state)))

    assert state_digest(book.state) == state_digest(told.state) == state_digest(history.scene.book.state)


@pytest.mark.parametrize("seed", range(6))
def test_a_long_history_of_starts_keeps_the_laws(seed: int) -> None:
    """Long histories meet what short ones do not: bookings that are forgotten, restarts, nodes that go meanwhile."""
    history = lived(seeded(seed, 400), kind=StartHistory)

    assert not untold(history.scene.book.state)


def test_histories_meet_every_end_of_a_booking() -> None:
    """The seeds above see bookings end in every way there is, or the laws on them would hold for want of cases."""
    ends: set[Release] = set()
    booked = refused = pinned = 0
    for seed in range(6):
        for _, _, _, decided in lived(seeded(seed, 400), lawful=False, kind=StartHistory).scene.log:
            ends |= {one.reason for one in decided if isinstance(one, d.SetReleased)}
            booked += sum(isinstance(one, d.SetBooked) for one in decided)
            refused += sum(isinstance(one, d.Refused) for one in decided)
            pinned += sum(isinstance(one, d.PodAdmitted) and bool(one.node) for one in decided)

    assert min(booked, refused, pinned) > 20, (booked, refused, pinned)
    assert ends >= {Release.NEVER_SEEN, Release.WITHDRAWN, Release.SUPERSEDED, Release.LAUNCHER_ENDED, Release.VMI_GONE}
