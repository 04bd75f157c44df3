"""What is kept of licences: each copy as it was decided, and what was said of a class's source (pure)."""

import msgspec

from schemas.objects import Stamp


class LicenceCopy(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A copy of a class's licence in a namespace, as it was decided.

    `digest`: of what it holds, '' once it is to go; `going`: the uid that is told to. `at_ns`, `times`: when it was
    decided, and how often in a row with the same content. `seen`: the copy was seen as decided since.
    `refused`: why it could not be written; `told`: which of that was told. `retry_ns`: when it may be decided again.
    """

    gpu_class: str
    stamp: Stamp
    source: str = ""
    digest: str = ""
    confirmed: Stamp = Stamp()
    going: str = ""
    seen: bool = False
    at_ns: int = 0
    times: int = 0
    refused: str = ""
    told: str = ""
    fails: int = 0
    retry_ns: int = 0


class LicenceTrouble(msgspec.Struct, frozen=True, gc=False):
    """What was said last of a class's licence, and whether its condition is known to show it."""

    uid: str
    missing: bool
    reason: str
    message: str
    stamp: Stamp
    confirmed: Stamp = Stamp()
