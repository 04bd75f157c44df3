"""Alerts: what must not stay unseen, when it is told, and what to do about it; rules and their page come from here.

Every alert fires in a test, on series or in a real situation: `tests/alerts`.
"""

from collections.abc import Mapping

import yaml

from deploy.watching.alert import Alert
from deploy.watching.alerts_inside import INSIDE
from deploy.watching.alerts_of_pods import PODS
from deploy.watching.alerts_outside import OUTSIDE

FILES: Mapping[str, Mapping[str, tuple[Alert, ...]]] = {"gpubinder": {**INSIDE, **OUTSIDE}, "gpubinder-pods": PODS}
"""All alerts, by file and group: the second one needs no metrics of ours, so it stays where GPUs are off."""

GROUPS: Mapping[str, tuple[Alert, ...]] = {name: alerts for file in FILES.values() for name, alerts in file.items()}
"""All alerts, by group."""

ALERTS = tuple(alert for group in GROUPS.values() for alert in group)

_HEAD = "# Drawn from deploy/watching/alerts.py by `make generate`; edits are lost.\n"


def rules_yaml(file: str) -> str:
    """Return a file's rule groups as Prometheus and the PrometheusRule of its operator have them."""
    groups = [{"name": name, "rules": [alert.rule() for alert in alerts]} for name, alerts in FILES[file].items()]
    return _HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, width=120, allow_unicode=True)
