"""What to do when the API server refuses or is away: wait longer each time, and say so once per change."""

from typing import Final

import structlog

from binder.kube import ApiError
from ingest.backoff import Backoff

_WANTS_A_HAND: Final = frozenset({400, 401, 403, 405})
_AWAY: Final = 0

LASTING: Final = 5
"""Refusals in a row before somebody is called: a server that just started answers 403 until it has read its roles."""

log = structlog.get_logger()


class Patience:
    """For one kind and one verb."""

    def __init__(self, kind: str, verb: str) -> None:
        self._kind = kind
        self._verb = verb
        self._backoff = Backoff()
        self._complaint = ""

    def failed(self, error: ApiError) -> float:
        """Return how many seconds to wait; complain if this is news.

        A connection that broke once is none: servers restart, and cut watches that are silent for long.
        """
        lasting = error.code in _WANTS_A_HAND and self._backoff.failures >= LASTING
        complaint = f"{error.code} {error.reason} {lasting}"
        if complaint != self._complaint and (error.code != _AWAY or self._backoff.failures):
            self._complaint = complaint
            kind, verb, why = self._kind, self._verb, str(error)
            if lasting:
                remedy = "grant list and watch on this resource"
                log.error("the API server refused", kind=kind, verb=verb, why=why, remedy=remedy)
            else:
                log.warning("the API server refused", kind=kind, verb=verb, why=why, remedy="trying again")
        return self._backoff.next()

    def succeeded(self) -> None:
        """Begin anew; say so where it was complained."""
        if self._complaint:
            log.info("the API server answers again", kind=self._kind, verb=self._verb)
        self._complaint = ""
        self._backoff.succeeded()
