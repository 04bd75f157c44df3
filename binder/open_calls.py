"""Calls whose answers are still due: each ends once, by its answer, its time or a failure for all."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from binder.journal import Unclear
from binder.stream_api import Delivery

Answer = asyncio.Future[Delivery | Exception]


class OpenCalls:
    """The calls of one connection by token, the last word of the subject that their answer comes on."""

    def __init__(self) -> None:
        self._tokens = itertools.count(1)
        self._open: dict[str, tuple[str, Answer]] = {}

    @contextmanager
    def begin(self, subject: str, seconds: float) -> Iterator[tuple[str, Answer]]:
        """Note a call to a subject: (token, what to await). After `seconds` the answer is `Unclear`.

        Failures come as results: a caller that is gone leaves no exception behind that nobody took.
        """
        loop, token = asyncio.get_running_loop(), str(next(self._tokens))
        answer: Answer = loop.create_future()
        self._open[token] = (subject, answer)
        timer = loop.call_later(seconds, _settle, answer, Unclear(f"{subject}: no answer within {seconds:g} s"))
        try:
            yield token, answer
        finally:
            timer.cancel()
            del self._open[token]

    def answered(self, token: str, delivery: Delivery) -> None:
        """Take an answer; one that comes too late is passed over."""
        if token in self._open:
            _settle(self._open[token][1], delivery)

    def fail(self, error: Exception, where: Callable[[str], bool] = lambda _subject: True) -> None:
        """End the calls to these subjects with a failure."""
        for subject, answer in self._open.values():
            if where(subject):
                _settle(answer, error)


def _settle(answer: Answer, result: Delivery | Exception) -> None:
    if not answer.done():
        answer.set_result(result)
