"""The graphs of the dashboard, below its numbers: GPUs, who waits, admission, deciding, NATS, the cluster."""

from collections.abc import Mapping, Sequence

from deploy.watching.panel import BAD, GOOD, RATE, SLOW, Panel, p99, rate
from deploy.watching.process import ALL, OVER, SHARES
from deploy.watching.state import AGES, MORE

_AGE_NAMES = dict(
    zip((*AGES, MORE), ("up to 1 min", "up to 10 min", "up to 1 h", "up to 1 day", "over 1 day"), strict=True)
)
_AGE_TINTS = dict(zip(_AGE_NAMES.values(), (GOOD, "yellow", SLOW, BAD, "purple"), strict=True))
_USED_NAMES = dict(
    zip((*SHARES, ALL, OVER), ("unused", "up to half", "up to 90 %", "above 90 %", "all used", "over"), strict=True)
)
_USED_TINTS = dict(zip(_USED_NAMES.values(), ("text", GOOD, "yellow", SLOW, BAD, "purple"), strict=True))

DECISIONS: Mapping[str, str] = {
    "place given": "set-placed|held-placed",
    "told to wait": "set-waits|held-waits",
    "refused": "refused|rejected",
    "let through": "vmi-admitted|pod-admitted|write-passed",
    "ended": "set-closed|set-released|held-freed|class-freed|claim-dropped|vmi-given-up",
}
"""What decisions are called together, and their kinds; all others are `other`."""

_INPUTS = {
    "admission": 'kind=~"request.+"',
    "writes ended": 'kind="outcome"',
    "clock, commands": 'kind=~"tick|continue|progress|command"',
    "cluster": 'kind!~"request.+|outcome|tick|continue|progress|command"',
}

_FAILS, _FORBIDDEN = 'code=~"0|429|5.."', 'code="403"'

