"""The one door to NATS: a connection that never gives up, questions and answers over it.

What is done here differently from the client library's own ways was measured: answers are awaited on one inbox of
ours and fail at once when the connection is lost; nothing is buffered while there is none. Errors and logs name
servers without their credentials. The journal that uses this connection is `binder.stream_journal`.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from secrets import token_hex

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from binder.access import Access
from binder.doubt import Doubt
from binder.journal import Denied, Unavailable, Unclear
from binder.open_calls import OpenCalls
from binder.stream_api import Delivery, status_of

CALL_SECONDS = 5.0
AGAIN_SECONDS = 0.5
"""How soon a question that changes nothing is put again: while a stream or the cluster elects a leader,
questions to it are heard by nobody and lost, and the next one would otherwise wait for the first one's time."""
CONNECT_SECONDS = 10.0
REFUSED = "authorization refused"
_NO_RESPONDERS = 503

# The library lowers the case of what the server says.
_DENIED = re.compile(r"permissions violation for (publish|subscription) to \"?([^\"\s]+)")

_log = structlog.get_logger(__name__)


class Connection:
    """A connection to NATS: calls with answers, plain sends, subscriptions. Made by `connect`."""

    def __init__(self, access: Access, fatal: Callable[[str], None], call_seconds: float = CALL_SECONDS) -> None:
        access.check()
        self._access = access
        self._call_seconds = call_seconds
        self._fatal = fatal
        self._client = Client()
        self._tls = access.tls()
        self._closing = False
        self._prefix = f"_INBOX.{token_hex(11)}"
        self._calls = OpenCalls()
        self.doubt = Doubt(self._leave)
        self._trouble = ""
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, seconds: float) -> None:
        """Connect; servers that cannot be reached yet are tried again for `seconds`.

        Raises `Unavailable`, `Unusable`.
        """
        try:
            await self._within(seconds)
            await self._client.subscribe(f"{self._prefix}.*", cb=self._on_answer)
        except (NatsError, OSError, TimeoutError) as error:
            await self.close()
            why = self._trouble or _kind(error)
            raise Unavailable(f"NATS at {self._access.servers()}: no connection within {seconds:g} s ({why})") from None

    async def _within(self, seconds: float) -> None:
        """Connect in time, or raise `TimeoutError`: the library now and then swallows its cancellation and goes on."""
        connecting = asyncio.ensure_future(self._connect())
        try:
            done, _ = await asyncio.wait({connecting}, timeout=seconds)
        finally:
            connecting.cancel()
        if not done:
            raise TimeoutError
        connecting.result()

    async def _connect(self) -> None:
        await self._client.connect(
            servers=list(self._access.urls),
            name="gpubinder",
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,  # type: ignore[arg-type] # seconds; the library's hint says int, it sleeps
            connect_timeout=2,
            allow_reconnect=True,
            # A network that swallows everything is noticed within 6 s.
            ping_interval=2,
            max_outstanding_pings=2,
            # A buffer would send timed-out appends after the connection is back.
            pending_size=0,
            user_credentials=str(self._access.creds) if self._access.creds else None,
            tls=self._tls,
            error_cb=self._on_error,
            disconnected_cb=self._on_lost,
            reconnected_cb=self._on_back,
            closed_cb=self._on_closed,
        )

    @property
    def payload_max(self) -> int:
        """The largest body and headers together that the server takes."""
        return self._client.max_payload

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._client.is_connected

    async def call(
        self,
        subject: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
        insist: bool = False,
    ) -> Delivery:
        """Publish and await the answer, for `seconds` or as long as this connection's calls may take.

        `insist`: publish again every `AGAIN_SECONDS` until then; for questions that may be heard twice.

        Raises `Unclear` (no answer in time, or the connection was lost meanwhile), `Unavailable`
        (nobody listens, or there is no connection: nothing was sent) and `Denied`.
        """
        with self._calls.begin(subject, seconds or self._call_seconds) as (token, answer):
            await self.send(subject, body, reply=f"{self._prefix}.{token}", headers=headers)
            while insist and not (await asyncio.wait({answer}, timeout=AGAIN_SECONDS))[0]:
                await self.send(subject, body, reply=f"{self._prefix}.{token}", headers=headers)
            result = await answer
        if isinstance(result, Exception):
            raise result
        if not result.data and status_of(result.headers)[0] == _NO_RESPONDERS:
            raise Unavailable(f"{subject}: nobody answers there (no such stream, or it has no leader now)")
        return result

    async def send(
        self, subject: str, body: bytes, *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Publish without an answer. Raises `Unavailable`: there is no connection, nothing was sent."""
        try:
            await self._client.publish(subject, body, reply=reply, headers=dict(headers) if headers else None)
        except NatsError as error:
            raise Unavailable(f"NATS at {self._access.servers()}: not sent ({type(error).__name__})") from None

    async def listen(self, subject: str, handle: Callable[[Delivery], None]) -> Callable[[], Awaitable[None]]:
        """Hear a subject through reconnects; the returned coroutine function ends it. Raises `Unavailable`."""

        async def heard(message: Msg) -> None:
            handle(message)

        return await self._subscribe(subject, "", heard)

    async def _subscribe(
        self, subject: str, queue: str, heard: Callable[[Msg], Awaitable[None]]
    ) -> Callable[[], Awaitable[None]]:
        try:
            held = await self._client.subscribe(
                subject, queue=queue, cb=heard, pending_msgs_limit=0, pending_bytes_limit=0
            )
        except NatsError as error:
            raise Unavailable(f"NATS at {self._access.servers()}: no subscription ({type(error).__name__})") from None

        async def stop() -> None:
            if not self._client.is_closed:
                await held.unsubscribe()

        return stop

    def inbox(self) -> str:
        """Return a subject that only we listen to."""
        return f"_INBOX.{token_hex(11)}"

    async def ask(self, subject: str, body: bytes, *, seconds: float) -> bytes:
        """Ask whoever answers on a subject (T19). Raises `Unavailable` (nobody), `Unclear` (no answer in time)."""
        return (await self.call(subject, body, seconds=seconds)).data

    async def answer(
        self, subject: str, queue: str, reply: Callable[[bytes], Awaitable[bytes]]
    ) -> Callable[[], Awaitable[None]]:
        """Answer questions on a subject, side by side; of one queue group one member gets each.

        A `reply` that raises is logged and answers nothing. The returned coroutine function ends it.
        """

        async def respond(message: Msg) -> None:
            try:
                await self.send(message.reply, await reply(message.data))
            except Unavailable:
                _log.warning("answer not sent", subject=subject)
            except Exception:  # noqa: BLE001 - whatever one question meets, the others want their answers
                _log.exception("question not answered", subject=subject)

        async def heard(message: Msg) -> None:
            task = asyncio.create_task(respond(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        stop_hearing = await self._subscribe(subject, queue, heard)

        async def stop() -> None:
            await stop_hearing()
            await self._flushed()

        await self._flushed()
        return stop

    async def _flushed(self) -> None:
        """Wait until the server knows what was said so far: other connections see it from then on."""
        # The client's first ping goes past what waits in its buffer; when it is answered, that was written.
        try:
            await self._client.flush()
            await self._client.flush()
        except (NatsError, OSError) as error:
            # A connection that comes back says it all again.
            _log.warning("nats not flushed", kind=type(error).__name__)

    async def _leave(self) -> None:
        _log.warning("nats server answers nothing; trying another", servers=self._access.servers())
        await self._client.force_reconnect()

    async def close(self) -> None:
        """Close for good; nothing is reported as fatal."""
        self._closing = True
        for task in tuple(self._tasks):
            task.cancel()
        await self._client.close()
        self._fail_calls("the connection was closed")

    async def _on_answer(self, message: Msg) -> None:
        self._calls.answered(message.subject.rpartition(".")[2], message)

    def _fail_calls(self, why: str) -> None:
        self._calls.fail(Unclear(f"NATS at {self._access.servers()}: {why}"))

    async def _on_error(self, error: Exception) -> None:
        kind = _kind(error)
        if self._trouble != REFUSED:
            # A server that refuses hangs up at once: what one try hears as a reset, another heard as the reason.
            self._trouble = kind
        denied = _DENIED.search(str(error))
        if denied is None:
            self._read_again()
            if kind not in self._told:
                # Each try to connect again meets the same: said once.
                _log.warning("nats trouble", kind=kind)
            self._told.add(kind)
            return
        what, where = denied.groups()
        _log.error("nats permission missing", to=what, subject=where)
        # A subscription denied is that of our answers: none will ever come.
        refused = Denied(f"NATS at {self._access.servers()}: these credentials may not {what} {where}")
        self._calls.fail(refused, lambda subject: what == "subscription" or subject.lower() == where)

    async def _on_lost(self) -> None:
        self._fail_calls("the connection was lost")
        if self._closing:
            return
        _log.warning("nats connection lost", servers=self._access.servers())
        self._read_again()

    def _read_again(self) -> None:
        trouble = self._access.renew(self._tls) if self._tls else ""
        if trouble and trouble not in self._told:
            self._told.add(trouble)
            _log.warning("nats certificate not read again", file=str(self._access.cert), kind=trouble)

    async def _on_back(self) -> None:
        self._trouble = ""
        self._told.clear()
        _log.info("nats connection back", servers=self._access.servers())

    async def _on_closed(self) -> None:
        self._fail_calls("the connection was closed")
        if not self._closing:
            self._fatal(f"NATS at {self._access.servers()} closed the connection for good")


def _kind(error: Exception) -> str:
    """Return what may be told of an error: a server's sentence may repeat what we sent it."""
    return REFUSED if "authorization" in str(error).lower() else type(error).__name__


async def connect(
    access: Access,
    fatal: Callable[[str], None],
    *,
    seconds: float = CONNECT_SECONDS,
    call_seconds: float = CALL_SECONDS,
) -> Connection:
    """Connect to NATS. `fatal` is called with a reason when the connection is closed for good.

    `call_seconds`: how long an answer may take before its call counts as unclear.

    Raises `Unavailable` when no server answers within `seconds`, `Unusable` for what is configured wrongly.
    """
    connection = Connection(access, fatal, call_seconds)
    await connection.open(seconds)
    return connection
