"""Request/reply between processes, as NATS carries it: whoever is asked answers on its own lane, or nobody does."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from binder.journal import Unavailable, Unclear
from schemas.streams import ASK_DRY_RUN
from tests.simulation.chance import Chance
from tests.simulation.lanes import Lane

HEARD = (ASK_DRY_RUN,)
"""What is asked here. Nobody tells whether a holder of a lease still lives: its duration decides."""

Reply = Callable[[bytes], Awaitable[bytes]]


class _Answerer(msgspec.Struct, frozen=True, eq=False):
    lane: Lane
    reply: Reply


class Bus:
    """Who answers which subject now."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._answerers: dict[str, list[_Answerer]] = {}

    def add(self, subject: str, one: _Answerer) -> Callable[[], None]:
        """Let somebody answer until the returned function is called."""
        self._answerers.setdefault(subject, []).append(one)
        return lambda: self._answerers[subject].remove(one)

    def pick(self, subject: str) -> _Answerer | None:
        """Return one of those who answer and live, None where nobody does."""
        known = [one for one in self._answerers.get(subject, ()) if not one.lane.dead]
        return known[int(self._chance.draw(f"answers {subject}") * len(known))] if known else None


class Questions:
    """The door of one process to the others. `away`: whether its way to NATS is broken now."""

    connected = True

    def __init__(self, bus: Bus, lane: Lane, away: Callable[[], bool]) -> None:
        self._bus, self._lane, self._away = bus, lane, away

    async def ask(self, subject: str, body: bytes, *, seconds: float) -> bytes:
        """Return somebody's answer. Raises `Unavailable` where NATS is away, `Unclear` where nobody answers in time."""
        if self._away():
            raise Unavailable("NATS is away")
        one = self._bus.pick(subject)
        if one is None:
            raise Unclear(f"nobody answers on {subject} within {seconds} s")
        answer: asyncio.Future[bytes] = self._lane.create_future()
        one.lane.call_soon(_reply, one, body, answer)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise Unclear(f"nobody answers on {subject} within {seconds} s") from None

    async def answer(self, subject: str, queue: str, reply: Reply) -> Callable[[], Awaitable[None]]:
        """Answer questions until the returned function is called."""
        del queue
        leave = self._bus.add(subject, _Answerer(self._lane, reply)) if subject in HEARD else lambda: None

        async def stop() -> None:
            leave()

        return stop


def _reply(one: _Answerer, body: bytes, answer: "asyncio.Future[bytes]") -> None:
    def said(task: "asyncio.Task[bytes]") -> None:
        if not answer.done() and not task.cancelled() and task.exception() is None:
            answer.set_result(task.result())

    one.lane.create_task(_awaited(one.reply(body))).add_done_callback(said)


async def _awaited(reply: Awaitable[bytes]) -> bytes:
    return await reply
