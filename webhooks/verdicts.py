"""An answered review: what it counts as, and the bytes that go back."""

from http import HTTPStatus

import msgspec

from schemas.answers import Answer
from schemas.decisions import Refused
from webhooks.reviews import Review, TurnedAway, allow, refuse


class Verdict(msgspec.Struct, frozen=True):
    """An answered review: the word that metrics count, the answer's body, and whether it was a review at all."""

    word: str
    body: bytes
    readable: bool = True


def untouched(review: Review) -> Verdict:
    """Let pass what is none of our business."""
    return Verdict("untouched", allow(review.uid))


def unchecked(uid: str, why: str) -> Verdict:
    """Let pass what could not be checked, and say so: who binds checks again (T20)."""
    return Verdict("unchecked", allow(uid, warnings=(f"GPU budgets were not checked: {why}"[:WARNING_MAX],)))


WARNING_MAX = 120
"""The API server cuts longer warnings itself, once they come in number."""


def refused(review: Review, answer: Answer) -> Verdict:
    """Return the binder's refusal. Raises `TurnedAway` where the answer is none, but that of another request."""
    if isinstance(answer, Refused):
        return Verdict("refused", refuse(review.uid, HTTPStatus.FORBIDDEN, answer.reason, answer.message))
    raise TurnedAway(
        "unanswered",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "NoAnswer",
        f"the binder answered {type(answer).__name__} to a request of another kind: try again",
    )
