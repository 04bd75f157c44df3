"""A frame that a leader has written, as it is told to whoever watches: what was decided, on which inputs, how fast.

Told once the frame is durable, and never to the heart. `tell` writes the log's lines of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import structlog

from binder.journal import Message
from schemas import decisions as d
from schemas.decided import Decided, VmiId
from schemas.frames import Entry

_log = structlog.get_logger(__name__)


class Written(msgspec.Struct, frozen=True):
    """One frame: its DECISIONS sequence, the inputs it covers, what was decided on them.

    `decide_seconds`: to fold and decide all of its inputs; `append_seconds`: until it was durable.
    """

    sequence: int
    inputs: Sequence[Message]
    entries: Sequence[Entry]
    decide_seconds: float
    append_seconds: float


Witness = Callable[[Written], None]
"""Is told each frame that this process wrote. It runs between two frames: it must be quick, and raise nothing."""


def unwatched(_written: Written) -> None:
    """Tell nobody."""


def tell(written: Written) -> None:
    """Log each decision with the input it was made on, the frame it stands in, and whom it is about."""
    for entry in written.entries:
        for decision in entry.decisions:
            _log.info("decided", events_seq=entry.cause, decisions_seq=written.sequence, **about(decision))


def about(decision: Decided) -> dict[str, Any]:
    """Return what a log line says of a decision: kind, reason, VM or object, namespace, node; no sentence, no value."""
    said: dict[str, Any] = {"decision": str(decision.__struct_config__.tag)}
    if reason := reason_of(decision):
        said["reason"] = reason
    vmi = getattr(decision, "vmi", None)
    if isinstance(vmi, VmiId):
        said |= {"namespace": vmi.namespace, "vm": vmi.name, "vmi_uid": vmi.uid}
    else:
        said |= _named(decision)
    if node := getattr(decision, "node", ""):
        said["node"] = node
    return said


def reason_of(decision: Decided) -> str:
    """Return the word of a closed list that says why, '' for a decision that has none."""
    for field in ("reason", "why", "cause", "order"):
        found = getattr(decision, field, None)
        if found is not None and not isinstance(decision, d.Rejected):
            return str(found)
    return ""


def _named(decision: Decided) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if namespace := getattr(decision, "namespace", ""):
        said["namespace"] = namespace
    if name := getattr(decision, "name", ""):
        of_vm = isinstance(decision, d.VmiAdmitted | d.Refused | d.Commanded)
        said["vm" if of_vm else "name"] = name
    if claims := getattr(decision, "claims", ()):
        said["claims"] = [claim.name for claim in claims]
    return said
