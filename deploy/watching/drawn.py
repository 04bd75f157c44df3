"""The files that are drawn from what is watched: alert rules, the dashboard, and the page that says what it means."""

from pathlib import Path

from deploy.watching.alerts import FILES, rules_yaml
from deploy.watching.dashboard import dashboard_json
from deploy.watching.lines_page import lines_page
from deploy.watching.page import monitoring_page

_DEPLOY = Path(__file__).resolve().parents[1]
ALERTS = _DEPLOY / "alerts"
DASHBOARD = _DEPLOY / "dashboards" / "gpubinder.json"
_OPERATING = _DEPLOY.parent / "docs" / "operating"
PAGE, LINES_PAGE = _OPERATING / "monitoring.md", _OPERATING / "logs.md"


def drawn() -> dict[Path, str]:
    """Return what each of them must hold."""
    rules = {ALERTS / f"{file}.yaml": rules_yaml(file) for file in FILES}
    return rules | {DASHBOARD: dashboard_json(), PAGE: monitoring_page(), LINES_PAGE: lines_page()}
