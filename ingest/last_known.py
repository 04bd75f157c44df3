"""Which resourceVersion of a kind a message on EVENTS knows: all that ingest takes over from the one before it."""

from typing import Protocol

import msgspec

from binder.journal import Journal, Message
from schemas.events import Changes, Progress, SessionSynced, UnknownMessage, decode_event
from schemas.objects import rv_after


class Recalling(Journal, Protocol):
    """A journal that finds the newest message on a subject."""

    async def last(self, stream: str, subject: str) -> Message | None:
        """Return the newest message on a subject, None where there is none."""
        ...


def version_in(body: bytes, kind: str) -> str:
    """Return the newest version of `kind` in a stored message; '' where it names none, or can't be read."""
    try:
        event = decode_event(body)
    except (msgspec.MsgspecError, UnknownMessage):
        return ""
    match event:
        case SessionSynced():
            return event.rv
        case Changes():
            return _newest([change.rv for change in event.changes])
        case Progress():
            return _newest([rv for name, _, rv in event.marks if name == kind])
        case _:
            return ""


def _newest(versions: list[str]) -> str:
    newest = ""
    for version in versions:
        if rv_after(version, newest):
            newest = version
    return newest
