"""A small cluster in events: builders of views, and a book that lives what they send.

Every input is checked: no promise broken, no law of history broken, and the logged decisions folded
anew give the state that was lived.
"""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from binder.book import Book
from binder.evolve import evolve_epoch, is_dirty
from binder.evolve_adoption import begin
from binder.rules.gpu_sets import Objection, asked_for, devices_of, mark_of, read_entries, resolved
from binder.snapshot import decode_state, encode_state
from binder.state import DECLARING_KINDS, NEEDED_KINDS, empty_state
from schemas import decisions as d
from schemas import events as e
from schemas.decisions import VmiId
from schemas.frames import Epoch, Genesis
from schemas.names import GATE, POLICY_WAIT
from schemas.objects import (
    AnyView,
    BudgetView,
    ClaimView,
    ClassView,
    Gone,
    NamespaceView,
    NodeView,
    PodView,
    PoolView,
    PvcView,
    PvView,
    ReplicaSetView,
    SettingsView,
    TenantView,
    VmiView,
    VmView,
)
from tests.binder.laws import live
from tests.binder.laws_nodes import Watch

SECOND = 1_000_000_000
START_NS = 1_000_000 * SECOND
KUBEVIRT = "kubevirt"
CONTROLLER = f"system:serviceaccount:{KUBEVIRT}:kubevirt-controller"
KINDS: dict[type, str] = {
    NodeView: "nodes",
    PodView: "pods",
    PvView: "persistentvolumes",
    PvcView: "persistentvolumeclaims",
    NamespaceView: "namespaces",
    ClassView: "gpuclasses",
    ClaimView: "gpuclaims",
    VmView: "virtualmachines",
    PoolView: "virtualmachinepools",
    ReplicaSetView: "virtualmachineinstancereplicasets",
    VmiView: "virtualmachineinstances",
    SettingsView: "configmaps",
    BudgetView: "gpubudgets",
    TenantView: "helmreleases",
}

Decisions = tuple[d.Decision, ...]
ViewT = TypeVar("ViewT", bound=AnyView)


