"""What a process can be: the names of the roles, as `--role` and the leases spell them."""

from enum import StrEnum


class Role(StrEnum):
    """One role."""

    BINDER = "binder"
    INGEST = "ingest"
    PROJECTOR = "projector"
    WEBHOOKS = "webhooks"
    ACCOUNTING = "accounting"
