"""A stretch of the log with the state before it, as one file: re-run without cluster or NATS.

The file is gzipped JSON lines, so that it can be read with zcat: a head with log, bounds, tip and
state, then every stored message as it was stored. Bodies that are not UTF-8 stand in base64.
"""

import gzip
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from binder.follower import Follower
from binder.journal import Gap, Journal, Message, StreamInfo
from binder.snapshot import decode_state, encode_state
from binder.state import State
from binder.tip import BrokenLog, Tip
from schemas.frames import Frame, Record, decode_record
from schemas.streams import DECISIONS, EVENTS

SLICE_VERSION = 1

Place = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A sequence or a server stamp: what the chain can hash."""

_NO_TEXT = (UnicodeError, RecursionError)


class Head(msgspec.Struct, frozen=True):
    """First line: `tip` is the log's tip before the stretch, `state` what was folded to it.

    Nothing in the file vouches for `state`: compare its digest with that of `replay` at `tip`.
    """

    tip: Tip
    state: msgspec.Raw
    events_from: int
    events_to: int
    version: int = SLICE_VERSION


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stored message of a stream."""

    stream: str
    sequence: Place
    stamp_ns: Place
    subject: str
    headers: dict[str, str]
    body: str = ""
    body64: bytes = b""


class NotASlice(Exception):
    """The file can't be read as a slice; says why."""


class Slice(msgspec.Struct):
    """A read slice: state and tip before it, and its messages as a journal."""

    head: Head
    state: State
    journal: "SliceJournal"


async def cut(journal: Journal, events_from: int, events_to: int, path: Path) -> Head:
    """Write the frames that cover EVENTS from..to, the inputs they cover, and the state before them.

    Raises `LookupError` where the log does not cover the stretch.
    """
    last = (await journal.info(DECISIONS)).last
    first, until = await _frames(journal, events_from, events_to, last)
    # Folded with every check: a slice of a broken log would only prove itself.
    follower = Follower(journal)
    async for _ in follower.steps(until=first - 1):
        pass
    await follower.close()
    tip, state = follower.tip, encode_state(follower.book.state)
    before = await journal.get(DECISIONS, tip.sequence) if tip.sequence else None
    kept = [_line(DECISIONS, before)] if before is not None else []
    covers_to = tip.covers_to
    async for message in _messages(journal, DECISIONS, first, until):
        kept.append(_line(DECISIONS, message))
        record = _record(message)
        if isinstance(record, Frame):
            covers_to = record.covers_to
    covers_from = follower.book.state.events_seq + 1
    kept += [_line(EVENTS, message) async for message in _messages(journal, EVENTS, covers_from, covers_to)]
    head = Head(tip, msgspec.Raw(state), covers_from, covers_to)
    with gzip.open(path, "wb") as file:
        for line in (head, *kept):
            file.write(msgspec.json.encode(line) + b"\n")
    return head


async def _frames(journal: Journal, events_from: int, events_to: int, last: int) -> tuple[int, int]:
    """Return the first and the last DECISIONS sequence that the stretch needs."""
    first, covered = 0, 0
    async for message in _messages(journal, DECISIONS, 1, last):
        record = _record(message)
        if not isinstance(record, Frame):
            continue
        covered = record.covers_to
        if not first and covered >= max(events_from, 1):
            first = message.sequence
        if first and covered >= events_to:
            return first, message.sequence
    if not first:
        raise LookupError(f"the log decided on EVENTS up to {covered}: nothing covers {events_from} to {events_to}")
    return first, last


def _record(message: Message) -> Record:
    try:
        return decode_record(message.body)
    except msgspec.DecodeError as error:
        raise BrokenLog(message.sequence, f"unreadable to this program version ({error})") from None


def load(path: Path) -> Slice:
    """Read a slice file. Raises `NotASlice`, `OSError`."""
    try:
        with gzip.open(path, "rb") as file:
            lines = iter(file)
            head = msgspec.json.decode(next(lines), type=Head)
            messages = [msgspec.json.decode(line, type=Line) for line in lines]
            state = decode_state(bytes(head.state))
        kept = SliceJournal(messages)
    except (msgspec.MsgspecError, StopIteration, EOFError, gzip.BadGzipFile, zlib.error, *_NO_TEXT) as error:
        raise NotASlice(f"{path}: not a slice, or cut short ({error})") from None
    if head.version > SLICE_VERSION:
        raise NotASlice(f"{path}: slice version {head.version}, this program reads up to {SLICE_VERSION}")
    return Slice(head, state, kept)


class SliceJournal:
    """The messages of a slice, read like any journal; nothing can be appended."""

    def __init__(self, lines: list[Line]) -> None:
        self._streams: dict[str, dict[int, Message]] = {EVENTS: {}, DECISIONS: {}}
        for line in lines:
            self._streams.setdefault(line.stream, {})[line.sequence] = _message(line)

    async def read(self, stream: str, start: int, *, until: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield the messages from `start` in one run; ends where the slice ends."""
        run = list(_through(stream, self._streams[stream], start, until))
        if run:
            yield run

    async def get(self, stream: str, sequence: int) -> Message | None:
        """Return one message of the slice."""
        return self._streams[stream].get(sequence)

    def last(self, stream: str) -> int:
        """Return the last sequence of a stream in the slice, 0 where it has none."""
        return max(self._streams[stream], default=0)

    async def info(self, stream: str) -> StreamInfo:
        """Return the slice's bounds."""
        held = self._streams[stream]
        first, last = min(held, default=1), max(held, default=0)
        return StreamInfo(first, last, len(held), sum(len(message.body) for message in held.values()), "")

    async def append(
        self,
        stream: str,
        subject: str,
        body: bytes,
        *,
        message_id: str,
        expected_last: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Refuse: a slice is read only."""
        raise TypeError(f"a slice is read only ({stream} {subject} {message_id} {expected_last} {len(body)} {headers})")


def _through(stream: str, held: dict[int, Message], start: int, until: int | None) -> Iterator[Message]:
    last = max(held, default=0) if until is None else until
    for sequence in range(start, last + 1):
        if sequence not in held:
            raise Gap(stream, sequence, min((have for have in held if have > sequence), default=0))
        yield held[sequence]


async def _messages(journal: Journal, stream: str, start: int, until: int) -> AsyncIterator[Message]:
    if until >= start:
        async for run in journal.read(stream, start, until=until):
            for message in run:
                yield message


def _line(stream: str, message: Message) -> Line:
    line = Line(stream, message.sequence, message.stamp_ns, message.subject, dict(message.headers))
    try:
        return msgspec.structs.replace(line, body=message.body.decode())
    except UnicodeDecodeError:
        return msgspec.structs.replace(line, body64=message.body)


def _message(line: Line) -> Message:
    body = line.body64 or line.body.encode()
    return Message(line.sequence, line.stamp_ns, line.subject, line.headers, body)
