"""How writes ended, counted for whoever watches, and what log lines say of each."""

from typing import Any

from projector.lanes import Lanes
from projector.verdicts import Kind
from schemas.events import Outcome


class Tally:
    """`ended`: how many writes ended so, by action and kind of verdict."""

    def __init__(self, lanes: Lanes[Any]) -> None:
        self._lanes = lanes
        self.ended: dict[tuple[str, Kind], int] = {}

    @property
    def open(self) -> int:
        """How many decisions are not written yet."""
        return self._lanes.open

    @property
    def refused(self) -> int:
        """How many of them were refused as they are, and come again slowly."""
        return self._lanes.refused

    def count(self, outcome: Outcome, kind: Kind) -> None:
        """Count one."""
        self.ended[outcome.action, kind] = self.ended.get((outcome.action, kind), 0) + 1


def log_keys(outcome: Outcome) -> dict[str, object]:
    """Return the keys of a log line about a write: the place of its decision, and the object."""
    return {
        "action": outcome.action,
        "events_seq": outcome.stamp.sequence,
        "entry": outcome.stamp.entry,
        "generation": outcome.stamp.generation,
        "namespace": outcome.namespace,
        "name": outcome.name,
        "vmi_uid": outcome.vmi_uid,
    }
