"""Later versions of the program, made as developers make them: a copy of the sources with a few lines changed.

So what runs beside the present version is another program, with its own reading and writing of the log.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

HOME = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "binder", "ingest", "projector", "webhooks", "deploy")
KIND = "remark"
"""A kind of message that no present program knows."""


class Edit(Struct, frozen=True):
    """In one file, `old` stands exactly once and becomes `new`."""

    file: str
    old: str
    new: str


def _reads(name: str) -> tuple[Edit, ...]:
    """What the version after the present one changes.

    It places by another rule (the emptiest node), adds a field to frames and to a decision, keeps snapshots of its own
    often, and reads a new kind and a new version of messages that it does not write yet (T6).
    """
    return (
        Edit("deploy/commands/opening.py", 'return version("gpubinder")', f'return "{name}"'),
        Edit("binder/step.py", "RULES_VERSION = 1\n", "RULES_VERSION = 2\n"),
        Edit("binder/placement.py", "(sum(book.free(node, resource)", "(-sum(book.free(node, resource)"),
        Edit(
            "schemas/decisions.py",
            "    terms: tuple[NodeSelectorTerm, ...] = ()\n\n\nclass SetWaits(",
            "    terms: tuple[NodeSelectorTerm, ...] = ()\n    mood: str = ''\n\n\nclass SetWaits(",
        ),
        Edit(
            "binder/decide_set.py", "pod.terms or ()) if node else None", "pod.terms or (), 'bright') if node else None"
        ),
        Edit("binder/service.py", "SNAPSHOT_EVERY_INPUTS = 20_000", "SNAPSHOT_EVERY_INPUTS = 40"),
        Edit(
            "schemas/frames.py",
            "    entries: tuple[Entry, ...] = ()\n",
            "    entries: tuple[Entry, ...] = ()\n    mood: str = ''\n",
        ),
        Edit(
            "binder/logbook.py",
            "            previous=tip.hash.hex(),\n",
            "            previous=tip.hash.hex(),\n            mood='bright',\n",
        ),
        Edit("schemas/events.py", "MESSAGE_VERSION = 1\n", "MESSAGE_VERSION = 2\n"),
        Edit(
            "schemas/events.py",
            "AnyEvent = (\n",
            f'class Remark(Event, frozen=True, tag="{KIND}"):\n'
            "    text: str\n"
            "    version: int = FIRST_VERSION\n\n\n"
            "AnyEvent = (\n    Remark |\n",
        ),
        Edit("schemas/events.py", "    for kind in (\n", "    for kind in (\n        Remark,\n"),
    )


_NOT_YET = (Edit("schemas/events.py", "NEW_KINDS = frozenset[str]()", f"NEW_KINDS = frozenset({{{KIND!r}}})"),)
"""What the version that is the first to read the new kind says of it."""

_WRITES = (
    Edit("schemas/events.py", "ANNOUNCED_VERSIONS = (1,)", "ANNOUNCED_VERSIONS = (1, 2)"),
    Edit(
        "ingest/leader.py",
        "    message_versions: tuple[int, ...] = ()\n",
        "    message_versions: tuple[int, ...] = ()\n    message_kinds: tuple[str, ...] = ()\n",
    ),
    Edit(
        "ingest/leader.py",
        "        elif record.type == _EPOCH:\n",
        "        elif record.type == _EPOCH:\n"
        f"            self.later = {KIND!r} in record.message_kinds and 2 in record.message_versions\n",
    ),
    Edit(
        "ingest/outlet.py",
        "        await self._publish(PROGRESS, self._process, Progress(tuple(marks)))\n",
        "        later = getattr(self._leader, 'later', False)\n"
        "        await self._publish(PROGRESS, self._process, Progress(tuple(marks), 2 if later else 1))\n"
        "        if later:\n"
        "            from schemas.events import Remark\n\n"
        "            await self._publish(PROGRESS, self._process, Remark('all is well'))\n",
    ),
)
"""What the version after that changes: its epochs announce both, its ingest writes them where they are announced."""


def _made(directory: Path, name: str, edits: Sequence[Edit]) -> tuple[str, ...]:
    """Copy the sources, edit them, and return how the copy is called."""
    home = directory / name
    for package in PACKAGES:
        shutil.copytree(HOME / package, home / package, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in edits:
        file = home / edit.file
        text = file.read_text()
        assert text.count(edit.old) == 1, f"{edit.file} has {edit.old!r} {text.count(edit.old)} times"
        file.write_text(text.replace(edit.old, edit.new))
    return sys.executable, "-c", f"import sys; sys.path.insert(0, {str(home)!r}); from deploy.cli import main; main()"


def next_version(directory: Path) -> tuple[str, ...]:
    """Make the version after the present one; return its program."""
    return _made(directory, "0.2.0", (*_reads("0.2.0"), *_NOT_YET))


def version_after(directory: Path) -> tuple[str, ...]:
    """Make the one after that; return its program."""
    return _made(directory, "0.3.0", (*_reads("0.3.0"), *_WRITES))
