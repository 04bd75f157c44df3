"""Every query of the dashboard finds what it asks for in scrapes of a process that does its work."""

import asyncio
import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from binder.kube import ApiError
from deploy.local import LocalNats
from deploy.watching.alerts import ALERTS
from deploy.watching.catalogue import METRICS, Kind
from deploy.watching.dashboard import ROWS, queries
from deploy.watching.drawn import DASHBOARD
from deploy.watching.panel import Panel, Shape
from deploy.watching.panels_since import DECISIONS as GROUPED
from schemas.decisions import Decision
from schemas.kinds import VM, VMI
from schemas.names import GPUS_ANNOTATION, REFERENCE_LABEL, REFERENCE_VALUE
from schemas.streams import DECISIONS, EVENTS
from tests.alerts import engine
from tests.alerts.recording import Recording
from tests.deploy.watched_stage import settled, stage

pytestmark = pytest.mark.promql

UNKNOWN = {
    "apiVersion": VMI.api_version,
    "kind": VMI.kind,
    "metadata": {
        "name": "refused",
        "labels": {REFERENCE_LABEL: REFERENCE_VALUE},
        "annotations": {GPUS_ANNOTATION: '[{"className": "no-such-class", "count": 1}]'},
    },
    "spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}},
}
"""Asks for a class that does not exist: refused at admission."""


FIRING = 'ALERTS{alertname="GpubinderPaused",alertstate="firing",severity="info"}'
"""What Prometheus itself says of an alert that fires."""


async def test_every_query_finds_its_series(nats: LocalNats, tmp_path: Path) -> None:
    """Each panel's queries are understood by Prometheus' engine and give series: VMs run, wait, are refused, end.

    Those that show what is beyond a limit are asked without it: in good order there is nothing beyond.
    """
    record = Recording()
    async with stage(nats, tmp_path, limits={EVENTS: 10_000_000, DECISIONS: 10_000_000}) as here:
        record.add(await here.scrape())
        await here.scraped(settled)
        with pytest.raises(ApiError, match="no-such-class"):
            await here.cluster.api.create(VMI, "tenant-umbra", msgspec.json.encode(UNKNOWN))
        (stopped, *_) = (one for one in here.cluster.starting if one["metadata"]["name"] == "desktop")
        await here.cluster.api.delete(VM, stopped["metadata"]["namespace"], stopped["metadata"]["name"])
        wanted = ("refused", "set-closed")
        record.add(
            await here.scraped(lambda one: all(one.all("gpubinder_decisions_total", kind=kind) for kind in wanted))
        )
    asked = [re.sub(r" > \d+(\)?)$", r"\1", one.replace("$__rate_interval", "5m")) for one in queries()]
    series = record.series(lasting=2) | {FIRING: "1x3"}

    found = await asyncio.to_thread(engine.ask, series, minutes=1.5, rules=(), queries=asked)

    assert {one.query: one.error for one in found.queries if one.error} == {}
    assert [one.query for one in found.queries if not one.series] == []


@pytest.mark.parametrize("panel", [panel for row in ROWS.values() for panel in row], ids=lambda panel: panel.title)
def test_legends_and_groups_are_labels_that_are_served(panel: Panel) -> None:
    """A query groups and selects by labels that its metrics have; a legend names what the query kept, so none is blank.

    A label that is not there is no error to Prometheus: everything lands in one series without a name.
    """
    listed = {one.name: set(one.labels) for one in METRICS} | {"ALERTS": {"alertname", "alertstate", "severity"}}
    listed |= {f"{one.name}_bucket": {*one.labels, "le"} for one in METRICS if one.kind is Kind.HISTOGRAM}
    for expr, legend in panel.queries:
        asked = re.findall(r"(gpubinder_\w+|ALERTS)(?:\{([^}]*)\})?", expr)
        assert asked, expr
        common = set.intersection(*(listed[name] for name, _ in asked))
        groups = [set(re.split(r",\s*", inside)) for inside in re.findall(r"\bby \(([^)]*)\)", expr)]
        shown = set(re.findall(r"\{\{(\w+)\}\}", legend))

        assert all(group <= common for group in groups), expr
        for name, matchers in asked:
            assert set(re.findall(r"(\w+)[=!]", matchers)) <= listed[name], expr
        # The outermost grouping is what is left to be told apart, but for the buckets of a quantile.
        one = not groups or re.match(r"(max|min|sum|count)\(", expr)
        outer = set() if one else groups[0] - {"le"}
        assert shown == outer, f"{panel.title}: {legend} of {expr}"


def test_it_asks_for_metrics_that_are_listed() -> None:
    """No panel of the file asks for a metric that no process serves, and panels do not overlap."""
    shown = json.loads(DASHBOARD.read_text())
    text = json.dumps(shown)
    asked = {re.sub(r"_(bucket|count|sum)$", "", name) for name in re.findall(r"gpubinder_\w+", text)}
    taken: set[tuple[int, int]] = set()

    assert asked <= {one.name for one in METRICS}
    for panel in shown["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + right, place["y"] + down) for right in range(place["w"]) for down in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_numbers_speak_of_now() -> None:
    """A number is asked for this moment, never what was seen last hours ago; it says itself when it turns red.

    Grafana's own thresholds make each number above 80 red.
    """
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        if panel["type"] == Shape.NUMBER:
            assert all(one["instant"] and not one["range"] for one in panel["targets"]), panel["title"]
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"], panel["title"]


@pytest.mark.parametrize("panel", [panel for row in ROWS.values() for panel in row], ids=lambda panel: panel.title)
def test_a_panel_names_alerts_that_there_are(panel: Panel) -> None:
    """What a panel's description sends to is an alert with a row in the runbook; a tint is the colour of a series."""
    names = {alert.name for alert in ALERTS}
    open_ended = any("{{" in legend for _, legend in panel.queries)

    assert set(re.findall(r"Gpubinder\w+", panel.text)) <= names
    assert open_ended or set(panel.tints) <= {legend for _, legend in panel.queries}
    # Few enough series to be told apart; what is named by others is told apart in a table.
    assert len(panel.queries) <= 6


def test_decisions_are_grouped_by_kinds_that_there_are() -> None:
    """The graph of decisions groups tags of decisions, each of them once."""
    grouped = "|".join(GROUPED.values()).split("|")

    assert len(grouped) == len(set(grouped))
    assert set(grouped) <= {str(one.__struct_config__.tag) for one in get_args(Decision)}
