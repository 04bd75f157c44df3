"""The journal in memory: the same promises as JetStream's, with a clock of the caller's choice.

For simulation, demo and tests. Refusals come in the order of one server (the expected sequence is
looked at before the message id) or, with `replicated`, in that of a cluster (the id first): both
exist, and a writer must get along with either (T3).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import time_ns

import msgspec

from binder.journal import (
    RUN_MAX,
    Gap,
    Message,
    StreamInfo,
    WrongLastSequence,
    check_size,
    header_bytes,
    outgoing_headers,
)
from schemas.streams import STREAMS

_PAYLOAD_MAX = 4 * 1024 * 1024
_SECOND_NS = 1_000_000_000
_NAMES = tuple(spec.name for spec in STREAMS)


class MemoryStream(msgspec.Struct):
    """One stream: its messages in order, and the message ids of the window with (sequence, stamp).

    `messages` is open to tests that play a faulty server: they take away, change and swap.
    """

    name: str
    created: str
    window_ns: int
    messages: list[Message] = []
    ids: dict[str, tuple[int, int]] = {}
    last: int = 0

    @property
    def first(self) -> int:
        """The first sequence still there, or the next one where none is."""
        return self.messages[0].sequence if self.messages else self.last + 1


class MemoryJournal:
    """A `binder.journal.Journal` without a server. Streams: those of `schemas.streams` unless named.

    `clock` returns integer nanoseconds and stamps each message; stamps may repeat and jump back (T9).
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int] = time_ns,
        streams: Sequence[str] = _NAMES,
        replicated: bool = False,
    ) -> None:
        self._clock = clock
        self._replicated = replicated
        created = datetime.fromtimestamp(clock() // _SECOND_NS, UTC).isoformat()
        windows = {spec.name: spec.duplicate_window_s * _SECOND_NS for spec in STREAMS}
        self.streams = {name: MemoryStream(name, created, windows.get(name, 120 * _SECOND_NS)) for name in streams}
        self._arrivals: dict[str, list[asyncio.Future[None]]] = {name: [] for name in streams}

    def _stream(self, name: str) -> MemoryStream:
        if name not in self.streams:
            raise LookupError(f"stream {name} does not exist here; known: {', '.join(self.streams)}")
        return self.streams[name]

    async def read(self, stream: str, start: int, *, until: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield runs of messages from sequence `start`; see `Journal.read`."""
        held, due = self._stream(stream), start
        while until is None or due <= until:
            if held.last < due:
                await self._arrival(stream)
                continue
            # Positions and sequences run side by side unless something was taken away.
            at = max(0, due - held.first)
            stop = at + min(RUN_MAX, until - due + 1) if until is not None else at + RUN_MAX
            run = held.messages[at:stop]
            for offset, message in enumerate(run):
                if message.sequence != due + offset:
                    raise Gap(stream, due + offset, message.sequence)
            if not run:
                raise Gap(stream, due, held.last + 1)
            due += len(run)
            yield run

    async def _arrival(self, stream: str) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._arrivals[stream].append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._arrivals[stream]:
                self._arrivals[stream].remove(waiter)

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
        """Store one message and return its sequence; see `Journal.append`."""
        held = self._stream(stream)
        outgoing = outgoing_headers(stream, message_id, expected_last, headers)
        check_size(stream, subject, body, outgoing, _PAYLOAD_MAX)
        stale = expected_last is not None and expected_last != held.last
        stamp_ns = self._clock()
        first_sequence, first_stamp_ns = held.ids.get(message_id, (0, 0))
        known = first_sequence > 0 and stamp_ns - first_stamp_ns < held.window_ns
        if stale and not (self._replicated and known):
            raise WrongLastSequence(held.last)
        if known:
            return first_sequence
        if message_id:
            held.ids[message_id] = (held.last + 1, stamp_ns)
        return self._store(held, subject, body, outgoing, stamp_ns)

    def _store(self, held: MemoryStream, subject: str, body: bytes, headers: Mapping[str, str], stamp_ns: int) -> int:
        held.last += 1
        held.messages.append(Message(held.last, stamp_ns, subject, headers, body))
        waiting = self._arrivals[held.name]
        while waiting:
            waiter = waiting.pop()
            if not waiter.done():
                waiter.set_result(None)
        return held.last

    async def append_batch(self, stream: str, parts: Sequence[tuple[str, bytes]]) -> int:
        """Store all parts next to each other, or none; return the last one's sequence."""
        held, last = self._stream(stream), 0
        if not parts:
            raise ValueError(f"stream {stream}: an empty batch has no last sequence")
        outgoing = outgoing_headers(stream, "", None, None)
        for subject, body in parts:
            check_size(stream, subject, body, outgoing, _PAYLOAD_MAX)
        stamp_ns = self._clock()
        for subject, body in parts:
            last = self._store(held, subject, body, outgoing, stamp_ns)
        return last

    async def get(self, stream: str, sequence: int) -> Message | None:
        """Return one stored message, None where the sequence is absent."""
        held = self._stream(stream)
        at = sequence - held.first
        if 0 <= at < len(held.messages) and held.messages[at].sequence == sequence:
            return held.messages[at]
        return next((message for message in held.messages if message.sequence == sequence), None)

    async def last(self, stream: str, subject: str) -> Message | None:
        """Return the newest message on a subject, None where there is none."""
        return next((m for m in reversed(self._stream(stream).messages) if m.subject == subject), None)

    async def purge_below(self, stream: str, sequence: int) -> None:
        """Forget the messages before `sequence`."""
        held = self._stream(stream)
        held.messages[:] = [message for message in held.messages if message.sequence >= sequence]

    async def info(self, stream: str) -> StreamInfo:
        """Return the stream's bounds. Raises `LookupError` (no such stream)."""
        held = self._stream(stream)
        stored = sum(len(m.subject) + header_bytes(m.headers) + len(m.body) for m in held.messages)
        return StreamInfo(held.first, held.last, len(held.messages), stored, held.created)
