"""Alerts on the program itself: whether it decides, and whether NATS keeps what it decides."""

from collections.abc import Mapping

from deploy.watching.alert import Alert, Severity, happened

_CRITICAL, _WARNING, _INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
_LED = " or ".join(
    f'absent(gpubinder_leading{{role="{role}"}}) or max by (role) (gpubinder_leading{{role="{role}"}}) < 1'
    for role in ("binder", "ingest", "projector")
)

INSIDE: Mapping[str, tuple[Alert, ...]] = {
    "gpubinder.deciding": (
        Alert(
            "GpubinderNotScraped",
            "absent(gpubinder_build_info)",
            5,
            _CRITICAL,
            "No gpubinder process is scraped",
            "Are its pods there (`kubectl get pods`)? Do ServiceMonitor, NetworkPolicy and port fit? While none runs, "
            "VMs that ask for GPUs do not start and deletions of claims wait.",
        ),
        Alert(
            "GpubinderNoLeader",
            _LED,
            1,
            _CRITICAL,
            "Nobody leads as {{ $labels.role }}",
            "Read the newest log lines of its pods: `lease not reachable` means the API server, `frame "
            "tried again` NATS, "
            "an exit with code 3 the log itself (see GpubinderStopped). Without a binder nothing is placed, without "
            "ingest nothing is seen, without a projector nothing is pinned.",
        ),
        Alert(
            "GpubinderTwoLeaders",
            "sum by (role) (gpubinder_leading) > 1",
            2,
            _WARNING,
            '{{ printf "%.0f" $value }} processes believe that they lead as {{ $labels.role }}',
            "No harm is done: the log takes frames of the newest epoch alone. Look for clocks that jump, "
            "a pod that was "
            "stopped and woken, or two installations that share a namespace's leases.",
        ),
        Alert(
            "GpubinderStopped",
            "max by (why) (gpubinder_stopped) > 0",
            0,
            _CRITICAL,
            "A process ends because of {{ $labels.why }}",
            "Its last log line says the object and the remedy. BrokenLog, UnreadableLog, DataLoss: stop all processes, "
            "keep the streams, "
            "run `gpubinder verify`, then restore or `gpubinder adopt`. NotOurs: the anchor names another log. "
            "UnknownMessage: run the version that wrote it, or `gpubinder void`.",
        ),
        Alert(
            "GpubinderBehind",
            'min by (stage) (gpubinder_lag_seconds{stage="decide"}) > 30',
            1,
            _CRITICAL,
            "Inputs wait for a decision for {{ $value | humanizeDuration }}",
            "Is there a leader? Is NATS slow (`gpubinder_frame_append_seconds`) or the binder "
            "(`gpubinder_decide_seconds`, its CPU limit)?",
        ),
        Alert(
            "GpubinderStandbyBehind",
            'gpubinder_lag_seconds{stage="follow"} > 120',
            5,
            _WARNING,
            "{{ or $labels.pod $labels.instance }} follows the log {{ $value | humanizeDuration }} late",
            "It would take over late. Give it more CPU; look at GpubinderSnapshotOld.",
        ),
        Alert(
            "GpubinderEpochFlapping",
            "max(changes(gpubinder_log_epoch[15m])) > 3",
            0,
            _WARNING,
            'Leadership changed {{ printf "%.0f" $value }} times in 15 minutes',
            "Look for processes that restart, an API server that answers leases late (renewal has 3 s), or a NATS that "
            "loses its own leader.",
        ),
        Alert(
            "GpubinderRoleRestarts",
            "sum by (role) (increase(gpubinder_role_restarts_total[10m])) > 5",
            0,
            _WARNING,
            'The role {{ $labels.role }} was started again {{ printf "%.0f" $value }} times in 10 minutes',
            "The log line `role starts again` says why: most often NATS or the API server is away.",
        ),
        Alert(
            "GpubinderVersionsDiffer",
            "count(count by (rules) (gpubinder_build_info)) > 1",
            30,
            _WARNING,
            'Processes with {{ printf "%.0f" $value }} versions of the rules run side by side',
            "A rollout is stuck. Finish it or roll it back: `kubectl rollout status`, `kubectl rollout undo`.",
        ),
        Alert(
            "GpubinderSnapshotOld",
            "min(gpubinder_snapshot_behind) > 100000",
            10,
            _WARNING,
            'A restart has to fold {{ printf "%.0f" $value }} inputs',
            "A snapshot is due every 20,000. Look for `snapshot not kept` in the leader's log: the "
            "stream of snapshots is "
            "full, or its permission is missing.",
        ),
        Alert(
            "GpubinderLogicalTimeGap",
            'max(delta(gpubinder_logical_gap_seconds[15m])) > 60 and on () max(gpubinder_sets{standing="placed"}) > 0',
            0,
            _WARNING,
            "{{ $value | humanizeDuration }} did not count as time",
            "Nothing was decided meanwhile: waits and graces are longer by as much. Look at GpubinderNoLeader and "
            "GpubinderNatsDown of that time.",
        ),
        Alert(
            "GpubinderPaused",
            "max(gpubinder_paused) > 0",
            60,
            _INFO,
            "Placing is paused for more than an hour",
            "`gpubinder resume` goes on; settings say `paused` or `enabled` in the ConfigMap.",
        ),
    ),
    "gpubinder.nats": (
        Alert(
            "GpubinderNatsDown",
            "gpubinder_nats_connected == 0",
            1,
            _CRITICAL,
            "{{ or $labels.pod $labels.instance }} has no connection to NATS",
            "VMs that ask for GPUs do not start, nothing is placed, deletions of claims and classes "
            "wait; what runs goes on "
            "running. Bring NATS back: everything goes on by itself. Is the data lost for good, `gpubinder adopt`.",
        ),
        Alert(
            "GpubinderAppendsStuck",
            "max(gpubinder_append_waiting_seconds) > 60",
            1,
            _CRITICAL,
            "A message waits to be stored for {{ $value | humanizeDuration }}",
            "NATS answers, and takes nothing: no quorum (`nats server report jetstream`, as the user `system`), "
            "a stream or the disk is "
            "full, or the account "
            "may not publish (log line `nats permission missing`).",
        ),
        Alert(
            "GpubinderAppendsDenied",
            happened('gpubinder_appends_total{outcome="denied"}', "stream"),
            0,
            _CRITICAL,
            "NATS refuses messages for {{ $labels.stream }}: the account may not publish them",
            "Give the role's account its permissions again; the log line `nats permission missing` names the subject.",
        ),
        Alert(
            "GpubinderStreamNearlyFull",
            "max by (stream) (gpubinder_stream_bytes) / max by (stream) (gpubinder_stream_max_bytes) > 0.8",
            5,
            _WARNING,
            "{{ $labels.stream }} is {{ $value | humanizePercentage }} full",
            "The log is never trimmed by itself: raise `max_bytes` and the volume, or archive and begin "
            "a new generation "
            "(docs/operating/backup.md). A full stream refuses all inputs.",
        ),
        Alert(
            "GpubinderDeletionsWait",
            "max by (kind) (gpubinder_deletions_waiting) > 0",
            2,
            _CRITICAL,
            'Deletions of {{ printf "%.0f" $value }} {{ $labels.kind }} wait for NATS',
            "Bring NATS back, they go on by themselves. Leaving for good: `gpubinder uninstall` releases "
            "the finalizers.",
        ),
    ),
}
"""By group."""
