"""What every message of the EVENTS stream is; `schemas.events` has them all."""

import msgspec

MESSAGE_VERSION = 1


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Anything that can happen."""
