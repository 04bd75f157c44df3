"""Every query of the dashboard finds what it asks for in scrapes of a process that does its work."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from deploy.local import LocalNats
from deploy.watching.catalogue import METRICS
from deploy.watching.dashboard import queries
from deploy.watching.drawn import DASHBOARD
from tests.alerts import engine
from tests.alerts.recording import Recording
from tests.deploy.watched_stage import settled, stage

pytestmark = pytest.mark.promql

EMPTY_WHERE_ALL_IS_WELL = {
    'sum by (reason) (rate(gpubinder_decisions_total{kind="refused"}[5m]))',
    'sum by (code) (rate(gpubinder_api_requests_total{code!~"2.."}[5m]))',
}
"""Queries that show nothing as nothing was refused."""


async def test_every_query_finds_its_series(nats: LocalNats, tmp_path: Path) -> None:
    """Each panel's queries are understood by Prometheus' engine, and give series where VMs were placed and wait."""
    record = Recording()
    async with stage(nats, tmp_path) as here:
        record.add(await here.scrape())
        record.add(await here.scraped(settled))
    asked = [one.replace("$__rate_interval", "5m") for one in queries()]

    found = await asyncio.to_thread(engine.ask, record.series(lasting=2), minutes=1.5, rules=(), queries=asked)

    assert {one.query: one.error for one in found.queries if one.error} == {}
    assert {one.query for one in found.queries if not one.series} <= EMPTY_WHERE_ALL_IS_WELL


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
