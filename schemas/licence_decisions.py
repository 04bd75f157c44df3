"""What the binder decided about licences: copies, and classes whose licence can't be copied (L1-L3)."""

from schemas.decided import Decided


class LicenceCopied(Decided, frozen=True, tag="licence-copied"):
    """A namespace has a copy of a class's licence, as its source (`namespace/name`) is now; never a value (L1, T16).

    `digest`: the keyed digest of what the copy holds.
    """

    namespace: str
    name: str
    gpu_class: str
    source: str
    digest: str


class LicenceDropped(Decided, frozen=True, tag="licence-dropped"):
    """A namespace has no copy of a licence any more (L2); `uid` '' where none was seen."""

    namespace: str
    name: str
    uid: str = ""


class LicenceBlocked(Decided, frozen=True, tag="licence-blocked"):
    """A copy can't be written, said once per change of the cause; it is tried again later (C31)."""

    namespace: str
    name: str
    message: str


class LicenceMissing(Decided, frozen=True, tag="licence-missing"):
    """A class's licence can't be copied, as its source is missing or lacks the token; or it can again (L3)."""

    name: str
    uid: str
    missing: bool
    reason: str
    message: str
