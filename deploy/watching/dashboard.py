"""The Grafana dashboard, drawn from its rows of panels: what is wrong now on top, what led to it below."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from deploy.watching.panel import GOOD, Panel, Shape
from deploy.watching.panels_now import NOW
from deploy.watching.panels_since import SINCE

COLUMNS = 24
"""How wide Grafana's grid is."""
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_NUMBERS_HIGH, _STATES_HIGH, _GRAPHS_HIGH = 4, 6, 8
ROWS: Mapping[str, Sequence[Panel]] = {**NOW, **SINCE}


def queries() -> list[str]:
    """Return every query of the dashboard."""
    return [expr for panels in ROWS.values() for panel in panels for expr, _ in panel.queries]


def dashboard_json() -> str:
    """Return the dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "gridPos": place, "panels": []})
        top += 1
        left = 0
        height = _high(row[0].shape)
        for panel in row:
            if left + panel.width > COLUMNS:
                top, left = top + height, 0
            place = {"h": height, "w": panel.width, "x": left, "y": top}
            panels.append({"id": len(panels) + 1, "gridPos": place, **_body(panel)})
            left += panel.width
        top += height
    return json.dumps(_around(panels), indent=1) + "\n"


def _high(shape: Shape) -> int:
    return {Shape.NUMBER: _NUMBERS_HIGH, Shape.STATES: _STATES_HIGH}.get(shape, _GRAPHS_HIGH)


def _body(panel: Panel) -> dict[str, Any]:
    now = {"instant": True, "range": False} if panel.shape is Shape.NUMBER else {}
    return {
        "type": str(panel.shape),
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _overrides(panel)},
        "options": _options(panel),
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expr, "legendFormat": called, "datasource": _SOURCE, **now}
            for number, (expr, called) in enumerate(panel.queries)
        ],
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    """Return how values look. Thresholds are always said: Grafana's own make every number above 80 red."""
    colours = panel.colours or {GOOD: 0}
    steps = [
        {"color": colour, "value": None if number == 0 else value}
        for number, (colour, value) in enumerate(colours.items())
    ]
    said: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.shape is not Shape.STATES:
        said["min"] = 0
    if panel.nothing:
        said["noValue"] = panel.nothing
    if panel.words:
        words = {
            str(value): {"text": word, "index": number} for number, (value, word) in enumerate(panel.words.items())
        }
        said["mappings"] = [{"type": "value", "options": words}]
    if panel.shape is not Shape.GRAPH:
        return said | {"color": {"mode": "thresholds"}}
    stacking = {"stacking": {"mode": "normal"}, "fillOpacity": 40} if panel.stacked else {}
    lines = {"thresholdsStyle": {"mode": "dashed" if panel.colours else "off"}}
    return said | {"color": {"mode": "palette-classic"}, "custom": {**stacking, **lines}}


def _overrides(panel: Panel) -> list[dict[str, Any]]:
    return [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for name, colour in panel.tints.items()
    ]


def _options(panel: Panel) -> dict[str, Any]:
    if panel.shape is Shape.NUMBER:
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "background", "graphMode": "none"}
    if panel.shape is Shape.STATES:
        return {"mergeValues": True, "showValue": "auto", "legend": {"showLegend": False}}
    table = {"displayMode": "table", "placement": "right", "calcs": ["lastNotNull", "max"], "sortBy": "Last *"}
    listed = {"displayMode": "list", "placement": "bottom", "calcs": []}
    legend = {"showLegend": True, **(table | {"sortDesc": True} if panel.many else listed)}
    return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}


def _marks() -> list[dict[str, Any]]:
    """Return what is marked over all graphs: each new leader of the binder."""
    expr = "max(changes(gpubinder_log_epoch[1m])) > 0"
    return [
        {
            "name": "New leader of the binder",
            "datasource": _SOURCE,
            "enable": True,
            "iconColor": "purple",
            "expr": expr,
            "step": "30s",
            "titleFormat": "New leader of the binder",
        }
    ]


def _around(panels: list[dict[str, Any]]) -> dict[str, Any]:
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": "gpubinder",
        "title": "gpubinder",
        "tags": ["gpubinder", "gpu"],
        "timezone": "browser",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "graphTooltip": 1,
        "annotations": {"list": _marks()},
        "templating": {"list": [source]},
        "panels": panels,
    }
