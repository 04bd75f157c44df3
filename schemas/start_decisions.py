"""What the binder decided about starts that are booked at admission, under policy Refuse (A12, T17, T18)."""

from schemas.decided import Decided, HeldClaim, TemplateClaim, VmiId
from schemas.reasons import Hold


class SetBooked(Decided, frozen=True, tag="set-booked"):
    """A VMI create may pass: its whole set is booked on a node before VMI and launcher are there.

    `requests`: what is counted on the node until the launcher is seen: units, and what the VMI declares.
    """

    request: str
    vmi: VmiId
    claims: tuple[TemplateClaim, ...]
    node: str
    requests: dict[str, int]
    held: tuple[HeldClaim, ...] = ()


class StartHeld(Decided, frozen=True, tag="start-held"):
    """A start can't be decided yet: its request waits, as long as somebody waits for the answer; said once a reason."""

    request: str
    vmi: VmiId
    reason: Hold
