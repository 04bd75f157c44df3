"""The command line as a user has it: the installed program in a process of its own, or called in this one."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from typer.testing import CliRunner

from deploy.cli import app

PROGRAM = Path(sys.executable).with_name("gpubinder")
SECONDS = 240


class Ran(msgspec.Struct, frozen=True):
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever the command printed
        """Read the output as JSON."""
        return msgspec.json.decode(self.out)


def gpubinder(*words: str | Path, columns: int = 100, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
    """Run the command and return what it said; kubeconfig and data of this machine are out of its sight."""
    hidden = {name for name in os.environ if name.startswith("GPUBINDER_")} | {"KUBECONFIG", "XDG_STATE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    around = kept | {"COLUMNS": str(columns), "HOME": "/nonexistent", **(env or {})}
    done = subprocess.run(
        [PROGRAM, *map(str, words)],
        env=around,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def called(*words: str | Path, columns: int = 100, stdin: str = "") -> Ran:
    """Run a command in this process: quicker, for what starts no server and no loop of its own beside ours."""
    ran = CliRunner().invoke(app, [*map(str, words)], input=stdin, env={"COLUMNS": str(columns)})
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return Ran(ran.exit_code, ran.stdout, ran.stderr)
