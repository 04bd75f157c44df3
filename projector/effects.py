"""What the world must be told, as data: claims, their status, pins, warnings, deletions."""

import msgspec

from binder.licences import ACTION_COPY, ACTION_DROP, ACTION_SHOW
from schemas.claims import Phase
from schemas.decisions import VmiId
from schemas.kinds import VMI, Resource
from schemas.objects import NodeSelectorTerm, Stamp


class Effect(msgspec.Struct, frozen=True):
    """Anything that is written. `action`, `vmi` and `name` say in an outcome what it was.

    Of what no VMI has to do with, `vmi` tells the namespace alone.
    """

    vmi: VmiId
    name: str

    @property
    def action(self) -> str:
        """Return the kind of write, as outcomes spell it: the struct's tag."""
        return str(self.__struct_config__.tag)


class CreateClaim(Effect, frozen=True, tag="claim"):
    """A template claim exists, owned by the VMI (N3)."""

    class_name: str
    count: int


class WriteStatus(Effect, frozen=True, tag="status"):
    """A claim's status shows the decision `stamp` (T22). `reason`, `message`: of its one condition.

    `attached`: who holds the claim. `uid`: which held claim; a template claim is known by its owner.
    """

    stamp: Stamp
    phase: Phase
    node: str
    resource: str
    placed: bool
    reason: str
    message: str
    attached: VmiId | None = None
    uid: str = ""


class Pin(Effect, frozen=True, tag="pin"):
    """The launcher is pinned to the node and our gate is off, in one write (D3, T21).

    `terms`: the pod's required node affinity as it was seen, which the write holds to.
    """

    pod_uid: str
    node: str
    terms: tuple[NodeSelectorTerm, ...]


class Warn(Effect, frozen=True, tag="event"):
    """One Warning event tells why something waits or goes: one for each decision that said so (D5, C59).

    `about`: the kind of the object that `vmi` names, which is a held claim where no VMI holds it.
    """

    told: Stamp
    reason: str
    message: str
    about: Resource = VMI


class DropClaim(Effect, frozen=True, tag="drop"):
    """A template claim that nobody decided is deleted (T14)."""

    uid: str


class DropPod(Effect, frozen=True, tag="drop-pod"):
    """A pinned launcher that its node did not take is deleted, if it still stands as it was given up (D7, C17).

    `refused`: it had failed on its node; else it was on none.
    """

    uid: str
    refused: bool


class DropVmi(Effect, frozen=True, tag="drop-vmi"):
    """A VMI whose node can't keep its set is deleted, if its guest does not run by now (D8)."""


class GuardClaim(Effect, frozen=True, tag="guard-claim"):
    """A held claim carries our finalizer, so that its deletion waits for who uses it (F1)."""

    uid: str


class UnguardClaim(Effect, frozen=True, tag="unguard-claim"):
    """Our finalizer is off a held claim that is being deleted and used by nobody any more (F1)."""

    uid: str


class GuardClass(Effect, frozen=True, tag="guard-class"):
    """A class carries our finalizer, so that its deletion waits for what uses it (K2)."""

    uid: str


class UnguardClass(Effect, frozen=True, tag="unguard-class"):
    """Our finalizer is off a class that is being deleted and used by nothing any more (K2)."""

    uid: str


class CopyLicence(Effect, frozen=True, tag=ACTION_COPY):
    """A namespace's Secret holds what its source (`namespace/name`) held, by this keyed digest (L1)."""

    stamp: Stamp
    gpu_class: str
    source: str
    digest: str


class DropLicence(Effect, frozen=True, tag=ACTION_DROP):
    """A copy of a licence is gone, if it still is what we wrote (L2); `uid` '' where none was seen."""

    uid: str


class ShowLicence(Effect, frozen=True, tag=ACTION_SHOW):
    """A class shows whether its licence can be copied (L3); `unsaid`: nothing was decided, old complaints go."""

    uid: str
    missing: bool
    reason: str
    message: str
    unsaid: bool = False


AnyEffect = (
    CreateClaim
    | WriteStatus
    | Pin
    | Warn
    | DropClaim
    | DropPod
    | DropVmi
    | GuardClaim
    | UnguardClaim
    | GuardClass
    | UnguardClass
    | CopyLicence
    | DropLicence
    | ShowLicence
)
Stage = tuple[AnyEffect, ...]
"""Effects that may go side by side; stages follow one another."""
