"""The main ways to install the chart, as values: each is rendered, looked at and kept as a golden file."""

from typing import Any, Final

SECRET_CERTIFICATE: Final = {
    "webhooks": {
        "certificate": {
            "from": "secret",
            "secretName": "serving",
            "caBundle": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        }
    }
}

VALUE_SETS: Final[dict[str, dict[str, Any]]] = {
    # As it comes: GPUs on, a NATS of our own, certificates made by the webhooks.
    "default": {},
    # GPUs off: finalizers and usage records are served, and nothing else is there.
    "disabled": {"enabled": False, "metrics": {"alerts": {"enabled": True}}},
    # A NATS of the operator's, with credentials files and TLS; certificates of the operator's.
    "own-nats": {
        **SECRET_CERTIFICATE,
        "nats": {
            "server": {"enabled": False},
            "urls": ["tls://nats-a.example.org:4222", "tls://nats-b.example.org:4222"],
            "credentialsSecret": "nats-credentials",
            "tls": {"secretName": "nats-tls", "clientCertificate": True},
            "monitors": ["http://nats-a.example.org:8222"],
        },
        "classReaders": [{"kind": "Group", "name": "tenants", "apiGroup": "rbac.authorization.k8s.io"}],
    },
    # A cozystack cluster: its kinds and its accounting are there, KubeVirt's place is known, and more.
    "cozystack": {
        "crds": {"workloads": False},
        "accounting": {"enabled": False},
        "settings": {"kubevirtNamespace": "cozy-kubevirt", "licenceNamespace": "cozy-gpu"},
        "webhooks": {"certificate": {"from": "certManager"}},
        "metrics": {one: {"enabled": True} for one in ("serviceMonitor", "dashboards", "alerts")},
        "networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"], "ports": [6443]}},
        "nats": {"server": {"tls": {"secretName": "nats-tls"}, "storage": {"className": "replicated"}}},
    },
    # One machine: one server of NATS, one of each role, no licences, nothing kept.
    "small": {
        **SECRET_CERTIFICATE,
        "replicas": 1,
        "licences": {"enabled": False},
        "crds": {"keep": False},
        "networkPolicy": {"enabled": False},
        "topologySpread": {"enabled": False},
        "nats": {"server": {"servers": 1, "storage": {"size": "1Gi", "limit": "900MB", "whenDeleted": "Delete"}}},
    },
}
