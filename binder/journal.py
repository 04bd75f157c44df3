"""The journal as a protocol: two append-only streams of bytes, read in order.

Kept by the in-memory journal below and by JetStream (`binder.jetstream`); one contract test holds
both to the same promises.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import msgspec


class Message(msgspec.Struct, frozen=True):
    """One stored message: sequence from 1, server stamp in integer nanoseconds, subject, headers, body."""

    sequence: int
    stamp_ns: int
    subject: str
    headers: Mapping[str, str]
    body: bytes


class StreamInfo(msgspec.Struct, frozen=True):
    """Where a stream stands: `last` is 0 on an empty one, `first` is last + 1 then."""

    first: int
    last: int
    messages: int
    bytes: int
    created: str


class WrongLastSequence(Exception):
    """A conditional append met another tail (10071 and 10164 alike); `last` is -1 where not told."""

    def __init__(self, last: int = -1) -> None:
        super().__init__(f"wrong last sequence, the stream is at {last}")
        self.last = last


class Unclear(Exception):
    """No answer: the append may have landed, may still land, or never will."""


class Unavailable(Exception):
    """A clear refusal that may pass: no stream leader, stream full, storage gone."""


class Gap(Exception):
    """A reader met a hole: sequence `got` where `wanted` was due. Data was lost or removed."""

    def __init__(self, stream: str, wanted: int, got: int) -> None:
        super().__init__(f"stream {stream}: sequence {got} where {wanted} was due")
        self.stream, self.wanted, self.got = stream, wanted, got


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

        Raises `WrongLastSequence`, `Unclear`, `Unavailable`, `ValueError` for a message that is too big
        (body and headers are measured before sending, T5).
        A duplicate inside the server's window returns the first one's sequence.
        """
        ...

    async def get(self, stream: str, sequence: int) -> Message | None:
        """Return one stored message from the stream's leader, None where the sequence is absent."""
        ...

    async def info(self, stream: str) -> StreamInfo:
        """Return the stream's bounds from its leader. Raises `Unavailable`, `LookupError` (no such stream)."""
        ...
