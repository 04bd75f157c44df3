"""Every type of state: what the binder knows, as tables; nothing here acts.

State = fold of EVENTS and DECISIONS. Tables travel in snapshots; `binder.book` holds what is
derived from them. No table's order may matter to a decision: readers sort by named keys (T10).
"""

from enum import IntFlag

import msgspec

from binder.licence_copies import LicenceCopy, LicenceTrouble
from binder.records import AskedStart, ClassGuard, Kept, Start
from binder.tables import Tables
from schemas.decisions import HeldClaim, Over, TemplateClaim, VmiId
from schemas.licences import COPIES, SOURCES
from schemas.objects import NodeSelectorTerm, Stamp
from schemas.reasons import GiveUp, Release, Unkept, Wait

STATE_SCHEMA = 1
"""Version of the state's tables: part of every state digest and snapshot (T7)."""

NEEDED_KINDS = (
    "nodes",
    "pods",
    "persistentvolumes",
    "persistentvolumeclaims",
    "namespaces",
    "gpuclasses",
    "gpuclaims",
    "kubevirts",
    "virtualmachines",
    "virtualmachineinstances",
    "configmaps",
    "gpubudgets",
    "helmreleases",
)
"""Kinds that must be synced before anything is placed, by plural; the keys of `State.objects`."""

KUBEVIRT_KINDS = ("kubevirts", "virtualmachines", "virtualmachineinstances")
"""Kinds that a cluster may be without: its CRDs come after us, or go away."""

FOREIGN_KINDS = ("helmreleases",)
"""Kinds of programs that a cluster need not have: not served, they are not waited for."""


DECLARING_KINDS = ("virtualmachinepools", "virtualmachineinstancereplicasets")
"""Kinds of KubeVirt that declare units for VMs to come: for these no placing waits, as it binds what is held."""

KNOWN_KINDS = (*NEEDED_KINDS, *DECLARING_KINDS, SOURCES, COPIES)  # the keys of `State.objects`


class Touch(IntFlag):
    """How a node changed since the last pass: more room, less room, or anything else that is tested.

    `OVERDUE`: it can't keep what is booked on it, for longer than that is borne.
    """

    GROWN = 1
    SHRUNK = 2
    STATIC = 4
    OVERDUE = 8


class Loosened(IntFlag):
    """How a budget changed since the last pass: units were freed under it, or it allows another number."""

    FREED = 1
    LIMIT = 2


