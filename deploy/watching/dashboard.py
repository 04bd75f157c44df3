"""The Grafana dashboard as a short description: rows of panels, each a question with its queries."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

COLUMNS = 24
"""How wide Grafana's grid is."""
_RATE = "$__rate_interval"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Panel(msgspec.Struct, frozen=True):
    """One panel: its question, and queries with what each series is called. `unit` as Grafana names units.

    `big`: a number instead of a graph. `colours`: from which value on a number is coloured how.
    """

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    width: int = 8
    big: bool = False
    stacked: bool = False
    colours: Mapping[str, float] = {}
    text: str = ""


def _p99(name: str, by: str = "") -> str:
    inside = f"sum by (le{', ' + by if by else ''}) (rate({name}_bucket[{_RATE}]))"
    return f"histogram_quantile(0.99, {inside})"


ROWS: Mapping[str, Sequence[Panel]] = {
    "At a glance": (
        Panel(
            "Binder leads",
            [('max(gpubinder_leading{role="binder"})', "")],
            width=3,
            big=True,
            colours={"red": 0, "green": 1},
            text="1 while one process holds the binder's lease.",
        ),
        Panel(
            "NATS",
            [("min(gpubinder_nats_connected)", "")],
            width=3,
            big=True,
            colours={"red": 0, "green": 1},
            text="0 where a process has no connection.",
        ),
        Panel(
            "Kinds not known",
            [("count(max by (kind) (gpubinder_kind_current) == 0) or vector(0)", "")],
            width=3,
            big=True,
            colours={"green": 0, "red": 1},
            text="While there are any, nothing is placed.",
        ),
        Panel("VMs placed", [('max(gpubinder_sets{standing="placed"})', "")], width=3, big=True),
        Panel("VMs waiting", [('max(gpubinder_sets{standing="waiting"})', "")], width=3, big=True),
        Panel(
            "Waits longest",
            [("max(gpubinder_waiting_oldest_seconds) or vector(0)", "")],
            "s",
            3,
            big=True,
            colours={"green": 0, "orange": 3600, "red": 86_400},
        ),
        Panel(
            "Decided behind",
            [('min(gpubinder_lag_seconds{stage="decide"})', "")],
            "s",
            3,
            big=True,
            colours={"green": 0, "orange": 5, "red": 30},
        ),
        Panel(
            "Certificate ends in",
            [("min(gpubinder_certificate_expiry_seconds) - time()", "")],
            "s",
            3,
            big=True,
            colours={"red": 0, "orange": 7 * 86_400, "green": 14 * 86_400},
        ),
    ),
    "GPUs": (
        Panel("Units held, by class", [('max by (gpu_class) (gpubinder_class_units{amount="held"})', "{{gpu_class}}")]),
        Panel("Units free, by class", [('max by (gpu_class) (gpubinder_class_units{amount="free"})', "{{gpu_class}}")]),
        Panel(
            "Share of units held",
            [
                (
                    (
                        'max by (gpu_class) (gpubinder_class_units{amount="held"})'
                        ' / max by (gpu_class) (gpubinder_class_units{amount="allocatable"})'
                    ),
                    "{{gpu_class}}",
                )
            ],
            "percentunit",
        ),
    ),
    "Who waits": (
        Panel(
            "VMs waiting, by reason",
            [("sum by (reason) (max by (reason, age) (gpubinder_waiting_sets)) > 0", "{{reason}}")],
            stacked=True,
        ),
        Panel(
            "VMs waiting, by how long",
            [("sum by (age) (max by (reason, age) (gpubinder_waiting_sets))", "{{age}}")],
            stacked=True,
        ),
        Panel("Keys of budgets, by how full", [("max by (used) (gpubinder_budget_keys)", "{{used}}")], stacked=True),
    ),
    "Deciding": (
        Panel("Inputs", [(f"sum by (kind) (rate(gpubinder_inputs_total[{_RATE}]))", "{{kind}}")], "ops", stacked=True),
        Panel(
            "Decisions",
            [(f"sum by (kind) (rate(gpubinder_decisions_total[{_RATE}]))", "{{kind}}")],
            "ops",
            stacked=True,
        ),
        Panel(
            "Time of a frame, p99",
            [
                (_p99("gpubinder_decide_seconds"), "fold and decide"),
                (_p99("gpubinder_frame_append_seconds"), "until durable"),
            ],
            "s",
        ),
        Panel("Behind, by stage", [("max by (stage) (gpubinder_lag_seconds)", "{{stage}}")], "s"),
        Panel(
            "Leaders and epochs",
            [
                ("sum by (role) (gpubinder_leading)", "leads: {{role}}"),
                (f"max(changes(gpubinder_log_epoch[{_RATE}]))", "new epochs"),
            ],
        ),
        Panel("Inputs behind the snapshot", [("min(gpubinder_snapshot_behind)", "to fold at a restart")]),
    ),
    "Admission": (
        Panel(
            "Reviews, by verdict",
            [(f"sum by (verdict) (rate(gpubinder_admission_reviews_total[{_RATE}]))", "{{verdict}}")],
            "ops",
            stacked=True,
        ),
        Panel("Time to an answer, p99", [(_p99("gpubinder_admission_seconds", "webhook"), "{{webhook}}")], "s"),
        Panel(
            "Refusals, by reason",
            [(f'sum by (reason) (rate(gpubinder_decisions_total{{kind="refused"}}[{_RATE}]))', "{{reason}}")],
            "ops",
            stacked=True,
        ),
    ),
    "The cluster": (
        Panel(
            "Writes, by verdict",
            [(f"sum by (verdict) (rate(gpubinder_writes_total[{_RATE}]))", "{{verdict}}")],
            "ops",
            stacked=True,
        ),
        Panel(
            "Writes that are open",
            [("max(gpubinder_writes_open)", "open"), ("max(gpubinder_writes_again)", "refused, tried again")],
        ),
        Panel(
            "Answers of the API server that fail",
            [(f'sum by (code) (rate(gpubinder_api_requests_total{{code!~"2.."}}[{_RATE}]))', "{{code}}")],
            "ops",
        ),
        Panel("Time to an answer of the API server, p99", [(_p99("gpubinder_api_seconds", "verb"), "{{verb}}")], "s"),
        Panel("Watches without progress", [("min by (kind) (gpubinder_kind_silent_seconds)", "{{kind}}")], "s"),
        Panel("Deletions that wait for NATS", [("max by (kind) (gpubinder_deletions_waiting)", "{{kind}}")]),
    ),
    "NATS": (
        Panel("Bytes of the streams", [("max by (stream) (gpubinder_stream_bytes)", "{{stream}}")], "bytes"),
        Panel(
            "Appends, by how they ended",
            [(f"sum by (stream, outcome) (rate(gpubinder_appends_total[{_RATE}]))", "{{stream}} {{outcome}}")],
            "ops",
        ),
        Panel("Time until stored, p99", [(_p99("gpubinder_append_seconds", "stream"), "{{stream}}")], "s"),
    ),
}


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
        height = 4 if all(panel.big for panel in row) else 8
        for panel in row:
            if left + panel.width > COLUMNS:
                top, left = top + height, 0
            place = {"h": height, "w": panel.width, "x": left, "y": top}
            panels.append({"id": len(panels) + 1, "gridPos": place, **_body(panel)})
            left += panel.width
        top += height
    return json.dumps(_around(panels), indent=1) + "\n"


def _body(panel: Panel) -> dict[str, Any]:
    steps = [
        {"color": colour, "value": None if number == 0 else value}
        for number, (colour, value) in enumerate(panel.colours.items())
    ]
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if steps:
        defaults |= {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}
    if panel.stacked:
        defaults["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 40}
    return {
        "type": "stat" if panel.big else "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}} if panel.big else {},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expr, "legendFormat": called, "datasource": _SOURCE}
            for number, (expr, called) in enumerate(panel.queries)
        ],
    }


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
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }
