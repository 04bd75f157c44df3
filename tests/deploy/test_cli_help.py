"""`--help` teaches: what stands there is looked at whenever it changes (REDRAW=1 writes it anew)."""

import os
import re
from pathlib import Path

import pytest

from deploy.cli import app
from tests.deploy.command import called, gpubinder

SHOWN = Path(__file__).parent / "help"
COMMANDS = sorted(str(command.name) for command in app.registered_commands)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_as_it_stands(command: str) -> None:
    """The help of each command is the text that was looked at, and no line of it is cut off."""
    ran = called(*command.split(), "--help", columns=100)
    file = SHOWN / f"{command or 'gpubinder'}.txt"
    text = "\n".join(line.rstrip() for line in ran.out.splitlines()).strip() + "\n"
    if os.environ.get("REDRAW"):
        file.write_text(text)

    assert ran.code == 0
    assert text == file.read_text(), (
        "look at the new text, then write it: REDRAW=1 pytest tests/deploy/test_cli_help.py"
    )
    assert "…" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_examples_and_exit_codes(command: str) -> None:
    """Who reads a command's help sees how it is used and how it ends."""
    text = called(command, "--help", columns=160).out

    assert re.search(rf"^ +gpubinder {command}( |$)", text, re.MULTILINE)
    assert "Exit codes" in text


def test_the_version_is_said() -> None:
    """`--version` names the program and its version."""
    ran = gpubinder("--version")

    assert ran.code == 0
    assert re.fullmatch(r"gpubinder \d+\.\d+\.\d+\n", ran.out)


def test_without_a_command_the_help_is_shown() -> None:
    """Bare `gpubinder` teaches."""
    ran = called()

    assert "demo" in ran.out + ran.err
    assert ran.code == 2
