"""Each alert fires on what it is about, after its time and not before; where all is well none does."""

import re
from collections.abc import Mapping

import msgspec
import pytest
import yaml

from deploy.watching.alerts import ALERTS
from deploy.watching.catalogue import METRICS, Kind
from tests.alerts import engine
from tests.alerts.healthy import POINTS, ends, healthy, put, rising, steady, then

pytestmark = pytest.mark.promql
MINUTES = POINTS / 2 - 1


class Case(msgspec.Struct, frozen=True):
    """What is otherwise than where all is well, and which alerts fire beside the one meant."""

    series: Mapping[str, str]
    also: tuple[str, ...] = ()


ONE, TWO = 'instance="one"', 'instance="two"'
PREFIX = "gpubinder_"
CASES: Mapping[str, Case] = {
    "NotScraped": Case({"gpubinder_": "", "up{}": steady(1)}, ("NoLeader", "NoWebhooks")),
    "NoLeader": Case({f'gpubinder_leading{{{ONE},role="binder"}}': ends(1)}),
    "NotReady": Case(
        {'kube_deployment_status_replicas_available{namespace="home",deployment="gpubinder-ingest"}': then(2, 0)}
    ),
    "TwoLeaders": Case({f'gpubinder_leading{{{TWO},role="binder"}}': then(0, 1)}),
    "Stopped": Case({f'gpubinder_stopped{{{TWO},why="BrokenLog"}}': "_x30 1x3 stale"}),
    "Behind": Case({f'gpubinder_lag_seconds{{{pod},stage="decide"}}': "0x20 0+30x200" for pod in (ONE, TWO)}),
    "StandbyBehind": Case({f'gpubinder_lag_seconds{{{TWO},stage="follow"}}': then(0, 300)}),
    "EpochFlapping": Case({"gpubinder_log_epoch": "2x20 10x3 20x3 30x3 40x3 50x100"}),
    "RoleRestarts": Case({f'gpubinder_role_restarts_total{{{ONE},role="ingest"}}': rising(1)}),
    "VersionsDiffer": Case({f'gpubinder_build_info{{{TWO},version="0.2.0",rules="2"}}': steady(1)}),
    "SnapshotOld": Case({"gpubinder_snapshot_behind": then(0, 150_000)}),
    "LogicalTimeGap": Case({"gpubinder_logical_gap_seconds": then(86_400, 86_700)}),
    "Paused": Case({"gpubinder_paused": then(0, 1)}),
    "NatsDown": Case({f"gpubinder_nats_connected{{{TWO}}}": then(1, 0)}),
    "AppendsStuck": Case({f"gpubinder_append_waiting_seconds{{{ONE}}}": "0x20 0+30x200"}),
    "AppendsDenied": Case(
        {f'gpubinder_appends_total{{{ONE},stream="GPUBINDER_EVENTS",outcome="denied"}}': "_x20 1x200"}
    ),
    "StreamNearlyFull": Case({"gpubinder_stream_bytes": then(2e9, 8.5e9)}),
    "DeletionsWait": Case({"gpubinder_deletions_waiting": then(0, 3)}),
    "KindUnknown": Case({f'gpubinder_kind_current{{{pod},kind="pods"}}': then(1, 0) for pod in (ONE, TWO)}),
    "KindSilent": Case(
        {f'gpubinder_kind_silent_seconds{{{pod},kind="nodes"}}': "55x20 55+30x200" for pod in (ONE, TWO)}
    ),
    "ApiFails": Case({f'gpubinder_api_requests_total{{{ONE},verb="get",code="503"}}': "0x20 0+40x200"}),
    "Forbidden": Case({f'gpubinder_api_requests_total{{{ONE},verb="patch",code="403"}}': "0x20 0+2x200"}),
    "ProjectorBehind": Case({f'gpubinder_lag_seconds{{{ONE},stage="project"}}': "0x20 0+30x200"}),
    "WritesRetried": Case({f'gpubinder_writes_total{{{ONE},action="set",verdict="again"}}': rising(4)}),
    "WritesRefused": Case({"gpubinder_writes_again": then(0, 2)}),
    "WriterOfThePast": Case({f'gpubinder_writes_total{{{ONE},action="set",verdict="behind"}}': "_x20 1x200"}),
    "NoWebhooks": Case({f'gpubinder_lag_seconds{{{pod},stage="answer"}}': ends(0) for pod in (ONE, TWO)}),
    "AdmissionFails": Case(
        {f'gpubinder_admission_reviews_total{{{ONE},webhook="vmis",verdict="unanswered"}}': "0x20 0+5x200"}
    ),
    "AdmissionSlow": Case({f'gpubinder_admission_seconds_bucket{{{ONE},webhook="vmis",le="1.0"}}': rising(5)}),
    "WebhookBehind": Case({f'gpubinder_lag_seconds{{{TWO},stage="answer"}}': then(0, 60)}),
    "CertificateExpires": Case({f"gpubinder_certificate_expiry_seconds{{{TWO}}}": steady(3 * 86_400)}),
    "SetsStuck": Case({f'gpubinder_waiting_oldest_seconds{{{ONE},reason="WriteRefused"}}': "0+30x230"}),
    "SetsWaitLong": Case({f'gpubinder_waiting_oldest_seconds{{{ONE},reason="NoRoom"}}': then(600, 30_000)}),
    "BudgetPending": Case({f'gpubinder_waiting_sets{{{ONE},reason="OverBudget",age="to_1d"}}': then(0, 2)}),
}
"""What makes each alert fire, by its name without the prefix."""


def test_where_all_is_well_no_alert_fires() -> None:
    """Two hours of an installation that does its work: silence."""
    answer = engine.ask(healthy(), minutes=MINUTES)

    assert answer.fired() == set()
    assert set(answer.names) == {alert.name for alert in ALERTS}


def test_each_alert_has_its_case() -> None:
    """No alert ships untested."""
    assert {f"Gpubinder{name}" for name in CASES} == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_on_what_it_is_about(name: str) -> None:
    """It fires, beside it only what is told of the same trouble, after the time that it waits and with a sentence."""
    case = CASES[name]
    alert = next(one for one in ALERTS if one.name == f"Gpubinder{name}")

    answer = engine.ask(put(case.series), minutes=MINUTES)

    assert answer.fired() == {alert.name, *(f"Gpubinder{other}" for other in case.also)}
    first = answer.firing(alert.name)[0]
    assert first.at >= alert.minutes * 60
    assert first.labels["severity"] == alert.severity
    for text in first.annotations.values():
        assert not re.search(r"\{\{|error|<no value>|%!|\d\.\d{4}", text), text


def test_alerts_ask_for_metrics_that_exist() -> None:
    """Every series that a rule names is listed, with the labels that it asks for."""
    names = {one.name: set(one.labels) for one in METRICS}
    names |= {"kube_deployment_status_replicas_available": {"namespace", "deployment"}}
    names |= {f"{one.name}_bucket": {*one.labels, "le"} for one in METRICS if one.kind is Kind.HISTOGRAM}
    for file in engine.rule_files():
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                asked = re.findall(r"((?:gpubinder|kube)_\w+)(?:\{([^}]*)\})?", rule["expr"])
                assert asked
                for name, labels in asked:
                    assert set(re.findall(r"(\w+)[=!]", labels)) <= names[name], rule["alert"]
