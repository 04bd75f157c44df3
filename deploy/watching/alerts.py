"""Alerts: what must not stay unseen, when it is told, and what to do about it; rules and their page come from here.

Every alert fires in a test, on series or in a real situation: `tests/alerts`.
"""

from collections.abc import Mapping

import yaml

from deploy.watching.alert import Alert
from deploy.watching.alerts_inside import INSIDE
from deploy.watching.alerts_outside import OUTSIDE

GROUPS: Mapping[str, tuple[Alert, ...]] = {**INSIDE, **OUTSIDE}
"""All alerts, by group."""

ALERTS = tuple(alert for group in GROUPS.values() for alert in group)

_HEAD = "# Drawn from deploy/watching/alerts.py by `make generate`; edits are lost.\n"


def rules_yaml() -> str:
    """Return the rule groups as Prometheus and the PrometheusRule of its operator have them."""
    groups = [{"name": name, "rules": [alert.rule() for alert in alerts]} for name, alerts in GROUPS.items()]
    return _HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, width=120, allow_unicode=True)
