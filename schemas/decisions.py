"""What the binder decided, in the past tense: the entries of the log.

New fields get defaults, tags are never reused, a changed meaning is a new tag. An unknown tag stops
every reader (T6): a skipped decision would be another history.
"""

import msgspec

from schemas import adoption_decisions, decided, licence_decisions, start_decisions
from schemas.decided import Decided
from schemas.objects import NodeSelectorTerm, Toleration
from schemas.reasons import GiveUp, Order, Placing, Refusal, Release, Unkept, Wait

VmiId = decided.VmiId
TemplateClaim = decided.TemplateClaim
HeldClaim = decided.HeldClaim
Over = decided.Over


class Rejected(Decided, frozen=True, tag="rejected"):
    """The input could not be read and changed nothing; `why` names the field, never a value (T6)."""

    why: str


class GpuEntry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One resolved entry of an admission answer; `claim`: the held claim that gives the units, '' for a class entry."""

    class_name: str
    count: int
    resource: str
    claim: str = ""


class VmiAdmitted(Decided, frozen=True, tag="vmi-admitted"):
    """A VMI create may pass: the webhook writes one gpus entry per unit and the policy mark (A1).

    `licence`: the Secret that its guest gets as a disk, '' where it needs none (L5).
    """

    request: str
    namespace: str
    name: str
    entries: tuple[GpuEntry, ...]
    policy: str
    licence: str = ""


class PodAdmitted(Decided, frozen=True, tag="pod-admitted"):
    """A launcher create may pass behind our gate, with the classes' tolerations (P2, P3).

    `request` is stamped on the pod: a pod carrying it for this owner is the admitted one (T25). `node`: where its set
    is booked already, to which it is pinned at creation (P1).
    """

    request: str
    vmi: VmiId
    gate: bool
    tolerations: tuple[Toleration, ...] = ()
    node: str = ""


class Refused(Decided, frozen=True, tag="refused"):
    """An admission request was refused; `message` is the whole sentence the requester reads."""

    request: str
    namespace: str
    name: str
    reason: Refusal
    message: str


class WritePassed(Decided, frozen=True, tag="write-passed"):
    """A write that declares units, or an order, may pass; nothing is booked for it (B2, O1)."""

    request: str
    namespace: str
    name: str


class SetOpened(Decided, frozen=True, tag="set-opened"):
    """A VMI's set exists: its template claims are created and owned by it, held ones are attached to it (D3, N3)."""

    vmi: VmiId
    claims: tuple[TemplateClaim, ...]
    held: tuple[HeldClaim, ...] = ()


class SetPlaced(Decided, frozen=True, tag="set-placed"):
    """The whole set is booked on one node; the pod is pinned there and our gate removed (D3, T21).

    `terms` are the pod's required node affinity terms as seen; the pin is ANDed into each of them.
    """

    vmi: VmiId
    node: str
    pod: str
    pod_uid: str
    terms: tuple[NodeSelectorTerm, ...] = ()


class SetWaits(Decided, frozen=True, tag="set-waits"):
    """The set has no place: said once per change of reason (D5, C59). `over`: the budget that it waits for (B3)."""

    vmi: VmiId
    reason: Wait
    message: str
    over: Over | None = None


class SetReleased(Decided, frozen=True, tag="set-released"):
    """The booking ended and its units are free; the claims stay with their VMI."""

    vmi: VmiId
    node: str
    reason: Release


class NodeSkipped(Decided, frozen=True, tag="node-skipped"):
    """The node did not take the set's launcher: it is skipped for the VM, and the pod is deleted if it still stands so.

    `message`: the sentence of the Warning event on the VMI (D7, C17).
    """

    vmi: VmiId
    node: str
    pod: str
    pod_uid: str
    cause: GiveUp
    message: str


class SetClosed(Decided, frozen=True, tag="set-closed"):
    """VMI and launcher are gone: the set is forgotten, the API server collects the claims by owner."""

    vmi: VmiId


class VmiGivenUp(Decided, frozen=True, tag="vmi-given-up"):
    """A VMI that is pinned and doesn't run is deleted, so that its set can leave a node that can't keep it (D8)."""

    vmi: VmiId
    node: str
    reason: Unkept
    message: str


class NodeKept(Decided, frozen=True, tag="node-kept"):
    """The node is kept for the set that has waited longest: smaller ones don't take what becomes free there.

    An empty `node` ends what was kept before.
    """

    vmi: VmiId
    node: str


class HeldPlaced(Decided, frozen=True, tag="held-placed"):
    """Held claims that go together are on one node (D6, D9, D10)."""

    namespace: str
    claims: tuple[HeldClaim, ...]
    node: str
    why: Placing


class HeldLost(Decided, frozen=True, tag="held-lost"):
    """Held claims that go together have no node any more: theirs can't keep them, and no other has room (D9, D10)."""

    namespace: str
    claims: tuple[HeldClaim, ...]
    node: str
    reason: Unkept
    message: str


class HeldWaits(Decided, frozen=True, tag="held-waits"):
    """Held claims that go together are not all on one node: why, said once per change of reason (D5, C59).

    `over`: the budget that they wait for (B3).
    """

    namespace: str
    claims: tuple[HeldClaim, ...]
    reason: Wait
    message: str
    over: Over | None = None


class HeldFreed(Decided, frozen=True, tag="held-freed"):
    """A held claim that is being deleted is used by nobody any more: its units are free, our finalizer goes (F1)."""

    namespace: str
    name: str
    uid: str


class ClassGuarded(Decided, frozen=True, tag="class-guarded"):
    """A class carries our finalizer, so that its deletion waits for what uses it (K2)."""

    name: str
    uid: str


class ClassFreed(Decided, frozen=True, tag="class-freed"):
    """A class that is being deleted is used by nobody any more: our finalizer goes (K2)."""

    name: str
    uid: str


class Commanded(Decided, frozen=True, tag="commanded"):
    """An operator's command was carried out, or not: then nothing changed. `answer`: the sentence that tells them."""

    order: Order
    who: str
    done: bool
    answer: str
    namespace: str = ""
    name: str = ""
    node: str = ""


class ClaimDropped(Decided, frozen=True, tag="claim-dropped"):
    """A template claim that nobody decided is deleted by uid (T14)."""

    namespace: str
    name: str
    uid: str


LicenceCopied = licence_decisions.LicenceCopied
LicenceDropped = licence_decisions.LicenceDropped
LicenceBlocked = licence_decisions.LicenceBlocked
LicenceMissing = licence_decisions.LicenceMissing
LauncherAdopted = adoption_decisions.LauncherAdopted
SetAdopted = adoption_decisions.SetAdopted
HeldAdopted = adoption_decisions.HeldAdopted
Adopted = adoption_decisions.Adopted
SetBooked = start_decisions.SetBooked
StartHeld = start_decisions.StartHeld

Decision = (
    Rejected
    | VmiAdmitted
    | PodAdmitted
    | Refused
    | WritePassed
    | SetOpened
    | SetPlaced
    | SetWaits
    | SetReleased
    | NodeSkipped
    | SetClosed
    | ClaimDropped
    | VmiGivenUp
    | NodeKept
    | HeldPlaced
    | HeldLost
    | HeldWaits
    | HeldFreed
    | ClassGuarded
    | ClassFreed
    | LicenceCopied
    | LicenceDropped
    | LicenceBlocked
    | LicenceMissing
    | Commanded
    | LauncherAdopted
    | SetAdopted
    | HeldAdopted
    | Adopted
    | SetBooked
    | StartHeld
)
