"""The program's roles as processes: each on its own machine, unchanged, with nothing kept from life to life."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from prometheus_client import CollectorRegistry

from binder.service import Binder
from deploy.asked_in_memory import DOORS, entries, hook_of, path_of
from deploy.roles import Place, run_binder, run_ingest, run_projector
from deploy.serving import kept
from tests.simulation.cluster import Cluster
from tests.simulation.doors import Doors
from tests.simulation.labels import SYSTEM
from tests.simulation.lanes import Lane
from tests.simulation.weather import Weather
from webhooks.metrics import Metrics
from webhooks.service import Webhooks
from webhooks.verdicts import Verdict

PROGRAM = "simulated"


class Process:
    """One life of one role. `failure`: what it died of by itself, None while it lives or was killed."""

    def __init__(self, name: str, doors: Doors) -> None:
        self.name, self.doors, self.lane = name, doors, doors.lane
        self.role = doors.role
        self.place = Place(doors.kube, doors.journal, doors.questions, SYSTEM, f"{name}@{id_of(doors)}", PROGRAM)
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
    """The API server's side of the webhooks: calls whichever replica the service picks, and gives up after a while.

    `asked` is told of each review as it begins, by its bytes.
    `said` is told what became of each review, by the path that was called: the answer's bytes, None where none came.
    """

    def __init__(
        self,
        cluster: Cluster,
        weather: Weather,
        pick: Callable[[str], Process | None],
        asked: Callable[[bytes], None],
        said: Callable[[bytes, bytes | None, str], None],
    ) -> None:
        self._weather, self._pick, self._asked, self._said = weather, pick, asked, said
        for one in entries(SYSTEM):
            cluster.api.admit(hook_of(one, self._asking(path_of(one), one["timeoutSeconds"]), SYSTEM))

    def _asking(self, path: str, patience_s: float) -> Callable[[bytes], Awaitable[bytes]]:
        async def ask(body: bytes) -> bytes:
            answer = None
            self._asked(body)
            try:
                answer = await self._ask(lambda webhooks: DOORS[path](webhooks, body), path, patience_s)
            finally:
                self._said(body, answer, path)
            return answer

        return ask

    async def _ask(
        self, review: Callable[[Webhooks], Coroutine[Any, Any, Verdict]], path: str, patience_s: float
    ) -> bytes:
        process = self._pick(path)
        if process is None or process.webhooks is None or self._weather.strikes("desk away", path):
            raise ConnectionError("no webhook listens")
        answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        process.lane.call_soon(_serve, process.lane, review(process.webhooks), answer)
        async with asyncio.timeout(patience_s):
            verdict = await answer
            if (late := self._weather.strikes("desk late", path)) is not None:
                await asyncio.sleep(late.seconds)
        if self._weather.strikes("desk lost", path):
            raise ConnectionError("the connection broke over the answer")
        return verdict.body


def _serve(lane: Lane, review: Coroutine[Any, Any, Verdict], answer: "asyncio.Future[Verdict]") -> None:
    def said(task: "asyncio.Task[Verdict]") -> None:
        if answer.done():
            return
        if task.cancelled():
            answer.set_exception(ConnectionError("the webhook died over it"))
        else:
            answer.set_result(task.result())

    lane.create_task(review).add_done_callback(said)
