"""The comparison of stories: a lost or swapped step is seen, one more than recorded is not held against anybody."""

import pytest

from tests.world.scenes import SCENES, play
from tests.world.traces import differences, story

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("have", "agrees"),
    [
        (["Pending", "Scheduling", "Running"], True),
        (["Pending", "Scheduling", "Scheduled", "Running"], True),
        (["Pending", "Running"], False),
        (["Scheduling", "Pending", "Running"], False),
        ([], False),
    ],
)
def test_a_story_agrees_if_it_shows_every_recorded_step_in_order(have: list[str], agrees: bool) -> None:
    """Recorded: Pending, Scheduling, Running."""
    recorded = {"VirtualMachineInstance#1 phase": ["Pending", "Scheduling", "Running"]}
    assert (differences(recorded, {"VirtualMachineInstance#1 phase": have}) == []) is agrees


@pytest.mark.parametrize("scene", sorted(SCENES))
async def test_a_scene_played_twice_is_one_story(scene: str) -> None:
    """T10: the emulator has no chance of its own; the same scene leads to the same writes in the same order."""
    first, second = [story(await play(SCENES[scene])) for _ in range(2)]
    assert first == second
    assert first
