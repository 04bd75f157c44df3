"""Figures: what a benchmark returns, how they are shown on a terminal and kept as JSON."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from rich.table import Table


class Figure(msgspec.Struct, frozen=True):
    """One measured value beside a reference of the same run and unit; `ratio` is value through reference.

    Both are None for a value that stands alone, as a reference itself does.
    """

    name: str
    value: float
    unit: str
    reference: float | None = None
    ratio: float | None = None


def beside(name: str, value: float, unit: str, reference: float) -> Figure:
    """Return a value beside its reference."""
    return Figure(name, value, unit, reference, value / reference if reference else None)


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of the values do not exceed.

    Raises ValueError where there are none.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values were measured, so they have no percentile")
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values: Iterable[float]) -> float:
    """Return the middle value, the lower one of two."""
    return percentile(values, 0.5)


def table(figures: Sequence[Figure]) -> Table:
    """Return the figures as a table for the terminal."""
    shown = Table(title="gpubinder, measured", title_justify="left", header_style="bold")
    shown.add_column("figure")
    for column in ("value", "unit", "reference", "ratio"):
        shown.add_column(column, justify="left" if column == "unit" else "right")
    for figure in figures:
        reference = "" if figure.reference is None else _number(figure.reference)
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        shown.add_row(figure.name, _number(figure.value), figure.unit, reference, ratio)
    return shown


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write(figures: Sequence[Figure], path: Path) -> None:
    """Keep the figures as a JSON list of {name, value, unit, reference, ratio}."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")
