"""Records of the state about what is decided once for the whole cluster, or for a class."""

import msgspec

from schemas.decisions import VmiId
from schemas.objects import Stamp


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
