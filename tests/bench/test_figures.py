"""What the benchmarks compute from what they saw: percentiles, ratios, rates; and how figures are kept."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from binder.kube import WatchEvent
from schemas.kinds import POD, VMI, Resource
from tests.bench.admission import Answer, Stretch
from tests.bench.burst import rate
from tests.bench.door import Buckets
from tests.bench.figures import Figure, beside, median, percentile, table, write
from tests.bench.observer import Sight, Sights
from tests.bench.processor import busy_s, used_s
from tests.bench.steady import reached

_VALUES = st.lists(st.floats(0, 1e6), min_size=1)


@given(_VALUES, st.sampled_from((0.0, 0.5, 0.95, 0.99, 1.0)))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], share: float) -> None:
    """It is one of the values, at least the share lies at or below it, and no smaller value will do."""
    found = percentile(values, share)

    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    smaller = [value for value in values if value < found]
    assert not smaller or sum(value <= max(smaller) for value in values) < share * len(values)


def test_nothing_has_no_percentile() -> None:
    """A benchmark that saw nothing says so rather than report a nought."""
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)
    assert median([3.0, 1.0, 2.0]) == 2.0


def test_figures_are_kept_as_a_list_of_five_fields(tmp_path: Path) -> None:
    """bench.json is a list of {name, value, unit, reference, ratio}; a value that stands alone has two nulls."""
    figures = [beside("a", 3.0, "pods/s", 4.0), Figure("b", 1.0, "MB")]

    write(figures, tmp_path / "bench.json")

    kept = msgspec.json.decode((tmp_path / "bench.json").read_bytes())
    assert kept[0] == {"name": "a", "value": 3.0, "unit": "pods/s", "reference": 4.0, "ratio": 0.75}
    assert kept[1] == {"name": "b", "value": 1.0, "unit": "MB", "reference": None, "ratio": None}
    assert msgspec.convert(kept, list[Figure]) == figures


def test_the_table_shows_every_figure() -> None:
    """Name, value, unit, reference and ratio stand in one row."""
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(table([beside("a burst", 1234.5, "pods/s", 2469.0)]))

    row = next(line for line in shown.get().splitlines() if "a burst" in line)
    assert [word for word in row.replace("│", " ").split() if word] == [
        "a",
        "burst",
        "1,234",
        "pods/s",
        "2,469",
        "0.50",
    ]


def _line(kind: str, name: str, *, node: str = "", gated: bool = False, owner: str = "") -> WatchEvent:
    spec = {"nodeName": node, "schedulingGates": [{"name": "g"}] if gated else []}
    owners = [{"name": owner}] if owner else []
    body = {"metadata": {"name": name, "resourceVersion": "7", "ownerReferences": owners}, "spec": spec}
    return WatchEvent(kind, msgspec.Raw(msgspec.json.encode(body)))


def test_a_launcher_is_seen_gated_ungated_and_bound_once() -> None:
    """Each moment is that of the first line that shows it; a launcher is told once, when it is bound."""
    sights = Sights()
    lines: list[tuple[Resource, WatchEvent]] = [
        (VMI, _line("ADDED", "vm")),
        (POD, _line("ADDED", "pod", gated=True, owner="vm")),
        (POD, _line("MODIFIED", "pod", gated=True, owner="vm")),
        (POD, _line("MODIFIED", "pod", owner="vm")),
        (POD, _line("MODIFIED", "pod", node="n1", owner="vm")),
        (POD, _line("MODIFIED", "pod", node="n1", owner="vm")),
    ]

    told = [sights.see(resource, event, float(at)) for at, (resource, event) in enumerate(lines, 1)]

    assert [sight for _, sight in told if sight] == [Sight("vm", created=1, gated=2, ungated=4, bound=5)]
    assert {version for version, _ in told} == {"7"}


def test_rates_run_from_the_first_vmi_to_the_last_bound_launcher() -> None:
    """The order of the sights changes no rate, and a stream is never faster than its source."""
    sights = [Sight("b", created=11, gated=11, ungated=12, bound=14), Sight("a", created=10, bound=12)]

    assert rate(sights) == 0.5
    assert reached(sights) == 0.5
    assert reached([Sight("a", created=10, bound=10.001)]) == 20


def test_a_stretch_counts_the_answers_that_were_waited_for_in_it() -> None:
    """An answer belongs to a stretch if any of its wait lies within."""
    answers = [Answer(at, at + 2, allowed=True) for at in (0.0, 3.0, 5.0, 9.5)]

    assert Stretch(4.0, 9.0).of(answers) == [2000.0, 2000.0]


def test_processor_time_is_a_part_of_the_machines() -> None:
    """A process has used some of what all of them have, and what was used is never given back."""
    before = used_s(os.getpid())

    assert 0 < before <= used_s(os.getpid()) <= busy_s()


def test_a_histogram_tells_what_came_after_another() -> None:
    """Counts and seconds are those in between; a percentile lies within the bounds of its bucket."""
    before, after = Buckets({0.1: 1, 0.2: 4}, 0.5), Buckets({0.1: 1, 0.2: 14}, 2.0)

    between = after.since(before)

    assert (between.counts, between.seconds) == ({0.1: 0, 0.2: 10}, 1.5)
    assert between.milliseconds(0.5) == pytest.approx(150.0)
