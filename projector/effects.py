"""What the world must be told, as data: claims, their status, pins, warnings, deletions."""

import msgspec

from schemas.claims import Phase
from schemas.decisions import VmiId
from schemas.objects import NodeSelectorTerm, Stamp


class Effect(msgspec.Struct, frozen=True):
    """Anything that is written. `action`, `vmi` and `name` say in an outcome what it was."""

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
    """A claim's status shows the decision `stamp` (T22). `reason`, `message`: of its one condition."""

    stamp: Stamp
    phase: Phase
    node: str
    resource: str
    placed: bool
    reason: str
    message: str


class Pin(Effect, frozen=True, tag="pin"):
    """The launcher is pinned to the node and our gate is off, in one write (D3, T21).

    `terms`: the pod's required node affinity as it was seen, which the write holds to.
    """

    pod_uid: str
    node: str
    terms: tuple[NodeSelectorTerm, ...]


class Warn(Effect, frozen=True, tag="event"):
    """One Warning event on the VMI tells why it waits: one for each decision that said so (D5, C59)."""

    told: Stamp
    reason: str
    message: str


class DropClaim(Effect, frozen=True, tag="drop"):
    """A template claim that nobody decided is deleted (T14). Of the VMI only the namespace is known."""

    uid: str


class DropPod(Effect, frozen=True, tag="drop-pod"):
    """A pinned launcher that its node did not take is deleted, if it still stands as it was given up (D7, C17).

    `refused`: it had failed on its node; else it was on none.
    """

    uid: str
    refused: bool


AnyEffect = CreateClaim | WriteStatus | Pin | Warn | DropClaim | DropPod
Stage = tuple[AnyEffect, ...]
"""Effects that may go side by side; stages follow one another."""
