"""Two hundred worlds keep every law; the same seed is the same world, and a world that breaks a law becomes short."""

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.simulation import planted
from tests.simulation.acts.act import Step
from tests.simulation.acts.tenants import CreateVm, StopVm
from tests.simulation.cluster import Setting
from tests.simulation.life import STEPS, lived
from tests.simulation.script import script_of, setting_of
from tests.simulation.shrink import Shrinker
from tests.simulation.story import as_test, spelled

SEEDS = 200
TOLD = "from tests.simulation.life import lived; from tests.simulation.script import script_of, setting_of; "


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_holds(seed: int) -> None:
    """In the world of the seed no law is broken; `python -m tests.simulation --seed N` tells what happens in it."""
    assert lived(seed, setting_of(seed), script_of(seed, STEPS)).broken is None


@pytest.mark.parametrize("seed", [1, 12])
def test_one_seed_is_one_world(seed: int) -> None:
    """The logs of a seed are the same bytes in processes of other hash seeds (T10)."""
    command = TOLD + f"print(lived({seed}, setting_of({seed}), script_of({seed}, 25)).digest)"
    told = {
        subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("0", "4711")
    }

    assert told == {lived(seed, setting_of(seed), script_of(seed, 25)).digest}


def test_a_world_that_breaks_a_law_becomes_a_short_story(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thirty acts few are left; they break the same law, and can be pasted as a test."""
    planted.let_go_without_pin(monkeypatch)
    setting, script = setting_of(0), script_of(0, 30)

    def breaks(steps: Sequence[Step]) -> bool:
        broken = lived(0, setting, steps).broken
        return broken is not None and broken.law == "Pins"

    shortest = Shrinker(breaks).shrink(script)

    assert breaks(shortest)
    assert len(shortest) == 1
    assert isinstance(shortest[0].act, CreateVm)
    assert f"Step({spelled(shortest[0].act)}, {shortest[0].wait_s})," in [
        line.strip() for line in as_test(0, setting, shortest, "Pins")
    ]


def test_acts_are_spelled_as_python() -> None:
    """What is said by default is left out; what is left makes the same act and setting again."""
    said = [spelled(CreateVm(3, 5)), spelled(StopVm(2)), spelled(Setting(binders=1))]

    assert said == ["CreateVm(vm=3, ask=5)", "StopVm(vm=2)", "Setting(binders=1)"]