class Scene:
    """The cluster as the API server holds it (`objects`), and the binder that hears of it (`book`).

    `log` keeps what was sent and decided: (sequence, stamp, body, decisions); `epochs` which leader began before
    which input. `lawful` off: fast, unchecked.
    """

    def __init__(self, *, synced: bool = True, lawful: bool = True) -> None:
        self.book = Book(empty_state())
        self.lawful = lawful
        self.sequence = 0
        self.stamp_ns = START_NS
        self.rv = 0
        self.objects: dict[str, dict[str, AnyView]] = {kind: {} for kind in (*DECLARING_KINDS, *NEEDED_KINDS)}
        self.sessions: dict[str, int] = {}
        self.log: list[tuple[int, int, bytes, Decisions]] = []
        self.watched = Watch()
        self.epochs: list[tuple[int, Epoch]] = []
        if synced:
            for kind in self.objects:
                self.relist(kind)

    def send(self, event: e.AnyEvent) -> Decisions:
        """Let the binder hear one input now."""
        return self.send_bytes(e.encode_event(event))

    def send_bytes(self, body: bytes) -> Decisions:
        """Let the binder hear one message as it stands."""
        self.sequence += 1
        decided = live(self.book, self.sequence, self.stamp_ns, body, lawful=self.lawful)
        if self.lawful:
            broken = self.watched.hear(self.book.state, decided)
            assert not broken, f"input {self.sequence} {body[:200]!r} -> {decided}: " + "; ".join(broken)
        self.log.append((self.sequence, self.stamp_ns, body, decided))
        return decided

    def newer(self, view: ViewT) -> ViewT:
        """Return the view under a new resourceVersion, as the API server now holds it."""
        self.rv += 1
        fresh = replace(view, rv=str(self.rv), uid=view.uid or f"uid-{view.name}")
        self.objects[KINDS[type(view)]][fresh.key] = fresh
        return fresh

    def show(self, *views: AnyView) -> Decisions:
        """Change objects of one kind, and let the watch say so in one message."""
        kind = KINDS[type(views[0])]
        return self.watch(kind, [self.newer(view) for view in views])

    def watch(self, kind: str, changes: Iterable[AnyView | Gone]) -> Decisions:
        """Let a kind's watch say something."""
        return self.send(e.Changes(kind, self.sessions.get(kind, 0), tuple(changes)))

    def remove(self, kind: str, key: str) -> Decisions:
        """Delete an object, and let the watch say so."""
        return self.watch(kind, [self.forget(kind, key)])

    def forget(self, kind: str, key: str) -> Gone:
        """Delete an object while nobody watches; return what the watch would have said."""
        view = self.objects[kind].pop(key)
        self.rv += 1
        return Gone(view.name, view.uid, str(self.rv), view.namespace)

    def open(self, kind: str, *, rewound: bool = False) -> Decisions:
        """Begin a session."""
        decided = self.send(e.SessionOpened(kind, rewound))
        self.sessions[kind] = self.sequence
        return decided

    def relist(self, kind: str, *, rewound: bool = False, chunk: int = e.CHANGES_PER_CHUNK_MAX) -> Decisions:
        """Begin a session, list the kind in chunks and say that the list is complete."""
        decided = self.open(kind, rewound=rewound)
        views = [view for _, view in sorted(self.objects[kind].items())]
        for start in range(0, len(views), chunk):
            decided += self.watch(kind, views[start : start + chunk])
        return decided + self.send(e.SessionSynced(kind, self.sessions[kind], str(self.rv)))

    def tick(self, seconds: float = 0) -> Decisions:
        """Let time pass."""
        self.stamp_ns += int(seconds * SECOND)
        return self.send(e.Tick())

    def progress(self) -> Decisions:
        """Let every watch say how far it is."""
        return self.send(e.Progress(tuple((kind, number, str(self.rv)) for kind, number in self.sessions.items())))

    def epoch(self, holder: str = "other") -> None:
        """Let a new leader begin: the DECISIONS record is not an input."""
        record = Epoch("log", self.book.state.generation or 1, holder, "n", "test", 1, self.sequence, (1,))
        self.epochs.append((self.sequence + 1, record))
        evolve_epoch(self.book, self.book.state.epoch + 1, record)

    def adopt(self) -> None:
        """Let a new generation take over what the cluster shows: every kind is listed anew by `relist`."""
        genesis = Genesis("log", (self.book.state.generation or 1) + 1, "c", "test", 1, True, self.sequence)
        begin(self.book, genesis)
        self.watched = Watch()
        self.sessions.clear()
        self.epoch("adopter")

    def restart(self) -> None:
        """Let the binder go on from its snapshot's bytes."""
        self.book = Book(decode_state(encode_state(self.book.state)))

    def admit(self, vmi: VmiView, request: str, *, temporary: bool = False, migration: bool = False) -> Decisions:
        """Let the pod webhook ask for a launcher create of KubeVirt's."""
        who = VmiId(vmi.namespace, vmi.name, vmi.uid)
        classes = tuple(view for view in self.objects["gpuclasses"].values() if isinstance(view, ClassView))
        claims = tuple(
            view
            for view in self.objects["gpuclaims"].values()
            if isinstance(view, ClaimView) and view.namespace == vmi.namespace and not view.template
        )
        return self.send(
            e.PodRequest(
                request,
                vmi.namespace,
                who,
                CONTROLLER,
                vmi.gpus,
                vmi.policy or POLICY_WAIT,
                KUBEVIRT,
                classes,
                claims=claims,
                temporary=temporary,
                migration=migration,
            )
        )

    def start_request(self, vmi: VmiView, request: str) -> e.StartRequest:
        """Return what the validating webhook asks about a VMI that is about to be stored."""
        classes = tuple(view for view in self.objects["gpuclasses"].values() if isinstance(view, ClassView))
        claims = tuple(
            view
            for view in self.objects["gpuclaims"].values()
            if isinstance(view, ClaimView) and view.namespace == vmi.namespace and not view.template
        )
        asked = e.VmiRequest(request, vmi.namespace, vmi.name, "tenant", vmi.gpus, classes=classes, claims=claims)
        entries = read_entries(vmi.gpus)
        resolved_entries = () if isinstance(entries, Objection) else resolved(asked_for(asked, entries))
        bound = tuple(mark_of(one.name, one.device_name) for one in devices_of(resolved_entries))
        return e.StartRequest(request, vmi.uid or f"uid-{vmi.name}", replace(asked, bound_gpus=bound))

    def settled(self) -> Decisions:
        """Go on until nothing is dirty, as the leader does; return what was decided."""
        decided: Decisions = ()
        for _ in range(10_000):
            state = self.book.state
            if not is_dirty(state):
                return decided
            decided += self.send(e.Continue())
        raise AssertionError("still dirty after 10,000 inputs")


def launcher(vmi: VmiView, name: str, request: str, requests: dict[str, int]) -> PodView:
    """Return a launcher pod of a VMI as KubeVirt and our webhook make it: gated, stamped, not yet scheduled."""
    return PodView(
        name,
        f"uid-{name}",
        "",
        vmi.namespace,
        phase="Pending",
        gates=(GATE,),
        requests=requests,
        launcher=True,
        owner_uid=vmi.uid,
        owner_name=vmi.name,
        admission=request,
    )
