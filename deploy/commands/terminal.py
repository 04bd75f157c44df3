"""What commands print with: consoles, tables that never wrap, durations and amounts as people say them."""

import os
import sys
from collections.abc import Iterable, Sequence

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

PIPED_WIDTH = 160
WIDE = 100
"""From this width on there is room for what is good to know."""
_SECOND_NS = 1_000_000_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def out() -> Console:
    """Return the console for results."""
    return _console(stderr=False)


def err() -> Console:
    """Return the console for progress and complaints."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    # Where output goes into a file or a pipe, lines are not cut for a screen.
    piped = not (sys.stderr if stderr else sys.stdout).isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, highlight=False, width=PIPED_WIDTH if piped else None)


def say(console: Console, text: str | Text, *, style: str = "") -> None:
    """Print a sentence: broken between words on a terminal, whole in a file or a pipe."""
    console.print(text, style=style or None, soft_wrap=not console.is_terminal)


def table(*columns: str | Column) -> Table:
    """Return an empty table in the house's form: a rule under the head, no frame.

    Where it is wider than the terminal, the first and the last column give way, names and reasons: their
    cells go on in a line below, and nothing is cut off.
    """
    chosen = [column if isinstance(column, Column) else Column(column) for column in columns]
    for column in chosen:
        column.overflow = "fold"
    for column in chosen[1:-1]:
        column.no_wrap = True
    return Table(
        *chosen, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim"
    )


def add_rows(made: Table, rows: Iterable[Sequence[str]]) -> Table:
    """Add rows to a table and return it."""
    for row in rows:
        made.add_row(*row)
    return made


def print_json(value: object) -> None:
    """Print a value as JSON with sorted keys and two spaces, the same bytes for the same value."""
    encoded = msgspec.json.encode(value, order="sorted")
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def progress(console: Console) -> Progress:
    """Return a bar for work whose length is known; it leaves nothing behind."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def duration(nanoseconds: int) -> str:
    """Return a span of time in the units that matter: `68 ms`, `1.4 s`, `12 s`, `3 min`, `2 h 5 min`, `4 d 1 h`."""
    seconds = nanoseconds // _SECOND_NS
    if nanoseconds < _SECOND_NS:
        return f"{nanoseconds // (_SECOND_NS // 1000)} ms"
    if nanoseconds < 10 * _SECOND_NS:
        return f"{nanoseconds // (_SECOND_NS // 10) / 10:.1f} s"
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < _DAY:
        return _two(seconds, _HOUR, "h", _MINUTE, "min")
    return _two(seconds, _DAY, "d", _HOUR, "h")


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {large_name}" + (f" {rest} {small_name}" if rest else "")


def count(number: int, noun: str) -> str:
    """Return `1 frame`, `12,345 frames`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def indented(what: RenderableType, *, above: int = 0) -> Padding:
    """Return something two columns further in."""
    return Padding(what, (above, 0, 0, 2), expand=False)
