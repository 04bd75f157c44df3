"""The lines that the program can log, read from its sources: what each says, how loud, from where, with which keys."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("binder", "ingest", "projector", "webhooks", "deploy")
LEFT_OUT = ("deploy/world/",)
"""The model world is for tests and the demo."""

ALWAYS = ("event", "level", "logger", "timestamp")
"""What every line has, `logger` being the module; one of a failure that nobody expected also has `exception`."""

ABOUT = ("events_seq", "decisions_seq", "request", "webhook", "namespace", "vm", "vmi_uid", "kind", "name")
"""What is bound to the work on one input, and stands on every line that is written meanwhile."""

_LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
_LOGGERS = {"log", "_log"}
_SPREAD: Mapping[str, tuple[str, ...]] = {
    "about(decision)": ("decision", "reason", "namespace", "vm", "vmi_uid", "name", "claims", "node"),
    "said": ("action", "events_seq", "entry", "generation", "namespace", "name", "vmi_uid"),
}
"""Keys that a call takes from elsewhere, by how it spells that."""


class Line(msgspec.Struct, frozen=True, order=True):
    """One line of the log: `keys` beside those that every line has."""

    where: str
    event: str
    level: str
    keys: tuple[str, ...]


def lines(rooms: Iterable[str] = ROOMS) -> list[Line]:
    """Return every line that the sources write, by module."""
    found = [
        line
        for room in rooms
        for file in sorted((ROOT / room).rglob("*.py"))
        for line in lines_of(file, file.relative_to(ROOT).as_posix())
    ]
    return sorted(set(found))


def lines_of(file: Path, path: str) -> Iterator[Line]:
    """Yield the lines of one file. Raises `ValueError` where a line could not be found by reading."""
    if path.startswith(LEFT_OUT):
        return
    tree = ast.parse(file.read_text("utf-8"))
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _LOGGERS:
            level, call = _LEVELS.get(node.attr), called.get(id(node))
            if level and call is None:
                raise ValueError(f"{path}:{node.lineno}: call {node.attr} where it stands: a page lists each line")
            if level and call is not None and call.args:
                yield Line(path, _text(call.args[0]), level, tuple(_keys(call.keywords, tree)))


def _text(event: ast.expr) -> str:
    """Return the line's words. Raises `ValueError`: a line is found by its words, so they stand in the source."""
    if isinstance(event, ast.Constant) and isinstance(event.value, str):
        return event.value
    raise ValueError(f"line {event.lineno}: a log line's event is a string, written where it is logged")


def _keys(keywords: list[ast.keyword], tree: ast.Module) -> Iterator[str]:
    for keyword in keywords:
        if keyword.arg is not None:
            yield keyword.arg
        else:
            spelled = ast.unparse(keyword.value)
            yield from _SPREAD.get(spelled) or _of_dict(spelled, tree)


def _of_dict(name: str, tree: ast.Module) -> Iterator[str]:
    """Find the keys of a dictionary that a call spreads, where the module makes it of constants."""
    for node in ast.walk(tree):
        value = getattr(node, "value", None)
        named = [ast.unparse(target) for target in getattr(node, "targets", [])]
        if isinstance(node, ast.Assign) and name in named and isinstance(value, ast.Dict):
            yield from (str(key.value) for key in value.keys if isinstance(key, ast.Constant))
