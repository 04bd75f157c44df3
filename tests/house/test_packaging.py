"""Our generic top-level names are ours, and the wheel ships the program without its tests."""

import tomllib
from importlib.metadata import entry_points, packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.house.sources import ROOMS, ROOT

SHIPPED = [room for room in ROOMS if room != "tests"]


@pytest.mark.parametrize("room", ROOMS)
def test_our_names_are_ours(room: str) -> None:
    """No dependency has taken one of our top-level names."""
    spec = find_spec(room)

    assert set(packages_distributions().get(room, [])) <= {"gpubinder"}
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).is_relative_to(ROOT)


def test_the_wheel_ships_every_room_but_the_tests() -> None:
    """The build configuration names exactly the rooms of the program."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == SHIPPED


def test_the_command_is_installed() -> None:
    """`gpubinder` starts the command line of `deploy`."""
    (command,) = entry_points(group="console_scripts", name="gpubinder")

    assert command.value == "deploy.cli:main"


def test_every_dependency_of_the_project_is_locked() -> None:
    """The lock pins each package that pyproject.toml asks for, and names no index."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lock = (ROOT / "requirements-dev.lock").read_text("utf-8")
    locked = {line.split("==")[0].lower().replace("_", "-") for line in lock.splitlines() if "==" in line}
    asked = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]

    assert {name.split(">=")[0].split("[")[0].lower() for name in asked} <= locked
    assert "://" not in lock
    assert "--" not in lock
