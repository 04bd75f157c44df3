"""The journal as a protocol: append-only streams of bytes, read in order.

Kept by the in-memory journal (`binder.memory_journal`) and by JetStream (`binder.jetstream`); one
contract test holds both to the same promises, the stored headers included.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import msgspec

from schemas.streams import MESSAGE_BYTES_MAX

MESSAGE_ID = "Nats-Msg-Id"
EXPECTED_STREAM = "Nats-Expected-Stream"
EXPECTED_LAST = "Nats-Expected-Last-Sequence"

RUN_MAX = 500
"""The most messages that a reader is handed at once."""


class Message(msgspec.Struct, frozen=True):
    """One stored message: sequence from 1, server stamp in integer nanoseconds, subject, headers, body."""

    sequence: int
    stamp_ns: int
    subject: str
    headers: Mapping[str, str]
    body: bytes


class StreamInfo(msgspec.Struct, frozen=True):
    """Where a stream stands: `last` is 0 on an empty one, `first` is last + 1 then.

    `bytes_max`: how many bytes it may hold, 0 where the store alone limits it.
    """

    first: int
    last: int
    messages: int
    bytes: int
    created: str
    bytes_max: int = 0


class WrongLastSequence(Exception):
    """A conditional append met another tail (10071 and 10164 alike); `last` is -1 where not told."""

    def __init__(self, last: int = -1) -> None:
        super().__init__(f"wrong last sequence, the stream is at {last}")
        self.last = last


class Unclear(Exception):
    """No answer: the append may have landed, may still land, or never will."""


class Unavailable(Exception):
    """A clear refusal that may pass: no stream leader, stream full, storage gone."""


class Full(Unavailable):
    """There is no room for it: the stream is at its limit, or the server's storage is (T8)."""


class Denied(Exception):
    """The credentials do not allow what was asked; trying again does not help, other credentials do."""


class Gap(Exception):
    """A reader met a hole: sequence `got` where `wanted` was due. Data was lost, removed or written anew."""

    def __init__(self, stream: str, wanted: int, got: int, why: str = "") -> None:
        super().__init__(f"stream {stream}: sequence {got} where {wanted} was due" + (f": {why}" if why else ""))
        self.stream, self.wanted, self.got = stream, wanted, got


def outgoing_headers(
    stream: str, message_id: str, expected_last: int | None, headers: Mapping[str, str] | None
) -> dict[str, str]:
    """Return what an append sends, and so stores, as headers, in their order: the caller's come first.

    Raises `ValueError` for a name or value that would not come back as it went out: the chain hashes
    what is stored, and the server's clients trim values and fold line breaks.
    """
    outgoing = dict(headers or {})
    outgoing[EXPECTED_STREAM] = stream
    if message_id:
        outgoing[MESSAGE_ID] = message_id
    if expected_last is not None:
        outgoing[EXPECTED_LAST] = str(expected_last)
    for name, value in outgoing.items():
        if not name.isascii() or not name or any(char.isspace() or char == ":" for char in name):
            raise ValueError(f"header {name!r}: a name is ASCII without space or colon")
        if value != value.strip() or "\r" in value or "\n" in value:
            raise ValueError(f"header {name}: a value has no line break and no space at its ends")
    return outgoing


def header_bytes(headers: Mapping[str, str]) -> int:
    """Return how many bytes these headers take on the wire, which the server counts as payload too."""
    lines = sum(len(name.encode()) + len(value.encode()) + len(": \r\n") for name, value in headers.items())
    return len("NATS/1.0\r\n") + lines + len("\r\n")


def check_size(stream: str, subject: str, body: bytes, headers: Mapping[str, str], payload_max: int) -> None:
    """Raise `ValueError` for a message no server may be shown (T5).

    One that is over `payload_max` with its headers makes the server cut the connection for good.
    """
    whole = len(body) + header_bytes(headers)
    if len(body) > MESSAGE_BYTES_MAX or whole > payload_max:
        raise ValueError(
            f"stream {stream}: a message on {subject} has a body of {len(body)} bytes, {whole} with its headers; "
            f"at most {MESSAGE_BYTES_MAX} and {payload_max} fit: split what it carries"
        )


class Journal(Protocol):
    """Streams by name (`schemas.streams`). Reads are gapless from `start`; appends may be conditional."""

    def read(self, stream: str, start: int, *, until: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield non-empty runs of messages in order, from sequence `start`, for ever or through `until`.

        Messages that wait come together (at most 500 a run), so that a reader can work in frames.
        Raises `Gap`; survives reconnects and server restarts by asking again from its own position.
        """
        ...

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
        """Store one message and return its sequence, fsynced.

        Raises `WrongLastSequence`, `Unclear`, `Unavailable` (`Full`), `Denied`, `ValueError` for a message that is
        too big (body and headers are measured before sending, T5).
        A duplicate inside the server's window returns the first one's sequence.
        """
        ...

    async def get(self, stream: str, sequence: int) -> Message | None:
        """Return one stored message from the stream's leader, None where the sequence is absent."""
        ...

    async def info(self, stream: str) -> StreamInfo:
        """Return the stream's bounds from its leader. Raises `Unavailable`, `LookupError` (no such stream)."""
        ...


class BatchJournal(Journal, Protocol):
    """A journal that also stores batches, all or none: what snapshots need beside the log's promises."""

    async def append_batch(self, stream: str, parts: Sequence[tuple[str, bytes]]) -> int:
        """Store the parts (subject, body) next to each other, or none; return the last one's sequence.

        At most 1000 parts. Raises `Unclear`, `Unavailable`, `ValueError` (empty, too many, too big).
        """
        ...

    async def last(self, stream: str, subject: str) -> Message | None:
        """Return the newest message on a subject from the stream's leader, None where there is none."""
        ...

    async def purge_below(self, stream: str, sequence: int) -> None:
        """Remove the messages before a sequence; a log's stream refuses it."""
        ...
