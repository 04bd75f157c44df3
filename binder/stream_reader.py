"""Reading a stream in order, fast and for ever: a raw pull consumer that is made anew at any doubt.

The consumer lives in the server's memory and asks for no acknowledgements: the reader's own position
is the only truth. It asks for the next batch when half of one is left, so that at most one and a half
batches wait in memory. Silence, an unknown status or a sequence that jumps ends the consumer; before
the next one starts, the last message read is fetched from the stream's leader and compared, because a
server that lost its tail hands out the lost sequences again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from secrets import token_hex
from typing import Protocol

import msgspec

from binder.journal import RUN_MAX, Gap, Message, StreamInfo, Unavailable, Unclear
from binder.stream_api import ACK_PREFIX, API, Delivery, Described, delivered, refusal, status_of

_BATCH = 2 * RUN_MAX
_BATCH_BYTES = 16 * 1024 * 1024
_EXPIRES_NS = 30_000_000_000
_HEARTBEAT_NS = 500_000_000
# Two such waits without a word are silence: one alone may be our own event loop that was busy.
_LISTEN_SECONDS = 0.65
_INACTIVE_NS = 30_000_000_000
_RETRY_SECONDS = 0.1
CONFIRM_SECONDS = 15.0
"""How long a contradiction must last before it counts as loss: a server cut off from its cluster
answers from an old tail until it notices."""

_encode = msgspec.json.encode


class Wire(Protocol):
    """What a reader needs of the connection (`binder.jetstream.Connection`)."""

    async def call(self, subject: str, body: bytes, *, insist: bool = False) -> Delivery:
        """Ask and await the answer; `insist`: ask again until it comes. Raises `Unclear`, `Unavailable`."""
        ...

    async def send(self, subject: str, body: bytes, *, reply: str = "") -> None:
        """Publish without an answer. Raises `Unavailable`."""
        ...

    async def listen(self, subject: str, handle: Callable[[Delivery], None]) -> Callable[[], Awaitable[None]]:
        """Hear a subject; the returned coroutine function ends it."""
        ...

    def inbox(self) -> str:
        """Return a subject that only we listen to."""
        ...


class Place(Protocol):
    """What a reader needs of its journal: reads that are answered by the stream's leader."""

    async def get(self, stream: str, sequence: int) -> Message | None:
        """Return one stored message, None where it is absent."""
        ...

    async def info(self, stream: str) -> StreamInfo:
        """Return the stream's bounds."""
        ...


