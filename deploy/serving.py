"""Roles kept running in one process: what passes is tried again, what must stop the program stops it.

A broken or foreign log, lost data and an unknown message are no weather: they end the process with their
reason. An API server or NATS that is away for a while is waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Counter, disable_created_metrics

from binder.journal import Unavailable, Unclear
from binder.kube import ApiError
from binder.together import together
from binder.written import Written, tell
from deploy.front_desk import FrontDesk, PortTaken
from deploy.front_door import Door
from deploy.role_names import Role
from deploy.roles import Place, run_accounting, run_binder, run_ingest, run_projector
from deploy.status_page import StatusPage
from deploy.watching.catalogue import counter
from deploy.watching.deletions import Deletions
from deploy.watching.doors import WatchedJournal, WatchedKube
from deploy.watching.process import Frames, Watched
from deploy.watching.tails import Tails
from webhooks.metrics import Metrics

PASSING: Final = (ApiError, Unavailable, Unclear, TimeoutError, OSError)
"""What a role may fail of and be started again."""
PAUSE_SECONDS = (0.5, 15.0)
STEADY_SECONDS = 60.0
AWAY_SECONDS = 15.0
"""A message that waits so long to be stored says that NATS is away."""
ANY_HOST = "0.0.0.0"  # noqa: S104 - probes, scrapes and the API server come from elsewhere

_log = structlog.get_logger(__name__)


class Serving(msgspec.Struct, frozen=True):
    """What a process serves. `webhook_port` and `door` matter to webhooks alone; `status_port` None: no page.

    `linger_s`: how long reviews are still taken once we say that we are not ready, so that a Service hears of it.
    `budget_metrics`: a series for each tenant's budget. `tell_end_s`: how long the page stays after what must stop the
    process, so that a scrape sees why.
    """

    roles: tuple[Role, ...]
    door: Door
    webhook_port: int = 8443
    linger_s: float = 0.0
    status_port: int | None = 8080
    host: str = ANY_HOST
    budget_metrics: bool = False
    tell_end_s: float = 0.0


async def serve(place: Place, serving: Serving, started: Callable[[], None] = lambda: None) -> None:
    """Run the roles until cancelled. Raises what must stop the program, `PortTaken`, `UnusableCertificate`.

    `started` is called once everything listens. Cancelled, it first lets the front desk finish: whoever answers
    its requests, be it the binder of this very process, works until then.
    """
    # A series beside each counter that says when it began: nobody asks for it.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library gives it no types
    registry = CollectorRegistry()
    place, watched, parts = _watched(place, serving, registry)
    failed = counter(registry, "gpubinder_role_restarts_total")
    desk: FrontDesk | None = None
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(place.alive())
        if Role.WEBHOOKS in serving.roles:
            desk = _front_desk(place, serving, Metrics(registry))
            parts += _desk_parts(desk, serving)
        if serving.status_port is not None:
            page = StatusPage(registry, lambda: troubles(place, serving.roles, desk, watched.stopped))
            try:
                await stack.enter_async_context(page.serving(serving.host, serving.status_port))
            except OSError as error:
                raise PortTaken(serving.status_port, "--status-port", error) from None
        if desk is not None:
            await stack.enter_async_context(desk.open())
        parts += [_kept(role, place, failed) for role in serving.roles if role is not Role.WEBHOOKS]
        started()
        work = asyncio.ensure_future(together(*parts))
        try:
            await asyncio.wait({work})
        finally:
            if desk is not None and not work.done():
                await desk.close()
            work.cancel()
            await asyncio.wait({work})
        try:
            await work
        except Exception as error:
            watched.stopped = type(causes(error)[0]).__name__
            await asyncio.sleep(serving.tell_end_s)
            raise


def _front_desk(place: Place, serving: Serving, metrics: Metrics) -> FrontDesk:
    return FrontDesk(
        place, serving.door, metrics, host=serving.host, port=serving.webhook_port, linger_s=serving.linger_s
    )


def _desk_parts(desk: FrontDesk, serving: Serving) -> list[Callable[[], Awaitable[None]]]:
    """Return what has to run beside an open desk."""
    parts: list[Callable[[], Awaitable[None]]] = [lambda: kept(Role.WEBHOOKS, desk.webhooks.run), desk.keep_known]
    return [*parts, desk.keep_settings] if serving.door.at else parts


def _watched(
    place: Place, serving: Serving, registry: CollectorRegistry
) -> tuple[Place, Watched, list[Callable[[], Awaitable[None]]]]:
    """Return the place with its doors watched, its gauges, and what has to run beside the roles for them."""
    journal, kube = WatchedJournal(place.journal, registry), WatchedKube(place.kube, registry)
    place = replace(place, journal=journal, kube=kube)
    tails = Tails(journal, snapshots=Role.BINDER in serving.roles)
    certificate = serving.door.files[0] if Role.WEBHOOKS in serving.roles else None
    frames = Frames(registry) if Role.BINDER in serving.roles else None
    watched = Watched(place, tails, journal.waiting, frames, certificate=certificate, budgets=serving.budget_metrics)
    registry.register(watched)
    parts: list[Callable[[], Awaitable[None]]] = []
    if set(serving.roles) - {Role.ACCOUNTING}:
        parts.append(tails.run)
    if Role.INGEST in serving.roles:
        # Without a quorum there is a connection, and nothing is stored all the same.
        deletions = Deletions(
            kube, lambda: place.questions.connected and journal.waiting.oldest_seconds() < AWAY_SECONDS
        )
        registry.register(deletions)
        parts.append(deletions.run)

    def witness(written: Written) -> None:
        tell(written)
        if frames is not None:
            frames.wrote(written)

    place.standing.witness = witness
    return place, watched, parts


def _kept(role: Role, place: Place, failed: Counter) -> Callable[[], Awaitable[None]]:
    work = {
        Role.BINDER: lambda: run_binder(place, place.binder()),
        Role.INGEST: lambda: run_ingest(place),
        Role.PROJECTOR: lambda: run_projector(place),
        Role.ACCOUNTING: lambda: run_accounting(place),
    }[role]
    return lambda: kept(role, work, failed.labels(str(role)).inc)


async def kept(name: str, work: Callable[[], Awaitable[None]], failed: Callable[[], None] = lambda: None) -> None:
    """Run a part again whenever it fails of something that passes, later each time; else raise its error.

    `failed` is told each time.
    """
    pause, most = PAUSE_SECONDS
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        try:
            await work()
        except Exception as error:
            if not all(isinstance(cause, PASSING) for cause in causes(error)):
                raise
            failed()
            _log.warning("role starts again", role=name, why="; ".join(str(cause) for cause in causes(error)))
        if loop.time() - began > STEADY_SECONDS:
            pause = PAUSE_SECONDS[0]
        await asyncio.sleep(pause)
        pause = min(2 * pause, most)


def causes(error: BaseException) -> list[BaseException]:
    """Return the errors in a group of groups, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for one in error.exceptions for cause in causes(one)]
    return [error]


def troubles(place: Place, roles: Iterable[Role], desk: FrontDesk | None = None, stopped: str = "") -> list[str]:
    """Name what keeps the roles from their work, nothing where all is well. `stopped`: what ends the process."""
    found = [f"ends: {stopped}"] if stopped else []
    found += desk.troubles if desk is not None else []
    binder = place.standing.binder
    if Role.BINDER in roles and (binder is None or binder.follower is None):
        found.append("binder: does not follow the log yet")
    if not place.questions.connected:
        found.append("nats: no connection")
    return found
