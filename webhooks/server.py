"""The HTTPS door of the front desk: bodies in, answers out, health, metrics, and an orderly end."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from schemas.admission import ORDER_PATH, POD_PATH, START_PATH, VMI_PATH, WRITE_PATH
from webhooks.door import Door, House
from webhooks.service import Webhooks
from webhooks.tls import ServingCertificate
from webhooks.verdicts import Verdict

BODY_BYTES_MAX = 8 * 1024 * 1024
"""Above what the API server itself accepts for an object (3 MB), also when JSON spells it longer."""

CONNECTIONS_MAX = 512
"""More than a few API servers need, each with a connection for every request under way; 128 MB if all are silent."""

_log = structlog.get_logger()


class Listen(msgspec.Struct, frozen=True):
    """Where to listen and with which files. Port 0 takes a free one; `metrics_port` None serves no metrics.

    `client_ca`: who signs for the API server; then reviews of others are turned away, and probes are not.
    `read_s`: patience with a body, which the API server's timeout covers too; `drain_s`: with requests under
    way when the server stops; `linger_s`: how long it still accepts requests while it already says that it
    is not ready.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None
    host: str = "0.0.0.0"  # noqa: S104 - the API server calls from elsewhere
    port: int = 8443
    metrics_port: int | None = None
    reload_s: float = 5.0
    read_s: float = 1.5
    drain_s: float = 10.0
    linger_s: float = 0.0
    connections_max: int = CONNECTIONS_MAX


class Server:
    """`async with Server(webhooks, listen)`: serves until the block ends, then lets what is under way finish."""

    def __init__(self, webhooks: Webhooks, listen: Listen) -> None:
        self._webhooks, self._listen = webhooks, listen
        self._certificate = ServingCertificate(listen.certificate, listen.key, listen.client_ca)
        self._draining = False
        self._runners: list[web.AppRunner] = []
        self._doors: list[Door] = []
        self._asking: dict[asyncio.Transport | None, bool] = {}
        self._watch: asyncio.Task[None] | None = None
        self.port = 0
        self.metrics_port = 0

    async def start(self) -> None:
        """Listen. Raises `OSError` where the address is taken."""
        app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[self._noting()])
        app.router.add_post(VMI_PATH, self._answering(self._webhooks.vmi_verdict))
        app.router.add_post(POD_PATH, self._answering(self._webhooks.pod_verdict))
        app.router.add_post(START_PATH, self._answering(self._webhooks.start_verdict))
        app.router.add_post(WRITE_PATH, self._answering(self._webhooks.write_verdict))
        app.router.add_post(ORDER_PATH, self._answering(self._webhooks.order_verdict))
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        self.port = await self._serve(app, self._listen.port, tls=True)
        if self._listen.metrics_port is not None:
            metrics = web.Application(middlewares=[self._noting()])
            metrics.router.add_get("/metrics", self._metrics)
            self.metrics_port = await self._serve(metrics, self._listen.metrics_port, tls=False)
        self._watch = asyncio.create_task(self._certificate.watch(self._listen.reload_s))
        _log.info("webhooks.listening", host=self._listen.host, port=self.port)

    @property
    def troubles(self) -> list[str]:
        """Name what keeps requests from being sent here, as far as it is known without asking anybody."""
        found = ["webhooks: draining"] if self._draining else []
        expired = self._certificate.expired(datetime.now(UTC))
        return [*found, f"certificate: {expired}"] if expired else found

    async def stop(self) -> None:
        """Say that we are not ready, wait for it to be heard, stop listening, let requests finish."""
        if self._draining:
            return
        self._draining = True
        if self._listen.linger_s:
            await asyncio.sleep(self._listen.linger_s)
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        for door in self._doors:
            await door.close()
        self._doors.clear()
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()

    async def __aenter__(self) -> Self:
        """Start; what was begun is ended again where it fails half way."""
        try:
            await self.start()
        except OSError:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()

    async def _serve(self, app: web.Application, port: int, *, tls: bool) -> int:
        # Who asked and went is not waited for: its start is withdrawn (T18).
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=self._listen.drain_s, handler_cancellation=True)
        await runner.setup()
        self._runners.append(runner)
        context = self._certificate.context if tls else None
        server = runner.server
        assert server is not None, "it was set up above"
        house = House(server, lambda: len(server.connections), lambda: self._idle(server))
        door = Door.open(self._listen.host, port, house, context, self._listen.connections_max)
        self._doors.append(door)
        return door.port

    def _idle(self, server: web.Server) -> list[asyncio.Transport]:
        """Return the connections that nothing is answered for, the oldest first."""
        standing = (connection.transport for connection in server.connections)
        return [one for one in standing if isinstance(one, asyncio.Transport) and one not in self._asking]

    def _noting(self) -> Middleware:
        """Return what knows of each request under way which connection it came by."""

        @web.middleware
        async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection = request.transport
            self._asking[connection] = True
            try:
                return await handler(request)
            finally:
                self._asking.pop(connection, None)

        return note

    def _answering(
        self, verdict: Callable[[bytes], Awaitable[Verdict]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            if self._listen.client_ca is not None and not request.get_extra_info("peercert"):
                return web.Response(status=401, text="reviews are taken from the API server's own certificate alone")
            try:
                async with asyncio.timeout(self._listen.read_s):
                    body = await request.read()
            except TimeoutError:
                return web.Response(status=408, text="the body did not arrive in time")
            said = await verdict(body)
            response = web.Response(
                body=said.body, status=200 if said.readable else 400, content_type="application/json"
            )
            if self._draining:
                # The next review is sent elsewhere, not on a connection that is about to be closed.
                response.force_close()
            return response

        return answer

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, _request: web.Request) -> web.Response:
        """Tell NATS, binder and certificate apart.

        A silent binder is silent for every replica: it is reported, but the replica stays in its Service,
        where it refuses with a sentence that says so, instead of leaving none to answer.
        """
        health = await self._webhooks.health()
        expired = self._certificate.expired(datetime.now(UTC))
        report = {
            "nats": health.nats or "ok",
            "binder": health.binder or "ok",
            "certificate": expired or self._certificate.trouble or "ok",
            "draining": self._draining,
        }
        ready = not (health.nats or expired or self._draining)
        return web.json_response(report, status=200 if ready else 503)

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._webhooks.metrics.text(), content_type="text/plain")
