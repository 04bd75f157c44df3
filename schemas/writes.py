"""Objects that we create, as they go to the API server, and what we read of them to know that they are ours."""

from typing import Final

import msgspec

from schemas.budgets import BudgetSpec, BudgetStatus
from schemas.claims import ClaimSpec, ClaimStatus
from schemas.classes import ClassStatus
from schemas.kinds import EVENT, GPU_BUDGET, GPU_CLAIM

NOTE_BYTES_MAX: Final = 1024
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
ALREADY_EXISTS: Final = "AlreadyExists"
TYPE_WARNING: Final = "Warning"


class OwnerReference(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}):
    """Whose object it is: it is collected when the owner with that uid is gone."""

    api_version: str
    kind: str
    name: str
    uid: str


class BlockingOwner(OwnerReference, frozen=True, rename={"api_version": "apiVersion", "block": "blockOwnerDeletion"}):
    """An owner reference that says whether the owner's deletion waits for it (N3: it does not)."""

    block: bool


class NewMetadata(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Metadata of an object that is created."""

    name: str
    namespace: str
    labels: dict[str, str] = {}
    owner_references: tuple[BlockingOwner, ...] = ()
    annotations: dict[str, str] = {}


class NewClaim(msgspec.Struct, frozen=True, rename="camel"):
    """A claim to be created."""

    metadata: NewMetadata
    spec: ClaimSpec
    api_version: str = GPU_CLAIM.api_version
    kind: str = GPU_CLAIM.kind


class ObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    """Which object an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class NewEvent(msgspec.Struct, frozen=True, rename="camel"):
    """A Kubernetes event to be created."""

    metadata: NewMetadata
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: ObjectReference
    note: str
    type: str = TYPE_WARNING
    api_version: str = EVENT.api_version
    kind: str = EVENT.kind


class SeenMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """Which object it is, in which version, and whose."""

    uid: str
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    def owned_by(self, uid: str) -> bool:
        """Say whether an owner has that uid."""
        return any(owner.uid == uid for owner in self.owner_references)


class SeenClaim(msgspec.Struct, frozen=True):
    """A claim as it stands."""

    metadata: SeenMetadata
    spec: ClaimSpec
    status: ClaimStatus | None = None


class SeenClass(msgspec.Struct, frozen=True):
    """A class as it stands."""

    metadata: SeenMetadata
    status: ClassStatus | None = None


class SeenBudget(msgspec.Struct, frozen=True):
    """A budget as it stands."""

    metadata: SeenMetadata
    spec: BudgetSpec
    status: BudgetStatus | None = None


class NewBudget(msgspec.Struct, frozen=True, rename="camel"):
    """A budget to be created."""

    metadata: NewMetadata
    spec: BudgetSpec
    api_version: str = GPU_BUDGET.api_version
    kind: str = GPU_BUDGET.kind


class Seen(msgspec.Struct, frozen=True):
    """An object of any kind as it stands."""

    metadata: SeenMetadata


class SeenVmiStatus(msgspec.Struct, frozen=True):
    """How far a VMI has come."""

    phase: str = ""


class SeenVmi(msgspec.Struct, frozen=True):
    """A VMI as it stands."""

    metadata: SeenMetadata
    status: SeenVmiStatus | None = None


class SeenNamespace(msgspec.Struct, frozen=True):
    """A namespace as it stands."""

    metadata: SeenMetadata