class StreamReader:
    """One reader of one stream; `runs` is used once."""

    def __init__(self, wire: Wire, place: Place, stream: str, start: int, until: int | None) -> None:
        self._wire = wire
        self._place = place
        self._stream = stream
        self._until = until
        self._next = start
        self._last: Message | None = None
        self._waiting: list[Message] = []
        self._asked = 0
        self._wake = asyncio.Event()
        self._doubt = ""
        self._jumped_to = 0
        self._consumer = ""
        self._inbox = ""
        self._stop: Callable[[], Awaitable[None]] | None = None

    async def runs(self) -> AsyncIterator[list[Message]]:
        """Yield non-empty runs of messages in order. Raises `Gap`, `LookupError` (no such stream)."""
        try:
            while self._until is None or self._next <= self._until or self._waiting:
                await self._fill()
                run, self._waiting = self._waiting[:RUN_MAX], self._waiting[RUN_MAX:]
                yield run
        finally:
            await self._close()

    async def _fill(self) -> None:
        """Wait until messages are there; keep the server busy meanwhile."""
        silent = 0
        while True:
            if not self._waiting and (self._doubt or not self._consumer):
                await self._reopen()
                silent = 0
            # Before waiting, and before the caller works on what came: the next batch travels meanwhile.
            await self._ask()
            if self._waiting:
                return
            self._wake.clear()
            try:
                # Not `wait_for`: before Python 3.12 it swallows a cancellation that meets the wake-up.
                async with asyncio.timeout(_LISTEN_SECONDS):
                    await self._wake.wait()
                silent = 0
            except TimeoutError:
                silent += 1
                if silent >= 2:
                    self._doubt = "silence"

    async def _ask(self) -> None:
        left = _BATCH if self._until is None else self._until - self._next + 1 - self._asked
        if self._doubt or left <= 0 or self._asked + len(self._waiting) > _BATCH // 2:
            return
        batch = min(_BATCH, left)
        request = {
            "batch": batch,
            "max_bytes": _BATCH_BYTES,
            "expires": _EXPIRES_NS,
            "idle_heartbeat": _HEARTBEAT_NS,
        }
        try:
            subject = f"{API}.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
            await self._wire.send(subject, _encode(request), reply=self._inbox)
        except Unavailable:
            self._doubt = "not connected"
        else:
            self._asked += batch

    def _hear(self, delivery: Delivery) -> None:
        """Take one delivery; called by the client's own task, so it neither waits nor raises."""
        self._wake.set()
        if delivery.reply.startswith(ACK_PREFIX):
            self._take(delivered(delivery))
            return
        code, description = status_of(delivery.headers)
        if code == 100:
            return
        unfilled = (delivery.headers or {}).get("Nats-Pending-Messages", "")
        if unfilled.isdigit() and (code == 408 or "MaxBytes" in description or "Batch Completed" in description):
            # One of our requests ended: its time or its bytes were up.
            self._asked = max(0, self._asked - int(unfilled))
            return
        self._doubt = f"status {code} {description}"

    def _take(self, message: Message) -> None:
        self._asked = max(0, self._asked - 1)
        if self._doubt or (self._until is not None and message.sequence > self._until):
            return
        if message.sequence == self._next:
            self._waiting.append(message)
            self._last = message
            self._next += 1
        elif message.sequence > self._next:
            self._doubt, self._jumped_to = "jump", message.sequence

    async def _reopen(self) -> None:
        """Make a consumer at our position, after a look at what lies before it."""
        first_try = self._consumer == ""
        since: float | None = None
        while True:
            await self._close()
            try:
                await self._prove_last()
                if self._jumped_to and await self._place.get(self._stream, self._next) is None:
                    raise Gap(self._stream, self._next, self._jumped_to)
                await self._open()
                return
            except (Unavailable, Unclear):
                since = None
            except LookupError:
                # A cluster that is just coming up may not know its streams yet.
                now = asyncio.get_running_loop().time()
                since = since or now
                if first_try or now - since > CONFIRM_SECONDS:
                    raise
            await asyncio.sleep(_RETRY_SECONDS)

    async def _prove_last(self) -> None:
        """Raise `Gap` unless the stream still holds the last message we read where we read it."""
        last, since = self._last, None
        while last is not None:
            stored = await self._place.get(self._stream, last.sequence)
            if stored == last:
                return
            now = asyncio.get_running_loop().time()
            since = since or now
            if now - since > CONFIRM_SECONDS:
                info = await self._place.info(self._stream)
                if info.first > last.sequence:
                    return  # Removed at the front, as archiving does: what follows is still whole.
                raise Gap(self._stream, last.sequence, info.last, "its tail was lost or written anew")
            await asyncio.sleep(_RETRY_SECONDS)

    async def _open(self) -> None:
        self._doubt, self._asked, self._jumped_to = "", 0, 0
        self._inbox = self._wire.inbox()
        self._stop = await self._wire.listen(self._inbox, self._hear)
        name = f"reader-{token_hex(8)}"
        config = {
            "name": name,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._next,
            "ack_policy": "none",
            "replay_policy": "instant",
            "inactive_threshold": _INACTIVE_NS,
            "num_replicas": 1,
            "mem_storage": True,
        }
        request = {"stream_name": self._stream, "config": config, "action": "create"}
        # Heard twice, the same consumer stands once.
        answer = await self._wire.call(f"{API}.CONSUMER.CREATE.{self._stream}.{name}", _encode(request), insist=True)
        described = msgspec.json.decode(answer.data, type=Described)
        if described.error is not None:
            raise refusal(described.error, self._stream)
        self._consumer = name

    async def _close(self) -> None:
        """End the consumer; a server that does not hear it drops it when it was idle for long."""
        if self._stop is not None:
            stop, self._stop = self._stop, None
            await stop()
        if self._consumer:
            consumer, self._consumer = self._consumer, ""
            try:
                await self._wire.send(f"{API}.CONSUMER.DELETE.{self._stream}.{consumer}", b"")
            except Unavailable:
                return
