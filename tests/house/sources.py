"""The files of the house, read once: path from the root, text, syntax tree."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("schemas", "binder", "ingest", "projector", "webhooks", "deploy", "tests")


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """Name its top-level folder."""
        return self.path.split("/")[0]


def parse(path: str, text: str) -> Source:
    """Return the source called `path`; SyntaxError names it."""
    return Source(path, text, ast.parse(text, path))


@cache
def sources() -> tuple[Source, ...]:
    """Read every Python file of every room, in the order of their paths."""
    files = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
    return tuple(parse(file.relative_to(ROOT).as_posix(), file.read_text("utf-8")) for file in files)
