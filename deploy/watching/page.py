"""The page on what can be seen from outside, drawn from the code: metrics, and alerts with what to do."""

from collections.abc import Iterable

from deploy.watching.alerts import GROUPS
from deploy.watching.catalogue import METRICS
from deploy.watching.doors import OUTCOMES
from deploy.watching.process import ALL, INPUT_KINDS, OVER, SHARES
from deploy.watching.state import AGES, MORE, UNTOLD
from projector.verdicts import Kind
from schemas.reasons import Wait

VERDICTS = (
    *("admitted", "booked", "refused", "untouched", "unchecked"),
    *("unanswered", "limited", "malformed", "failed"),
)
"""How a review ends, as the front desk counts it."""

_HEAD = """<!-- Drawn from deploy/watching by `make generate`; edits are lost. -->

# Seen from outside

Each process of `gpubinder run` serves three pages on `--status-port` (8080), whatever its roles:

| page | says |
|---|---|
| `/healthz` | 200 while the process lives |
| `/readyz` | 200 while it can do its work, else 503 with a line for each trouble |
| `/metrics` | what stands below, as Prometheus reads it |

Rules for Prometheus stand in [`deploy/alerts`](../../deploy/alerts), a Grafana dashboard in
[`deploy/dashboards`](../../deploy/dashboards). `gpubinder explain` and `gpubinder replay` answer what metrics can't:
why one VM waits, who had which GPU.

## Metrics

Labels come from closed lists, or name what operators name: classes, kinds of objects, streams. No VM, namespace or node
is a label; `--budget-metrics` adds a series for each tenant's budget, for clusters whose tenants are few. Where more
than one process serves a metric, ask for `max` or `min` over them: standbys follow the log as the leader does.

| metric | kind | labels | served by | what it says |
|---|---|---|---|---|
"""

_LABELS = """
What labels hold:

| label | values |
|---|---|
"""

_ALERTS = """
## Alerts

`critical`: look at once; `warning`: today; `info`: when there is time. Each one fires in a test on the series that it
is about, and all are silent on those of an installation that does its work.
"""


def monitoring_page() -> str:
    """Return the page."""
    return (
        _HEAD
        + _rows((f"`{one.name}`", str(one.kind), _ticked(one.labels), str(one.by), one.text) for one in METRICS)
        + _LABELS
        + _rows(_label_rows())
        + _ALERTS
        + "".join(_alerts())
    )


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _ticked(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _label_rows() -> Iterable[tuple[str, str]]:
    ages = ", ".join(f"`{age}`" for age in (*AGES, MORE))
    yield "`kind` of `gpubinder_inputs_total`", _ticked(sorted({*INPUT_KINDS, "other"}))
    yield "`kind` of `gpubinder_decisions_total`", "the tags of `schemas/decisions.py`; `reason` is theirs, or empty"
    yield "`reason` of waiting sets", f"{_ticked(str(reason) for reason in Wait)}, `{UNTOLD}`"
    yield "`age`", f"{ages}: how long they wait, from the step before"
    yield "`outcome`", _ticked(OUTCOMES)
    yield "`verdict` of `gpubinder_writes_total`", _ticked(kind.name.lower() for kind in Kind)
    yield "`stage` of lags", "`decide` (behind EVENTS); `follow`, `project`, `answer` (behind DECISIONS)"
    yield "`stage` of admission", "`evidence`, `decision`"
    yield "`webhook`", _ticked(("vmis", "pods", "starts", "writes", "orders"))
    yield "`verdict` of reviews", _ticked(VERDICTS)
    yield "`used`", f"{_ticked((*SHARES, ALL, OVER))}: up to nothing, a half, nine tenths, less than all, all, more"
    yield "`amount`", "`allocatable`, `held`, `free`; of budgets `used`, `hard`"


def _alerts() -> Iterable[str]:
    for name, alerts in GROUPS.items():
        yield f"\n### {name}\n"
        for alert in alerts:
            when = f"after {alert.minutes} min" if alert.minutes else "at once"
            yield f"\n#### {alert.name}\n\n{alert.severity}, {when}: `{alert.expr}`\n\n{alert.do}\n"
