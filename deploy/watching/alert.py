"""What an alert is: when it is told, how soon somebody must look, and what to do about it."""

from enum import StrEnum
from typing import Any

import msgspec

RUNBOOK = "docs/operating/monitoring.md"


class Severity(StrEnum):
    """How soon somebody must look: at once, today, when there is time."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Alert(msgspec.Struct, frozen=True):
    """One alert. `minutes`: how long it must be so; `summary` is a template; `do`: what an operator does."""

    name: str
    expr: str
    minutes: int
    severity: Severity
    summary: str
    do: str

    def rule(self) -> dict[str, Any]:
        """Return it as a rule of Prometheus."""
        held = {"for": f"{self.minutes}m"} if self.minutes else {}
        return {
            "alert": self.name,
            "expr": self.expr,
            **held,
            "labels": {"severity": str(self.severity)},
            "annotations": {
                "summary": self.summary,
                "description": self.do,
                "runbook_url": f"{RUNBOOK}#{self.name.lower()}",
            },
        }


def happened(series: str, by: str = "") -> str:
    """Return the condition that a counter rose within ten minutes, be it the first time that its labels are met.

    A counter that begins at 1 has not risen for `increase`, which knows no value before: the second would be told.
    """
    total = f"sum by ({by}) " if by else "sum"
    return f"{total}(increase({series}[10m])) > 0 or {total}({series} unless {series} offset 10m) > 0"
