"""Worlds under policy Refuse: the same laws, whatever crashes or comes late between booking and launcher."""

import pytest
from msgspec.structs import replace

from schemas.names import POLICY_REFUSE
from tests.simulation.life import STEPS, lived
from tests.simulation.script import script_of, setting_of

SEEDS = 40


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_holds_under_refuse(seed: int) -> None:
    """A12, T18, T25: no node gives too much, each launcher is made for its booking, all that fits runs in the end."""
    setting = replace(setting_of(seed), policy=POLICY_REFUSE)

    assert lived(seed, setting, script_of(seed, STEPS)).broken is None
