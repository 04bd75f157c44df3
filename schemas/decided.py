"""What every decision derives from, so that decisions can stand in more than one module."""

import msgspec


class Decided(msgspec.Struct, frozen=True, omit_defaults=True):
    """Anything the binder can say."""
