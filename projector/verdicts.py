"""What became of a write: landed, settled without it, to be tried again, refused, or overtaken (T16, T23)."""

from enum import IntEnum

import msgspec

from binder.kube import ApiError
from schemas.writes import NAMESPACE_TERMINATING

UNCLEAR_CODES = frozenset({0, 401, 408, 425, 429})


class Kind(IntEnum):
    """How a write ended; of several writes the highest speaks for all."""

    LANDED = 0
    SETTLED = 1
    AGAIN = 2
    REFUSED = 3
    BEHIND = 4


class Verdict(msgspec.Struct, frozen=True, order=True):
    """How a write ended; code, reason and field path of a refusal, never a value (T16).

    LANDED: the world shows it. SETTLED: it can't show it any more, its object is gone. AGAIN: unclear,
    or a clear "not now". REFUSED: it won't be taken as it is; the binder must decide anew.
    BEHIND: the object shows a newer decision than ours, so we are a writer of the past.
    """

    kind: Kind
    code: int = 0
    reason: str = ""
    field: str = ""


LANDED = Verdict(Kind.LANDED)
SETTLED = Verdict(Kind.SETTLED)
BEHIND = Verdict(Kind.BEHIND)


def again(error: ApiError) -> Verdict:
    """Return "try again", with what was answered."""
    return Verdict(Kind.AGAIN, error.code, error.reason)


def refused(code: int, reason: str, field: str = "") -> Verdict:
    """Return a refusal."""
    return Verdict(Kind.REFUSED, code, reason, field)


def judged(error: ApiError) -> Verdict:
    """Judge an answer that means the same for every write: unclear ones may have landed, and are repeated."""
    if error.code in UNCLEAR_CODES or error.code >= 500:
        return again(error)
    if is_namespace_terminating(error):
        return SETTLED
    field = error.causes[0].field if error.causes else ""
    return refused(error.code, error.reason, field)


def is_namespace_terminating(error: ApiError) -> bool:
    """Say whether nothing can be created because the namespace goes."""
    return error.code == 403 and any(cause.reason == NAMESPACE_TERMINATING for cause in error.causes)
