"""What a panel of the dashboard is: one question, its queries, and how its answer is drawn."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

RATE = "$__rate_interval"
GOOD, BAD, SLOW, PLAIN = "green", "red", "orange", "blue"
"""Colours: as it should be, look at once, look today, and where it says neither."""


class Shape(StrEnum):
    """How a panel draws: a number, a graph, or which state each series is in over time. Grafana's own names."""

    NUMBER = "stat"
    GRAPH = "timeseries"
    STATES = "state-timeline"


class Panel(msgspec.Struct, frozen=True):
    """One panel: its question, and queries with what each series is called. `unit` as Grafana names units.

    `colours`: from which value on a number is coloured how; in a graph the lines at which an alert begins.
    `words`: what a value is shown as. `tints`: the colour of a series, by its name. `nothing`: what stands there where
    a query finds no series, as it should be. `many`: series of an open list, told apart in a table.
    """

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    width: int = 8
    shape: Shape = Shape.GRAPH
    stacked: bool = False
    many: bool = False
    colours: Mapping[str, float] = {}
    words: Mapping[int, str] = {}
    tints: Mapping[str, str] = {}
    nothing: str = ""
    text: str = ""


def p99(name: str, by: str = "") -> str:
    """Return the query for the time that 99 of 100 take at most, in seconds, of a histogram; `by` one label."""
    inside = f"sum by (le{', ' + by if by else ''}) (rate({name}_bucket[{RATE}]))"
    return f"histogram_quantile(0.99, {inside})"


def rate(name: str, matchers: str) -> str:
    """Return the query for how often it happens per second: of a counter, over the series that match."""
    return f"sum(rate({name}{{{matchers}}}[{RATE}]))"
