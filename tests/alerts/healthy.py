"""Series of an installation where all is well: two processes of all roles, the first of them leads."""

from collections.abc import Mapping

from deploy.watching.state import MORE

POINTS = 240
"""Two hours of values, one each half minute."""


def steady(value: float, points: int = POINTS) -> str:
    """Return a series that stays as it is."""
    return f"{value:g}x{points}"


def rising(by: float, points: int = POINTS) -> str:
    """Return a counter that grows by as much at each value."""
    return f"0+{by:g}x{points}"


def then(before: float, after: float, *, at: int = 20, points: int = POINTS) -> str:
    """Return a series that has another value from a point on."""
    return f"{before:g}x{at - 1} {after:g}x{points - at}"


def ends(value: float, *, at: int = 20) -> str:
    """Return a series that is scraped no more from a point on."""
    return f"{value:g}x{at - 1} stale"


def healthy() -> dict[str, str]:
    """Return the series."""
    series: dict[str, str] = {}
    for pod in ("one", "two"):
        here = f'instance="{pod}"'
        series[f'gpubinder_build_info{{{here},version="0.1.0",rules="1"}}'] = steady(1)
        for role in ("binder", "ingest", "projector", "accounting"):
            series[f'gpubinder_leading{{{here},role="{role}"}}'] = steady(float(pod == "one"))
        series[f"gpubinder_nats_connected{{{here}}}"] = steady(1)
        series[f"gpubinder_append_waiting_seconds{{{here}}}"] = steady(0)
        for stage in ("decide", "follow", "answer"):
            series[f'gpubinder_lag_seconds{{{here},stage="{stage}"}}'] = steady(0)
        series[f"gpubinder_log_epoch{{{here}}}"] = steady(2)
        series[f"gpubinder_snapshot_behind{{{here}}}"] = steady(12_000)
        series[f"gpubinder_logical_gap_seconds{{{here}}}"] = steady(86_400)
        series[f'gpubinder_sets{{{here},standing="placed"}}'] = steady(40)
        series[f"gpubinder_paused{{{here}}}"] = steady(0)
        for kind in ("nodes", "pods"):
            series[f'gpubinder_kind_current{{{here},kind="{kind}"}}'] = steady(1)
            series[f'gpubinder_kind_silent_seconds{{{here},kind="{kind}"}}'] = steady(55)
        series[f'gpubinder_stream_bytes{{{here},stream="GPUBINDER_EVENTS"}}'] = steady(2e9)
        series[f'gpubinder_stream_max_bytes{{{here},stream="GPUBINDER_EVENTS"}}'] = steady(1e10)
        series[f'gpubinder_deletions_waiting{{{here},kind="gpuclaims"}}'] = steady(0)
        series[f'gpubinder_api_requests_total{{{here},verb="patch",code="200"}}'] = rising(30)
        series[f'gpubinder_admission_reviews_total{{{here},webhook="vmis",verdict="admitted"}}'] = rising(10)
        series[f'gpubinder_admission_reviews_total{{{here},webhook="vmis",verdict="refused"}}'] = rising(1)
        series[f"gpubinder_certificate_expiry_seconds{{{here}}}"] = steady(90 * 86_400)
        series[f'gpubinder_waiting_sets{{{here},reason="OverBudget",age="{MORE}"}}'] = steady(0)
        series[f'gpubinder_waiting_oldest_seconds{{{here},reason="NoRoom"}}'] = steady(600)
        for le, share in (("0.1", 5), ("1.0", 10), ("5.0", 10), ("+Inf", 10)):
            series[f'gpubinder_admission_seconds_bucket{{{here},webhook="vmis",le="{le}"}}'] = rising(share)
    here = 'instance="one"'
    series[f'gpubinder_lag_seconds{{{here},stage="project"}}'] = steady(0)
    series[f"gpubinder_writes_again{{{here}}}"] = steady(0)
    series[f'gpubinder_writes_total{{{here},action="set",verdict="landed"}}'] = rising(5)
    series[f'gpubinder_writes_total{{{here},action="set",verdict="again"}}'] = rising(0.1)
    series[f'gpubinder_writes_total{{{here},action="set",verdict="behind"}}'] = steady(0)
    series[f'gpubinder_appends_total{{{here},stream="GPUBINDER_EVENTS",outcome="stored"}}'] = rising(10)
    return series


def put(changes: Mapping[str, str]) -> dict[str, str]:
    """Return the healthy series with others in their place, or beside them.

    A change's key is a whole series, or the beginning of those that it stands for; an empty value takes them away.
    """
    series = healthy()
    for key, values in changes.items():
        alike = [name for name in series if name.startswith(key)]
        series |= dict.fromkeys(alike or [key], values)
    return {name: values for name, values in series.items() if values}
