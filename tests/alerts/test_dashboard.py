"""Every query of the dashboard finds what it asks for in scrapes of a process that does its work."""

import asyncio
import json
import re
from pathlib import Path

import msgspec
import pytest

from binder.kube import ApiError
from deploy.local import LocalNats
from deploy.watching.catalogue import METRICS, Kind
from deploy.watching.dashboard import ROWS, Panel, queries
from deploy.watching.drawn import DASHBOARD
from schemas.kinds import VMI
from schemas.names import GPUS_ANNOTATION, REFERENCE_LABEL, REFERENCE_VALUE
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


async def test_every_query_finds_its_series(nats: LocalNats, tmp_path: Path) -> None:
    """Each panel's queries are understood by Prometheus' engine, and gives series: VMs run, wait, are refused."""
    record = Recording()
    async with stage(nats, tmp_path) as here:
        record.add(await here.scrape())
        await here.scraped(settled)
        with pytest.raises(ApiError, match="no-such-class"):
            await here.cluster.api.create(VMI, "tenant-umbra", msgspec.json.encode(UNKNOWN))
        record.add(await here.scraped(lambda one: bool(one.all("gpubinder_decisions_total", kind="refused"))))
    asked = [one.replace("$__rate_interval", "5m") for one in queries()]

    found = await asyncio.to_thread(engine.ask, record.series(lasting=2), minutes=1.5, rules=(), queries=asked)

    assert {one.query: one.error for one in found.queries if one.error} == {}
    assert [one.query for one in found.queries if not one.series] == []


@pytest.mark.parametrize("panel", [panel for row in ROWS.values() for panel in row], ids=lambda panel: panel.title)
def test_legends_and_groups_are_labels_that_are_served(panel: Panel) -> None:
    """A query groups and selects by labels that its metrics have; a legend names what the query kept, so none is blank.

    A label that is not there is no error to Prometheus: everything lands in one series without a name.
    """
    listed = {one.name: set(one.labels) for one in METRICS}
    listed |= {f"{one.name}_bucket": {*one.labels, "le"} for one in METRICS if one.kind is Kind.HISTOGRAM}
    for expr, legend in panel.queries:
        asked = re.findall(r"(gpubinder_\w+)(?:\{([^}]*)\})?", expr)
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