SINCE: Mapping[str, Sequence[Panel]] = {
    "GPUs": (
        Panel(
            "Units held, by class",
            [('max by (gpu_class) (gpubinder_class_units{amount="held"})', "{{gpu_class}}")],
            many=True,
        ),
        Panel(
            "Units free, by class",
            [('max by (gpu_class) (gpubinder_class_units{amount="free"})', "{{gpu_class}}")],
            many=True,
        ),
        Panel(
            "Share of units held, by class",
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
            many=True,
        ),
    ),
    "Who waits": (
        Panel(
            "VMs waiting, by reason",
            [("sum by (reason) (max by (reason, age) (gpubinder_waiting_sets)) > 0", "{{reason}}")],
            stacked=True,
            nothing="none waits",
            text="`gpubinder explain NAMESPACE/VM` says why one does. GpubinderSetsStuck names the reasons that are no "
            "lack of room.",
        ),
        Panel(
            "VMs waiting, by how long",
            [
                (f'sum(max by (reason) (gpubinder_waiting_sets{{age="{age}"}}))', name)
                for age, name in _AGE_NAMES.items()
            ],
            stacked=True,
            tints=_AGE_TINTS,
        ),
        Panel(
            "Keys of budgets, by how full",
            [(f'max(gpubinder_budget_keys{{used="{used}"}})', name) for used, name in _USED_NAMES.items()],
            stacked=True,
            tints=_USED_TINTS,
            text="A key: one class in one tenant's budget.",
        ),
    ),
    "Admission": (
        Panel(
            "Reviews, by verdict",
            [(f"sum by (verdict) (rate(gpubinder_admission_reviews_total[{RATE}]))", "{{verdict}}")],
            "reqps",
            stacked=True,
            tints={
                "admitted": GOOD,
                "booked": "blue",
                "untouched": "text",
                "refused": "yellow",
                "unchecked": SLOW,
                "limited": SLOW,
                "unanswered": BAD,
                "failed": "dark-red",
            },
            text="Red: the binder gave no answer in time. Refused ones have their reason beside.",
        ),
        Panel(
            "Refusals, by reason",
            [(f'sum by (reason) (rate(gpubinder_decisions_total{{kind="refused"}}[{RATE}]))', "{{reason}}")],
            "reqps",
            stacked=True,
            nothing="none",
        ),
        Panel(
            "Time to an answer, p99",
            [(p99("gpubinder_admission_seconds", "webhook"), "{{webhook}}")],
            "s",
            colours={GOOD: 0, SLOW: 2},
            text="The API server gives up after 10 s (GpubinderAdmissionSlow).",
        ),
    ),
    "Deciding": (
        Panel("Inputs", [(rate("gpubinder_inputs_total", one), name) for name, one in _INPUTS.items()], "ops"),
        Panel(
            "Decisions",
            [
                *((rate("gpubinder_decisions_total", f'kind=~"{kinds}"'), name) for name, kinds in DECISIONS.items()),
                (rate("gpubinder_decisions_total", f'kind!~"{"|".join(DECISIONS.values())}"'), "other"),
            ],
            "ops",
            tints={"place given": GOOD, "told to wait": SLOW, "refused": "yellow", "other": "text"},
        ),
        Panel(
            "Time of a frame, p99",
            [
                (p99("gpubinder_decide_seconds"), "fold and decide"),
                (p99("gpubinder_frame_append_seconds"), "until durable"),
            ],
            "s",
            text="The first is the binder's own work, the second is NATS and its disks.",
        ),
        Panel(
            "Behind, by stage",
            [("max by (stage) (gpubinder_lag_seconds)", "{{stage}}")],
            "s",
            colours={GOOD: 0, SLOW: 30},
            text="decide: behind EVENTS; follow, project, answer: behind DECISIONS. The slowest process counts.",
        ),
        Panel(
            "New leaders and roles started again",
            [
                (f"max(changes(gpubinder_log_epoch[{RATE}]))", "new leader"),
                (f"sum by (role) (increase(gpubinder_role_restarts_total[{RATE}]))", "{{role}}"),
            ],
            text="GpubinderEpochFlapping, GpubinderRoleRestarts.",
        ),
        Panel(
            "Inputs behind the snapshot",
            [("min(gpubinder_snapshot_behind)", "to fold at a restart")],
            colours={GOOD: 0, SLOW: 100_000},
            text="A snapshot is due every 20,000 (GpubinderSnapshotOld).",
        ),
    ),
    "NATS": (
        Panel(
            "Waits to be stored",
            [("max(gpubinder_append_waiting_seconds)", "oldest message")],
            "s",
            colours={GOOD: 0, BAD: 60},
        ),
        Panel(
            "Appends, by how they ended",
            [(f"sum by (outcome) (rate(gpubinder_appends_total[{RATE}]))", "{{outcome}}")],
            "ops",
            tints={
                "stored": GOOD,
                "conflict": "yellow",
                "unclear": SLOW,
                "unavailable": BAD,
                "denied": "purple",
                "refused": "dark-red",
            },
            text="A conflict: another writer was first, as after a change of leaders. Denied: by the account's rights.",
        ),
        Panel("Time until stored, p99", [(p99("gpubinder_append_seconds", "stream"), "{{stream}}")], "s"),
        Panel(
            "Processes connected",
            [("sum(gpubinder_nats_connected)", "connected"), ("count(gpubinder_nats_connected)", "scraped")],
            tints={"connected": GOOD, "scraped": "text"},
        ),
        Panel("Bytes of the streams", [("max by (stream) (gpubinder_stream_bytes)", "{{stream}}")], "bytes"),
        Panel(
            "Streams, how full",
            [("max by (stream) (gpubinder_stream_bytes) / max by (stream) (gpubinder_stream_max_bytes)", "{{stream}}")],
            "percentunit",
            colours={GOOD: 0, SLOW: 0.8},
            nothing="streams without limits",
            text="A full stream refuses all inputs (GpubinderStreamNearlyFull).",
        ),
    ),
    "The cluster": (
        Panel(
            "Writes, by verdict",
            [(f"sum by (verdict) (rate(gpubinder_writes_total[{RATE}]))", "{{verdict}}")],
            "ops",
            stacked=True,
            tints={"landed": GOOD, "settled": "blue", "again": SLOW, "refused": BAD, "behind": "purple"},
            text="again: not clear, tried once more. behind: a projector of the past (GpubinderWriterOfThePast).",
        ),
        Panel(
            "Writes that are open",
            [("max(gpubinder_writes_open)", "open"), ("max(gpubinder_writes_again)", "refused, tried again")],
            tints={"open": "blue", "refused, tried again": BAD},
        ),
        Panel(
            "Answers of the API server other than yes",
            [
                (f"{rate('gpubinder_api_requests_total', _FAILS)} or vector(0)", "fails: 429, 5xx, none"),
                (f"{rate('gpubinder_api_requests_total', _FORBIDDEN)} or vector(0)", "forbidden: 403"),
                (rate("gpubinder_api_requests_total", 'code!~"2..|0|429|5..|403"'), "usual: 404, 409"),
            ],
            "reqps",
            tints={
                "fails: 429, 5xx, none": BAD,
                "forbidden: 403": SLOW,
                "usual: 404, 409": "text",
            },
            text="GpubinderApiFails, GpubinderForbidden.",
        ),
        Panel("Time to an answer of the API server, p99", [(p99("gpubinder_api_seconds", "verb"), "{{verb}}")], "s"),
        Panel(
            "Watches without progress for two minutes",
            [("min by (kind) (gpubinder_kind_silent_seconds) > 120", "{{kind}}")],
            "s",
            many=True,
            nothing="none",
            colours={GOOD: 0, SLOW: 600},
            text="The API server sends a bookmark about each minute (GpubinderKindSilent).",
        ),
        Panel(
            "Deletions that wait for NATS",
            [("max by (kind) (gpubinder_deletions_waiting)", "{{kind}}")],
            text="Bring NATS back and they go on by themselves (GpubinderDeletionsWait).",
        ),
    ),
}
"""By row."""
