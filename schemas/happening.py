"""What every message of the EVENTS stream is; `schemas.events` has them all."""

import msgspec

FIRST_VERSION = 1
"""What a message is of that names no version. It stays 1: whoever writes a later shape says so, or older readers
would take it for the first."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Anything that can happen. None can be part of a cycle, so the garbage collector leaves them alone."""
