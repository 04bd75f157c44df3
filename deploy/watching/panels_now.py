"""The top of the dashboard: what is wrong now, and since when; numbers that speak in colours.

They are asked for now alone, so that nothing that was seen hours ago passes for the present.
"""

from collections.abc import Mapping, Sequence

from deploy.watching.panel import BAD, GOOD, PLAIN, SLOW, Panel, Shape, rate

_FIRING = 'ALERTS{alertname=~"Gpubinder.+", alertstate="firing"}'
_TROUBLE = {GOOD: 0.0, BAD: 1.0}
_COUNT = {PLAIN: 0.0}
_REVIEWS = "gpubinder_admission_reviews_total"
_UNANSWERED, _ASKED = 'verdict=~"unanswered|failed|unchecked"', 'verdict!="untouched"'


def _number(title: str, query: str, colours: Mapping[str, float], unit: str = "short", **more: object) -> Panel:
    return Panel(title, [(query, "")], unit, 3, Shape.NUMBER, colours=colours, **more)  # type: ignore[arg-type]  # options of a panel


NOW: Mapping[str, Sequence[Panel]] = {
    "At a glance": (
        _number(
            "Alerts firing",
            f"count({_FIRING}) or vector(0)",
            _TROUBLE,
            text="Which, and since when, stands below; what to do in docs/operating/monitoring.md by the alert's name. "
            "Always 0 where the rules of deploy/alerts are not loaded.",
        ),
        _number(
            "Processes",
            "count(gpubinder_build_info) or vector(0)",
            {BAD: 0, GOOD: 1},
            text="Those that are scraped; two of each role by default (GpubinderNotScraped).",
        ),
        _number(
            "Binder leads",
            'max(gpubinder_leading{role="binder"}) or vector(0)',
            {BAD: 0, GOOD: 1},
            words={0: "nobody", 1: "yes"},
            text="Without a leading binder nothing is placed (GpubinderNoLeader).",
        ),
        _number(
            "NATS",
            "min(gpubinder_nats_connected) or vector(0)",
            {BAD: 0, GOOD: 1},
            words={0: "away", 1: "connected"},
            text="Away where one process or more has no connection (GpubinderNatsDown).",
        ),
        _number(
            "Waits to be stored",
            "max(gpubinder_append_waiting_seconds)",
            {GOOD: 0, SLOW: 5, BAD: 60},
            "s",
            text="For how long the oldest message waits for NATS (GpubinderAppendsStuck).",
        ),
        _number(
            "Waits for a decision",
            'min(gpubinder_lag_seconds{stage="decide"})',
            {GOOD: 0, SLOW: 5, BAD: 30},
            "s",
            text="How far the binder is behind what is stored (GpubinderBehind). 0 while NATS is away: see there.",
        ),
        _number(
            "Kinds not known",
            "count(max by (kind) (gpubinder_kind_current) == 0) or vector(0)",
            _TROUBLE,
            text="While there are any, nothing is placed (GpubinderKindUnknown).",
        ),
        _number(
            "Reviews without answer",
            f"({rate(_REVIEWS, _UNANSWERED)} or vector(0)) / ({rate(_REVIEWS, _ASKED)} > 0)",
            {GOOD: 0, SLOW: 0.01, BAD: 0.05},
            "percentunit",
            nothing="no reviews",
            text="VMs that ask for GPUs do not start (GpubinderAdmissionFails).",
        ),
        _number("VMs placed", 'max(gpubinder_sets{standing="placed"})', _COUNT),
        _number("VMs waiting", 'max(gpubinder_sets{standing="waiting"})', _COUNT, text="By reason and age below."),
        _number(
            "Waits longest",
            "max(gpubinder_waiting_oldest_seconds) or vector(0)",
            {GOOD: 0, SLOW: 6 * 3600},
            "s",
            text="The VM that waits longest for a place (GpubinderSetsWaitLong).",
        ),
        _number(
            "Placing",
            "max(gpubinder_paused)",
            {GOOD: 0, SLOW: 1},
            words={0: "goes on", 1: "paused"},
            text="Paused by command or by the settings (GpubinderPaused).",
        ),
        _number(
            "Not written yet",
            "max(gpubinder_writes_open)",
            {GOOD: 0, SLOW: 50},
            nothing="no projector",
            text="Decisions on their way to the cluster (GpubinderProjectorBehind).",
        ),
        _number(
            "Writes refused",
            "max(gpubinder_writes_again)",
            {GOOD: 0, SLOW: 1},
            nothing="no projector",
            text="Decisions that the API server does not take (GpubinderWritesRefused).",
        ),
        _number(
            "Deletions that wait",
            "sum(max by (kind) (gpubinder_deletions_waiting))",
            _TROUBLE,
            text="While NATS is away (GpubinderDeletionsWait).",
        ),
        _number(
            "Certificate ends in",
            "min(gpubinder_certificate_expiry_seconds) - time()",
            {BAD: 0, SLOW: 7 * 86_400, GOOD: 14 * 86_400},
            "s",
            text="The webhooks' own (GpubinderCertificateExpires).",
        ),
    ),
    "What is wrong, and since when": (
        Panel(
            "Alerts that fire",
            [(f"max by (alertname) ({_FIRING})", "{{alertname}}")],
            width=12,
            shape=Shape.STATES,
            colours={BAD: 0},
            words={1: "fires"},
            nothing="none",
            text="Each stands with what to do in docs/operating/monitoring.md.",
        ),
        Panel(
            "Who leads",
            [("sum by (role) (gpubinder_leading)", "{{role}}")],
            width=12,
            shape=Shape.STATES,
            colours={BAD: 0, GOOD: 1, SLOW: 2},
            words={0: "nobody", 1: "one", 2: "two"},
            text="A gap: no process of that role is scraped.",
        ),
    ),
}
"""By row."""
