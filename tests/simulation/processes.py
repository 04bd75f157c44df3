"""The program's roles as processes: each on its own machine, unchanged, with nothing kept from life to life."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from prometheus_client import CollectorRegistry

from binder.journal import Unclear
from binder.service import Binder
from deploy.cluster_in_memory import IN_PROCESS, hook_of
from deploy.roles import Place, run_binder, run_ingest, run_projector
from deploy.serving import kept
from deploy.world.manifests import Obj
from schemas.admission import POD_WEBHOOK, START_WEBHOOK, VMI_WEBHOOK
from tests.simulation.cluster import Cluster
from tests.simulation.doors import Doors
from tests.simulation.labels import SYSTEM
from tests.simulation.lanes import Lane
from webhooks.configuration import TIMEOUT_S, webhook_configuration
from webhooks.metrics import Metrics
from webhooks.service import Webhooks
from webhooks.starts import start_webhook

PROGRAM = "simulated"


class NoQuestions:
    """Request/reply between processes: nobody asks here."""

    connected = True

    async def ask(self, subject: str, body: bytes, *, seconds: float) -> bytes:
        """Hear nothing."""
        raise Unclear(f"nobody answers on {subject} within {seconds} s")

    async def answer(
        self, subject: str, queue: str, reply: Callable[[bytes], Awaitable[bytes]]
    ) -> Callable[[], Awaitable[None]]:
        """Take an answerer in; nobody asks it."""

        async def stop() -> None:
            return

        return stop


class Process:
    """One life of one role. `failure`: what it died of by itself, None while it lives or was killed."""

    def __init__(self, name: str, doors: Doors) -> None:
        self.name, self.doors, self.lane = name, doors, doors.lane
        self.role = doors.role
        self.place = Place(doors.kube, doors.journal, NoQuestions(), SYSTEM, f"{name}@{id_of(doors)}", PROGRAM)
        self.binder: Binder | None = None
        self.webhooks: Webhooks | None = None
        self.failure: BaseException | None = None
        self.task = self.lane.create_task(kept(self.role, self._work()))
        self.task.add_done_callback(self._ended)

    def _work(self) -> Callable[[], Awaitable[None]]:
        match self.role:
            case "binder":
                return self._run_binder
            case "ingest":
                return lambda: run_ingest(self.place)
            case "projector":
                return lambda: run_projector(self.place)
            case _:
                self.webhooks = self.place.webhooks(Metrics(CollectorRegistry()))
                return self.webhooks.run

    async def _run_binder(self) -> None:
        self.binder = self.place.binder()
        await run_binder(self.place, self.binder)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and not self.doors.shut:
            self.failure = task.exception() or RuntimeError("it just ended")


def id_of(doors: Doors) -> str:
    """Return what tells one life of a process from the next."""
    return doors.lane.name


class FrontDesk:
    """The API server's side of the webhooks: calls whichever replica the service picks, and gives up after a while."""

    def __init__(self, cluster: Cluster, pick: Callable[[], Process | None]) -> None:
        self._pick = pick
        asked = {VMI_WEBHOOK: self._ask_vmi, POD_WEBHOOK: self._ask_pod, START_WEBHOOK: self._ask_start}
        configured: list[Obj] = [*webhook_configuration(IN_PROCESS, b"")["webhooks"]]
        for one in (*configured, start_webhook(IN_PROCESS, b"")):
            cluster.api.admit(hook_of(one, asked[one["name"]]))

    async def _ask_vmi(self, body: bytes) -> bytes:
        return await self._ask(lambda webhooks: webhooks.review_vmi(body))

    async def _ask_pod(self, body: bytes) -> bytes:
        return await self._ask(lambda webhooks: webhooks.review_pod(body))

    async def _ask_start(self, body: bytes) -> bytes:
        return await self._ask(lambda webhooks: webhooks.review_start(body))

    async def _ask(self, review: Callable[[Webhooks], Coroutine[Any, Any, bytes]]) -> bytes:
        process = self._pick()
        if process is None or process.webhooks is None:
            raise ConnectionError("no webhook listens")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        process.lane.call_soon(_serve, process.lane, review(process.webhooks), answer)
        async with asyncio.timeout(TIMEOUT_S):
            return await answer


def _serve(lane: Lane, review: Coroutine[Any, Any, bytes], answer: "asyncio.Future[bytes]") -> None:
    def said(task: "asyncio.Task[bytes]") -> None:
        if answer.done():
            return
        if task.cancelled():
            answer.set_exception(ConnectionError("the webhook died over it"))
        else:
            answer.set_result(task.result())

    lane.create_task(review).add_done_callback(said)
