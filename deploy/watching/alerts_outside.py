"""Alerts on what the program does to a cluster: what it sees and writes, whom it answers, and who waits."""

from collections.abc import Mapping

from deploy.watching.alert import Alert, Severity, happened

_CRITICAL, _WARNING, _INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
_WRONG = "WriteRefused|RequestsMismatch|ForeignGate|ClassNotFound|NoLauncher|NotToldYet"
_ASKED = 'sum(rate(gpubinder_admission_reviews_total{verdict!="untouched"}[5m]))'


OUTSIDE: Mapping[str, tuple[Alert, ...]] = {
    "gpubinder.cluster": (
        Alert(
            "GpubinderKindUnknown",
            "max by (kind) (gpubinder_kind_current) == 0",
            5,
            _CRITICAL,
            "Not all {{ $labels.kind }} are known, so nothing is placed",
            "Ingest can't list or watch them: read its log lines of that kind. Most often RBAC, a "
            "missing CRD, or an API "
            "server that is overloaded.",
        ),
        Alert(
            "GpubinderKindSilent",
            "min by (kind) (gpubinder_kind_silent_seconds) > 600",
            5,
            _WARNING,
            "The watch of {{ $labels.kind }} shows no progress for {{ $value | humanizeDuration }}",
            "Bookmarks come about each minute. Read ingest's log lines of that kind; restart ingest.",
        ),
        Alert(
            "GpubinderApiFails",
            'sum(rate(gpubinder_api_requests_total{code=~"0|429|5.."}[5m]))'
            " / sum(rate(gpubinder_api_requests_total[5m])) > 0.2",
            5,
            _WARNING,
            "{{ $value | humanizePercentage }} of the requests to the API server fail",
            "It is overloaded, restarting or cut off. Placing waits for it, and goes on by itself.",
        ),
        Alert(
            "GpubinderForbidden",
            'sum by (verb) (increase(gpubinder_api_requests_total{code="403"}[10m])) > 10',
            0,
            _WARNING,
            'The API server forbids {{ $labels.verb }}: {{ printf "%.0f" $value }} times in 10 minutes',
            "RBAC does not fit the program's version, a quota or another admission policy refuses: log lines "
            "`write.refused` name object and field.",
        ),
        Alert(
            "GpubinderProjectorBehind",
            'min by (stage) (gpubinder_lag_seconds{stage="project"}) > 60',
            1,
            _CRITICAL,
            "Decisions wait to be written for {{ $value | humanizeDuration }}",
            "Is there a leading projector? Look at its CPU limit and at GpubinderApiFails.",
        ),
        Alert(
            "GpubinderWritesRetried",
            'sum(increase(gpubinder_writes_total{verdict="again"}[10m])) > 30',
            5,
            _WARNING,
            'Writes to the cluster were tried again {{ printf "%.0f" $value }} times in 10 minutes',
            "Log lines `write.unclear` name object, code and reason.",
        ),
        Alert(
            "GpubinderWritesRefused",
            "max(gpubinder_writes_again) > 0",
            10,
            _WARNING,
            '{{ printf "%.0f" $value }} decisions can\'t be shown: the API server refuses them',
            "Log lines `write.refused` name object, code, reason and field: a policy or webhook of somebody else, or a "
            "finalizer that was put on by hand.",
        ),
        Alert(
            "GpubinderWriterOfThePast",
            happened('gpubinder_writes_total{verdict="behind"}'),
            0,
            _CRITICAL,
            "A projector writes what a newer decision has overtaken",
            "Two logs serve one cluster: a process is left over from before `gpubinder adopt`, or has "
            "another NATS. Find it "
            "and end it.",
        ),
    ),
    "gpubinder.admission": (
        Alert(
            "GpubinderNoWebhooks",
            'absent(gpubinder_lag_seconds{stage="answer"})',
            2,
            _CRITICAL,
            "No webhook is scraped",
            "While none answers, VMs that ask for GPUs do not start; writes pass with their budgets unchecked. Are the "
            "pods of `gpubinder-webhooks` there, and ready?",
        ),
        Alert(
            "GpubinderAdmissionFails",
            'sum(rate(gpubinder_admission_reviews_total{verdict=~"unanswered|failed|unchecked"}[5m]))'
            f" / {_ASKED} > 0.05",
            5,
            _CRITICAL,
            "{{ $value | humanizePercentage }} of the reviews get no answer from the binder",
            "Starts are refused with a sentence that says why; other writes pass, their budgets unchecked. Is there a "
            "leader, is NATS there?",
        ),
        Alert(
            "GpubinderAdmissionSlow",
            "histogram_quantile(0.99, sum by (le, webhook) (rate(gpubinder_admission_seconds_bucket[5m]))) > 2",
            10,
            _WARNING,
            "Answers to {{ $labels.webhook }} take {{ $value | humanizeDuration }} (p99)",
            "The API server gives up after 10 s. Look at `gpubinder_frame_append_seconds`: fsync of NATS "
            "is most of it.",
        ),
        Alert(
            "GpubinderWebhookBehind",
            'gpubinder_lag_seconds{stage="answer"} > 30',
            1,
            _CRITICAL,
            "{{ or $labels.pod $labels.instance }} reads answers {{ $value | humanizeDuration }} late",
            "Starts that reach this replica are refused. Its log says `decisions.lost` or `decisions.gap`; restart it.",
        ),
        Alert(
            "GpubinderCertificateExpires",
            "min(gpubinder_certificate_expiry_seconds) - time() < 7 * 86400",
            60,
            _WARNING,
            "The webhooks' certificate ends in {{ $value | humanizeDuration }}",
            "cert-manager, or the program itself, should have renewed it: docs/operating/rotation.md. "
            "With an expired one "
            "no VM that asks for GPUs starts.",
        ),
    ),
    "gpubinder.tenants": (
        Alert(
            "GpubinderSetsStuck",
            f'max by (reason) (gpubinder_waiting_oldest_seconds{{reason=~"{_WRONG}"}}) > 900',
            0,
            _WARNING,
            "VMs wait for {{ $value | humanizeDuration }} with the reason {{ $labels.reason }}",
            "This is no lack of room: `kubectl get gpuclaims -A` shows which, `gpubinder explain NAMESPACE/VM` why.",
        ),
        Alert(
            "GpubinderSetsWaitLong",
            f'max by (reason) (gpubinder_waiting_oldest_seconds{{reason!~"OverBudget|{_WRONG}"}}) > 6 * 3600',
            0,
            _INFO,
            "The VM that waits longest waits for {{ $value | humanizeDuration }}: {{ $labels.reason }}",
            "There is no room of that kind: add nodes, or see who holds units (`gpubinder replay`, docs/usage.md).",
        ),
        Alert(
            "GpubinderBudgetPending",
            'sum(max by (reason, age) (gpubinder_waiting_sets{reason="OverBudget",age=~"to_1d|over_1d"})) > 0',
            0,
            _INFO,
            '{{ printf "%.0f" $value }} VMs wait for more than an hour for their tenant\'s budget',
            "The tenant frees units, or somebody above raises the budget: docs/budgets.md.",
        ),
    ),
}
"""By group."""
