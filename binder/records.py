"""Records of the state about what is decided once for the cluster or a class, and about starts booked at admission."""

import msgspec

from schemas.decisions import VmiId
from schemas.events import StartRequest
from schemas.objects import Stamp
from schemas.reasons import Hold


class ClassGuard(msgspec.Struct, frozen=True, gc=False):
    """What was decided of a class's finalizer and is not seen yet: it is to be put on, or taken off (`freed`)."""

    uid: str
    freed: bool
    stamp: Stamp


class Kept(msgspec.Struct, frozen=True, gc=False):
    """The node kept for the set that has waited longest: since when, and for whom in line (`order.Rank`).

    Without a node: it was kept for that set, and nobody was asked since who is next.
    """

    vmi: VmiId
    node: str
    rank: tuple[int, int, str, str, str]
    at_ns: int


class Start(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A set booked at admission whose VMI was not seen yet: by which request, and since which logical time (T18).

    `due`: the EVENTS sequence at which its time was over, 0 before; a sign of life of the VMI watch beyond that ends
    it. `withdrawn`: whoever asked gave up.
    """

    request: str
    at_ns: int
    due: int = 0
    withdrawn: bool = False


class AskedStart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A start that is not decided yet: the request, its place in EVENTS, since when, and what holds it up."""

    event: StartRequest
    sequence: int
    at_ns: int
    hold: Hold | None = None
