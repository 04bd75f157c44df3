"""What a process can be: the names of the roles, as `--role` and the leases spell them."""

from enum import StrEnum


class Role(StrEnum):
    """One role."""

    BINDER = "binder"
    INGEST = "ingest"
    PROJECTOR = "projector"
    WEBHOOKS = "webhooks"
    ACCOUNTING = "accounting"


ELECTED = tuple(role for role in Role if role is not Role.WEBHOOKS)
"""Roles that work under a lease; webhooks answer in every replica."""

ESSENTIAL = tuple(role for role in ELECTED if role is not Role.ACCOUNTING)
"""Roles that the log lives by; accounting may be somebody else's, and reads no log."""
