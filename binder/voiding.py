"""An operator's skip of one input that no fold can read: checked against the log, then said in it (T6)."""

import msgspec

from binder.journal import Journal
from binder.logbook import append_void
from schemas.events import UnknownMessage, decode_event
from schemas.frames import Epoch, Frame, Genesis, Record, Void, decode_record
from schemas.streams import DECISIONS, EVENTS


class NotVoidable(Exception):
    """The input can't be skipped; says why, and what to do instead."""


async def void(journal: Journal, sequence: int, *, who: str, why: str, force: bool = False) -> tuple[int, Void]:
    """Skip an EVENTS message for good; return the record's DECISIONS sequence and the record.

    `force`: also one that this program can read. Raises `NotVoidable`, `LookupError` (no such stream).
    """
    newest = await _newest(journal)
    if newest is None:
        raise NotVoidable("the log has no genesis: `gpubinder adopt --fresh` begins one")
    covered = await _covered(journal)
    if sequence <= covered:
        raise NotVoidable(f"EVENTS {sequence} was decided on already: the log covers inputs up to {covered}")
    message = await journal.get(EVENTS, sequence)
    if message is None:
        last = (await journal.info(EVENTS)).last
        raise NotVoidable(f"EVENTS {sequence} does not exist: the stream ends at {last}")
    if not force and (kind := _readable(message.body)):
        raise NotVoidable(f"EVENTS {sequence} can be read, it is {kind}: say --force if folding it fails")
    record = Void(newest.log_id, newest.generation, sequence, who, why)
    return await append_void(journal, record), record


def _readable(body: bytes) -> str:
    """Name what the message is; '' where it stops the program. A malformed one does not: it is rejected."""
    try:
        return str(decode_event(body).__struct_config__.tag)
    except UnknownMessage:
        return ""
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "malformed, and is answered with a rejection"


async def _newest(journal: Journal) -> Record | None:
    last = (await journal.info(DECISIONS)).last
    message = await journal.get(DECISIONS, last) if last else None
    return None if message is None else decode_record(message.body)


async def _covered(journal: Journal) -> int:
    """Return the last EVENTS sequence that the log decided on: of its newest frame in this generation."""
    for sequence in range((await journal.info(DECISIONS)).last, 0, -1):
        message = await journal.get(DECISIONS, sequence)
        record = decode_record(message.body) if message is not None else None
        if isinstance(record, Frame):
            return record.covers_to
        if isinstance(record, Genesis):
            break
        assert record is None or isinstance(record, Epoch | Void)
    return 0
