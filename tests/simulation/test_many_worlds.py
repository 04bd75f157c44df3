"""Thousands of worlds, longer than the usual ones: as many as one has time for."""

import os
import time

import pytest

from tests.simulation.life import lived
from tests.simulation.script import script_of, setting_of

FIRST = int(os.environ.get("SIMULATION_FIRST", "1000"))
WORLDS = int(os.environ.get("SIMULATION_WORLDS", "3000"))
PER_TEST = 20
LONG = 100


@pytest.mark.soak
@pytest.mark.parametrize("first", range(FIRST, FIRST + WORLDS, PER_TEST))
def test_every_law_holds_for_long(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A hundred acts break no law; `python -m tests.simulation --seed N --steps 100` tells of one world."""
    began = time.monotonic()
    broken = {}
    for seed in range(first, first + PER_TEST):
        found = lived(seed, setting_of(seed), script_of(seed, LONG)).broken
        if found is not None:
            broken[seed] = str(found)
    with capsys.disabled():
        done, rate = first + PER_TEST - FIRST, PER_TEST / (time.monotonic() - began)
        print(f" {done} of {WORLDS} worlds, {rate:.1f} a second, broken: {sorted(broken) or 'none'}")  # noqa: T201 - progress

    assert not broken