class Session(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One kind's ingest session (T11).

    `progress`: EVENTS sequence of its newest sign of life; `rv` its version; `process`: who opened it, by the
    sequence at which that process announced itself.
    """

    number: int
    synced: bool = False
    rewound: bool = False
    served: bool = True
    rv: str = ""
    progress: int = 0
    process: int = 0


class Admitted(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Launcher creates answered for one VMI: the request uids stamped on its pods, newest last (T25)."""

    requests: tuple[str, ...]
    at_ns: int


class Skip(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A node that did not take a VM's launcher (D7): since which logical time, the how-manieth time in a row, why.

    `changed`: the node's allocatable, taints or readiness changed since.
    """

    at_ns: int
    fails: int
    why: str
    changed: bool = False


class GivenUp(msgspec.Struct, frozen=True, gc=False):
    """A launcher that goes, as the VM's node did not take it; `told`: the decision that said so."""

    pod: str
    pod_uid: str
    cause: GiveUp
    message: str
    told: Stamp


class Leaving(msgspec.Struct, frozen=True, gc=False):
    """A VMI that goes, as its node can't keep what is booked for it; `told`: the decision that said so.

    `at_ns`: when, in logical time: one that still stands so is told again only after a while.
    """

    node: str
    reason: Unkept
    message: str
    told: Stamp
    at_ns: int


class Holding(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A claim that a tenant ordered, and what was decided of it: it keeps its units over the stops of VMs.

    `claim`: its resource is the one it is counted by. `stamp`: the newest decision; `confirmed`: the newest
    whose writes are known to have landed. `node`: where its units are, empty while it is Pending or Lost;
    `lost`: its node could not keep it. `attached`: the VMI whose set it is in. `reason`, `message`, `told`:
    what the tenant was last told, and by which decision. `freed`: it is being deleted and holds nothing any more.
    `again`: a server back from a backup shows it as it was before. `refused`, `fails`, `retry_ns`: as of sets.
    """

    namespace: str
    claim: HeldClaim
    stamp: Stamp = Stamp()
    confirmed: Stamp = Stamp()
    node: str = ""
    lost: Unkept | None = None
    attached: VmiId | None = None
    reason: Wait | None = None
    message: str = ""
    over: Over | None = None
    told: Stamp = Stamp()
    freed: bool = False
    again: bool = False
    refused: str = ""
    fails: int = 0
    retry_ns: int = 0


class GpuSet(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """All claims one VMI names, and what was decided of them: `claims` live and die with it, `held` outlive it.

    `stamp`: the newest decision; `confirmed`: the newest one whose writes are known to have landed.
    `node`, `pod`, `pod_uid`, `terms`, `requests`: the booking, empty while there is none; `former`: the
    temporary pod that shares it;
    `pinned`: the pod was seen without our gate. `reason`, `message`: what the tenant was last told, and
    `told` by which decision. `start`: it was booked at admission, and its VMI is not seen yet: until its launcher is
    seen too, `pod` is empty. `released`: why the last booking ended. `missing`: a claim was deleted under
    the set. `refusal`: why its node refused the pinned pod; `stuck_ns`: since when kube-scheduler finds no
    place for it; `given_up`: what the world is still to be told of such a pod. `leaving`: its VMI was given up,
    and goes. `refused`: why a write of the newest decision was refused; `fails`, `retry_ns`: how often, and when
    to try again.
    """

    vmi: VmiId
    stamp: Stamp
    opened_ns: int
    claims: tuple[TemplateClaim, ...] = ()
    confirmed: Stamp = Stamp()
    held: tuple[HeldClaim, ...] = ()
    node: str = ""
    pod: str = ""
    pod_uid: str = ""
    former: str = ""
    terms: tuple[NodeSelectorTerm, ...] = ()
    requests: dict[str, int] = {}
    temporary: bool = False
    pinned: bool = False
    start: Start | None = None
    released: Release | None = None
    reason: Wait | None = None
    message: str = ""
    over: Over | None = None
    told: Stamp = Stamp()
    missing: bool = False
    refusal: str = ""
    stuck_ns: int = 0
    given_up: GivenUp | None = None
    leaving: Leaving | None = None
    refused: str = ""
    fails: int = 0
    retry_ns: int = 0


class State(Tables, msgspec.Struct, omit_defaults=True):
    """Everything the binder knows.

    `events_seq`: the last EVENTS message folded. `now_ns`: logical time, from 0 (T9); `stamp_ns`: the
    last server stamp. `epoch`: DECISIONS sequence of the newest epoch record, `epoch_events` the EVENTS
    tail it saw. `listing`: keys named so far by each kind's unfinished list.
    `first_wait`: logical time since when a VM (namespace/name) waits. `skips`: nodes that did not take a VM's
    launcher, by VM and node. `holdings`: held claims by key. `kept`: the node that is kept for the set which has
    waited longest. `troubles`: since when a node can't keep what is booked on it (`binder.troubles`). `class_guards`:
    what was decided of classes' finalizers. `licences`: copies by key. `paused`: who paused placing by a command.
    `asked`: starts under policy Refuse that are not decided yet, by VMI uid.
    `adopting`: what the cluster shows is booked first, and nothing else is decided on it until then (T4).
    `dirty_*`: what the next pass must look at: sets by VMI uid, claims, held claims and copies (classes: `/CLASS`) by
    key, nodes by name with `Touch` bits, budgets by "NAMESPACE KEY" with `Loosened` bits. `voided`: inputs that no
    fold may read, by EVENTS sequence in digits, and who said so.
    """

    schema: int = STATE_SCHEMA
    generation: int = 0
    events_seq: int = 0
    now_ns: int = 0
    stamp_ns: int = 0
    gap_ns: int = 0
    epoch: int = 0
    epoch_events: int = 0
    sessions: dict[str, Session] = {}
    listing: dict[str, dict[str, bool]] = {}
    sets: dict[str, GpuSet] = {}
    holdings: dict[str, Holding] = {}
    kept: Kept | None = None
    troubles: dict[str, dict[str, int]] = {}
    class_guards: dict[str, ClassGuard] = {}
    admitted: dict[str, Admitted] = {}
    asked: dict[str, AskedStart] = {}
    first_wait: dict[str, int] = {}
    skips: dict[str, dict[str, Skip]] = {}
    licences: dict[str, LicenceCopy] = {}
    licence_troubles: dict[str, LicenceTrouble] = {}
    paused: str = ""
    adopting: bool = False
    dirty_sets: dict[str, bool] = {}
    dirty_claims: dict[str, bool] = {}
    dirty_holdings: dict[str, bool] = {}
    dirty_nodes: dict[str, int] = {}
    dirty_budgets: dict[str, int] = {}
    dirty_licences: dict[str, bool] = {}
    voided: dict[str, str] = {}

    def holding(self, namespace: str, name: str) -> Holding | None:
        """Return what is held of the claim of that name."""
        return self.holdings.get(f"{namespace}/{name}")


def awaits_launcher(gpu_set: GpuSet) -> bool:
    """Say whether a set was booked at admission, and no launcher of it was seen on its node yet."""
    return bool(gpu_set.node) and not gpu_set.pod_uid


def is_current(state: State, kind: str) -> bool:
    """Say whether a kind is synced and has shown life since the newest epoch began (T11).

    One of another program's kinds may also be known not to be served since then.
    """
    session = state.sessions.get(kind)
    if session is None or session.progress <= state.epoch_events:
        return False
    return session.synced or (kind in FOREIGN_KINDS and not session.served)


def is_absent(state: State, kind: str) -> bool:
    """Say whether a kind is KubeVirt's and was found not to be served since the newest epoch began (T11)."""
    session = state.sessions.get(kind)
    if kind not in KUBEVIRT_KINDS or session is None:
        return False
    return not session.served and session.progress > state.epoch_events


def empty_state() -> State:
    """Return the state before the first event."""
    return State(objects={kind: {} for kind in KNOWN_KINDS})
