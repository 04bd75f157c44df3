"""Alerts that need no metrics of ours: what kube-state-metrics says of the pods, also while GPUs are off."""

from collections.abc import Mapping

from deploy.watching.alert import Alert, Severity

PODS: Mapping[str, tuple[Alert, ...]] = {
    "gpubinder.pods": (
        Alert(
            "GpubinderNotReady",
            'kube_deployment_status_replicas_available{deployment=~"gpubinder-(binder|ingest|projector)"} < 1',
            10,
            Severity.WARNING,
            "No pod of {{ $labels.deployment }} in {{ $labels.namespace }} is ready",
            "Most often NATS is away, or has no leader: `kubectl get --raw` of a pod's `/readyz` names it. Meanwhile "
            "deletions wait: claims, classes, and namespaces that hold claims keep our finalizers. It goes on by "
            "itself once NATS is back; `gpubinder uninstall` lets go what waits where NATS will not come back.",
        ),
    ),
}
