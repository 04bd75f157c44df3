"""The journal on JetStream: conditional appends, atomic batches and reads answered by the leader.

Bodies and headers are measured before sending; answers are read in `binder.stream_api`; runs of
messages come from raw pulls (`binder.stream_reader`).
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from secrets import token_hex

import msgspec

from binder.jetstream import AGAIN_SECONDS, Connection
from binder.journal import Message, StreamInfo, Unavailable, check_size, outgoing_headers
from binder.stream_api import API, NOT_FOUND, Ack, Delivery, Described, Fetched, fetched, refusal
from binder.stream_reader import StreamReader

_BATCH_ID = "Nats-Batch-Id"
_BATCH_SEQUENCE = "Nats-Batch-Sequence"
_BATCH_COMMIT = "Nats-Batch-Commit"
_BATCH_MAX = 1000


LED_SECONDS = 10.0
"""How long a stream may be without a leader before that is told to who asks about it; an election takes less."""


class Leaderless(Unavailable):
    """A member told of its own copy, which may be old: it hears of no leader (C62)."""


class JetStreamJournal:
    """A `binder.journal.Journal` on JetStream streams, alone or replicated."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def payload_max(self) -> int:
        """The largest body and headers together that the server takes."""
        return self._connection.payload_max

    def read(self, stream: str, start: int, *, until: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield runs of messages from sequence `start`; see `Journal.read`. `LookupError`: no such stream."""
        return StreamReader(self._connection, self, stream, start, until).runs()

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
        """Store one message and return its sequence; see `Journal.append`. Many may run side by side."""
        outgoing = outgoing_headers(stream, message_id, expected_last, headers)
        check_size(stream, subject, body, outgoing, self._connection.payload_max)
        async with self._connection.doubt.judged():
            return self._acked(stream, await self._connection.call(subject, body, headers=outgoing))

    async def append_batch(self, stream: str, parts: Sequence[tuple[str, bytes]]) -> int:
        """Store all parts next to each other, or none; return the last one's sequence.

        At most 1000 parts. Raises as `append` does; an unclear batch may be put again.
        """
        if not 1 <= len(parts) <= _BATCH_MAX:
            raise ValueError(f"stream {stream}: a batch has 1 to {_BATCH_MAX} messages, not {len(parts)}")
        batch = token_hex(16)
        for number, (subject, body) in enumerate(parts, 1):
            commit = {_BATCH_COMMIT: "1"} if number == len(parts) else {}
            place = {_BATCH_ID: batch, _BATCH_SEQUENCE: str(number)}
            headers = outgoing_headers(stream, "", None, place | commit)
            check_size(stream, subject, body, headers, self._connection.payload_max)
            if not commit:
                await self._connection.send(subject, body, headers=headers)
        async with self._connection.doubt.judged():
            return self._acked(stream, await self._connection.call(subject, body, headers=headers))

    def _acked(self, stream: str, answer: Delivery) -> int:
        ack = msgspec.json.decode(answer.data, type=Ack)
        if ack.error is not None:
            raise refusal(ack.error, stream)
        return ack.seq

    async def get(self, stream: str, sequence: int) -> Message | None:
        """Return one stored message from the stream's leader, None where the sequence is absent."""
        return await self._fetch(stream, {"seq": sequence})

    async def last(self, stream: str, subject: str) -> Message | None:
        """Return the newest message on a subject from the stream's leader, None where there is none."""
        return await self._fetch(stream, {"last_by_subj": subject})

    async def _fetch(self, stream: str, request: Mapping[str, object]) -> Message | None:
        question = msgspec.json.encode(request)
        async with self._connection.doubt.judged():
            answer = await self._connection.call(f"{API}.STREAM.MSG.GET.{stream}", question, insist=True)
            reply = msgspec.json.decode(answer.data, type=Fetched)
            if reply.error is not None and reply.error.err_code != NOT_FOUND:
                raise refusal(reply.error, stream)
            return fetched(reply.message) if reply.error is None and reply.message is not None else None

    async def info(self, stream: str) -> StreamInfo:
        """Return the stream's bounds from its leader. Raises `Unavailable`, `Unclear`, `LookupError`."""
        state = (described := await self._told_by_leader(stream)).state
        first = state.first_seq if state.messages else state.last_seq + 1
        most = max(described.config.get("max_bytes", 0), 0)
        return StreamInfo(first, state.last_seq, state.messages, state.bytes, described.created, most)

    async def _told_by_leader(self, stream: str) -> Described:
        """Ask until whoever answers hears of a leader: an election takes seconds. Raises `Leaderless` if it lasts."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LED_SECONDS
        while True:
            try:
                return await self.manage(f"STREAM.INFO.{stream}", {}, stream, insist=True)
            except Leaderless:
                if loop.time() >= end:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)

    async def purge_below(self, stream: str, sequence: int) -> None:
        """Remove the messages before `sequence`; for snapshots, the server refuses it for the logs."""
        await self.manage(f"STREAM.PURGE.{stream}", {"seq": sequence}, stream)

    async def manage(self, call: str, request: Mapping[str, object], stream: str, *, insist: bool = False) -> Described:
        """Call JetStream's management interface. Raises what `binder.stream_api.refusal` makes of an error.

        `insist`: put it again until it is answered by who leads the stream; for what changes nothing.
        """
        async with self._connection.doubt.judged():
            answer = await self._connection.call(f"{API}.{call}", msgspec.json.encode(request), insist=insist)
            described = msgspec.json.decode(answer.data, type=Described)
            if described.error is not None:
                raise refusal(described.error, stream)
            if described.hearsay and insist:
                # Who makes or checks streams may read any member's word on their settings.
                raise Leaderless(f"stream {stream}: the server that answers hears of no leader")
            return described
