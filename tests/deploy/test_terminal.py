"""What the terminal shows: spans of time and counts as people say them, tables that cut nothing off."""

import io

import pytest
from rich.console import Console

from deploy.commands.terminal import add_rows, count, duration, table

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("nanoseconds", "said"),
    [
        (0, "0 ms"),
        (68_900_000, "68 ms"),
        (1_490_000_000, "1.4 s"),
        (12 * SECOND, "12 s"),
        (59 * SECOND, "59 s"),
        (60 * SECOND, "1 min"),
        (3600 * SECOND, "1 h"),
        (7500 * SECOND, "2 h 5 min"),
        (86400 * SECOND, "1 d"),
        (350_000 * SECOND, "4 d 1 h"),
    ],
)
def test_spans_of_time(nanoseconds: int, said: str) -> None:
    """A span is said in the units that matter, rounded down."""
    assert duration(nanoseconds) == said


def test_counts() -> None:
    """One, many, and words that end in s."""
    assert [count(1, "frame"), count(12_345, "frame"), count(2, "GPU class")] == [
        "1 frame",
        "12,345 frames",
        "2 GPU classes",
    ]


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_a_table_cuts_nothing_off(columns: int) -> None:
    """Names of any length and long reasons go on below; what stands between them keeps its line."""
    name, reason = "tenant/" + "a-long-name" * 6, "not tolerated: taint " + "key-of-some-length" * 4
    out = io.StringIO()

    Console(file=out, width=columns).print(add_rows(table("VM", "node", "why not"), [(name, "node-1", reason)]))

    lines = out.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= columns
    assert sum("node-1" in line for line in lines) == 1
    letters = "".join(out.getvalue().split())
    assert "…" not in letters
    assert sorted(letters.replace("─", "")) == sorted("VMnodewhynot" + name + "node-1" + "".join(reason.split()))
