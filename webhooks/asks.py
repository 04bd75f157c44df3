"""Asking the binder: the request onto EVENTS, the answer off DECISIONS; dry runs over request/reply (T17, T19)."""

import asyncio
from http import HTTPStatus
from typing import Any, Protocol

import structlog

from binder.journal import Journal, Unavailable, Unclear
from schemas.answers import Answer, decode_answer
from schemas.events import PodRequest, VmiRequest, encode_event
from schemas.streams import EVENTS, EVENTS_REQUEST
from webhooks import told
from webhooks.answers import Answers, Skipped
from webhooks.refusals import RecentRefusals
from webhooks.reviews import UNREADABLE, TurnedAway

Request = VmiRequest | PodRequest

_log = structlog.get_logger()


class DryRuns(Protocol):
    """A way to put a request to any binder whose state is warm, off the streams (T19)."""

    async def ask(self, body: bytes) -> bytes:
        """Return the reply to an encoded request: an encoded answer. Raises if nobody warm replies in time."""
        ...


class Asks:
    """Puts requests to the binder, and knows whether its answers flow."""

    def __init__(self, journal: Journal, answers: Answers, dry_runs: DryRuns, *, pause_s: float = 0.1) -> None:
        self._journal, self._answers, self._dry_runs, self._pause_s = journal, answers, dry_runs, pause_s
        self._refusals = RecentRefusals()
        self._records_at_silence = -1

    @property
    def trouble(self) -> str:
        """Why answers do not flow, '' where they do: as far as the log and the last request tell."""
        if not self._answers.flowing:
            return "its log is not followed, or no leader has announced itself there"
        if self._records_at_silence == self._answers.records_seen:
            return "the last request was not answered, and nothing was written to the log since"
        return ""

    async def ask(self, request: Request, deadline: float) -> Answer:
        """Publish the request and return its durable answer; `deadline` is in the loop's time.

        Raises `TurnedAway` with the reason why there is none: nothing was booked for it (T18).
        """
        refused = self._refusals.again(request)
        if refused is not None:
            return refused
        step = _Step("the binder has not announced itself: is it running, and is NATS reachable?")
        try:
            async with asyncio.timeout_at(deadline):
                await self._answers.ready()
                if request.version not in self._answers.versions:
                    raise _unanswered(f"the binder does not read requests of version {request.version} yet")
                answer = await self._published(self._refusals.counted(request), step)
        except TimeoutError:
            if step.published:
                self._records_at_silence = self._answers.records_seen
            raise _unanswered(step.doing) from None
        except Skipped as skipped:
            raise _unanswered(f"the binder passed over the request: {skipped.why}") from None
        self._refusals.learn(request, answer)
        return answer

    async def _published(self, request: Request, step: "_Step") -> Answer:
        with self._answers.awaited(request.request) as waiter:
            step.doing = "NATS did not take the request in time"
            publishing = asyncio.create_task(self._publish(request))
            try:
                # The answer can be there before the acknowledgement of what it answers.
                either: set[asyncio.Future[Any]] = {publishing, waiter.future}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if not waiter.future.done():
                    told.stored(publishing.result())
                    self._answers.published(waiter, publishing.result())
                step.doing, step.published = "the binder gave no answer in time", True
                return await waiter.future
            finally:
                publishing.cancel()
                await asyncio.gather(publishing, return_exceptions=True)

    async def _publish(self, request: Request) -> int:
        """Append until it is clear: the message id makes the repeated publish one message (T3)."""
        kind = "vmi" if isinstance(request, VmiRequest) else "pod"
        body = encode_event(request)
        while True:
            try:
                return await self._journal.append(
                    EVENTS, f"{EVENTS_REQUEST}.{kind}", body, message_id=f"request-{kind}-{request.request}"
                )
            except (Unclear, Unavailable) as error:
                _log.info("request.retry", request=request.request, error=f"{type(error).__name__}: {error}")
                await asyncio.sleep(self._pause_s)
            except (ValueError, LookupError) as error:
                raise _unanswered(f"the request could not be published: {error}") from None

    async def ask_dry(self, request: Request, deadline: float) -> Answer:
        """Return the answer of any warm binder; nothing is written anywhere (T19, C25)."""
        try:
            async with asyncio.timeout_at(deadline):
                answer = decode_answer(await self._dry_runs.ask(encode_event(request)))
        except UNREADABLE:
            raise _unanswered("no binder is warm enough to answer a dry run") from None
        except Exception as error:  # noqa: BLE001 - who answers dry runs fails in its own ways; all mean no answer
            _log.info("dryrun.unanswered", request=request.request, error=f"{type(error).__name__}: {error}")
            raise _unanswered("no binder answered the dry run") from None
        if answer.request != request.request:
            raise _unanswered("the dry run was answered for another request")
        return answer


class _Step:
    """How far an ask came: what to say if time runs out now."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self.published = False


def _unanswered(why: str) -> TurnedAway:
    return TurnedAway(
        "unanswered",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "NoAnswer",
        f"GPUs are handed out only on the binder's answer, and {why}; nothing was booked, try again",
    )
