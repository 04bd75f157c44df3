"""Asking the binder: the request onto EVENTS, the answer off DECISIONS; dry runs over request/reply (T17, T19)."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol

import structlog

from binder.journal import Full, Journal, Unavailable, Unclear
from schemas.answers import Answer, decode_answer
from schemas.events import (
    AnyEvent,
    OrderRequest,
    PodRequest,
    StartRequest,
    StartWithdrawn,
    VmiRequest,
    WriteRequest,
    encode_event,
)
from schemas.reasons import Hold
from schemas.streams import EVENTS, EVENTS_REQUEST
from webhooks import told
from webhooks.answers import REMEMBERED, Answers, Skipped
from webhooks.refusals import RecentRefusals
from webhooks.reviews import UNREADABLE, TurnedAway

Request = VmiRequest | PodRequest | StartRequest | WriteRequest | OrderRequest
NOT_TAKEN = "NATS did not take the request in time"
NO_ROOM = "NATS has no room left for the request: its operator must give the stream EVENTS more"

SUBJECTS: dict[type, str] = {
    VmiRequest: "vmi",
    PodRequest: "pod",
    StartRequest: "start",
    WriteRequest: "write",
    OrderRequest: "order",
}

REQUEST_BYTES_MAX = 128 * 1024
"""Several times what a VMI with all the devices there can be takes; what is logged stays for good."""

WITHDRAW_S = 30.0
"""So long a withdrawal is tried to be published; what it would free, is free after a minute without it (T18)."""

HOLDS = {
    Hold.NOT_WHOLE: "the binder does not see the whole cluster yet",
    Hold.PAUSED: "placing is paused by the platform operator",
    Hold.NAMESAKE: "an earlier run of this VM has not ended yet",
    Hold.IN_LINE: "the binder has others to decide on first",
}

_log = structlog.get_logger()


class DryRuns(Protocol):
    """A way to put a request to any binder whose state is warm, off the streams (T19)."""

    async def ask(self, body: bytes) -> bytes:
        """Return the reply to an encoded request: an encoded answer. Raises if nobody warm replies in time."""
        ...


class Asks:
    """Puts requests to the binder, and knows whether its answers flow. `took` is told the seconds to each answer."""

    def __init__(
        self,
        journal: Journal,
        answers: Answers,
        dry_runs: DryRuns,
        *,
        took: Callable[[float], None],
        pause_s: float = 0.1,
    ) -> None:
        self._journal, self._answers, self._dry_runs, self._pause_s = journal, answers, dry_runs, pause_s
        self._took = took
        self._refusals = RecentRefusals()
        self._records_at_silence = -1
        self._withdrawn: OrderedDict[str, bool] = OrderedDict()
        self._withdrawing: set[asyncio.Task[None]] = set()

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

        Raises `TurnedAway` with the reason why there is none: nothing was booked for it, or it is withdrawn (T18).
        """
        _check_length(request)
        if isinstance(request, StartRequest):
            return await self._ask_start(request, deadline)
        refused = self._refusals.again(request)
        if refused is not None:
            return refused
        answer = await self._ask(self._refusals.counted(request), deadline, _Step(ANNOUNCED))
        self._refusals.learn(request, answer)
        return answer

    async def _ask_start(self, request: StartRequest, deadline: float) -> Answer:
        """Ask for a start: room changes all the time, so no refusal stands for the next; who gives up, says so."""
        if request.request in self._withdrawn:
            raise _unanswered("this request was given up before")
        step = _Step(ANNOUNCED)
        try:
            return await self._ask(request, deadline, step)
        except BaseException:
            # Also where whoever asked has gone: nobody hears an answer any more.
            if step.begun:
                self._withdraw(request)
            raise

    async def _ask(self, request: Request, deadline: float, step: "_Step") -> Answer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout_at(deadline):
                await self._answers.ready()
                if request.version not in self._answers.versions:
                    raise _unanswered(f"the binder does not read requests of version {request.version} yet")
                tag = str(request.__struct_config__.tag)
                if not self._answers.reads(tag):
                    raise _unanswered(f"the binder does not read requests of kind {tag} yet")
                answer = await self._published(request, step)
        except TimeoutError:
            hold = self._answers.hold(request.request)
            if hold is not None:
                raise _unanswered(HOLDS[hold]) from None
            if step.published:
                self._records_at_silence = self._answers.records_seen
            raise _unanswered(step.doing) from None
        except Skipped as skipped:
            raise _unanswered(f"the binder passed over the request: {skipped.why}") from None
        self._took(loop.time() - began)
        return answer

    def _withdraw(self, request: StartRequest) -> None:
        """Say that nobody waits any more; the answer to whoever asked does not wait for that."""
        self._withdrawn[request.request] = True
        if len(self._withdrawn) > REMEMBERED:
            self._withdrawn.popitem(last=False)
        task = asyncio.create_task(self._publish_withdrawal(StartWithdrawn(request.request, request.vmi)))
        self._withdrawing.add(task)
        task.add_done_callback(self._withdrawing.discard)

    async def _publish_withdrawal(self, event: StartWithdrawn) -> None:
        try:
            async with asyncio.timeout(WITHDRAW_S):
                await self._append("withdrawn", event.request, event, _Step(NOT_TAKEN))
        except (TimeoutError, TurnedAway) as error:
            _log.warning("start.not-withdrawn", request=event.request, error=str(error) or "NATS took it not in time")

    async def _published(self, request: Request, step: "_Step") -> Answer:
        with self._answers.awaited(request.request) as waiter:
            step.doing, step.begun = NOT_TAKEN, True
            publishing = asyncio.create_task(self._publish(request, step))
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

    async def _publish(self, request: Request, step: "_Step") -> int:
        return await self._append(SUBJECTS[type(request)], request.request, request, step)

    async def _append(self, kind: str, request: str, event: AnyEvent, step: "_Step") -> int:
        """Append until it is clear: the message id makes the repeated publish one message (T3)."""
        body, told = encode_event(event), False
        while True:
            try:
                return await self._journal.append(
                    EVENTS, f"{EVENTS_REQUEST}.{kind}", body, message_id=f"request-{kind}-{request}"
                )
            except (Unclear, Unavailable) as error:
                step.doing = NO_ROOM if isinstance(error, Full) else NOT_TAKEN
                if not told:
                    _log.info("request.retry", request=request, error=f"{type(error).__name__}: {error}")
                told = True
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


ANNOUNCED = "the binder has not announced itself: is it running, and is NATS reachable?"


class _Step:
    """How far an ask came: what to say if time runs out now."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self.begun = False
        self.published = False


def _check_length(request: Request) -> None:
    """Refuse what a tenant wrote so large that its requests would fill the log."""
    length = len(encode_event(request))
    if length > REQUEST_BYTES_MAX:
        raise TurnedAway(
            "malformed",
            HTTPStatus.FORBIDDEN,
            "TooLong",
            f"what the binder has to know of this takes {length} bytes, more than {REQUEST_BYTES_MAX}: "
            "name fewer devices, resources, and terms of its node affinity",
        )


def _unanswered(why: str) -> TurnedAway:
    return TurnedAway(
        "unanswered",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "NoAnswer",
        f"GPUs are handed out only on the binder's answer, and {why}; nothing was booked, try again",
    )
