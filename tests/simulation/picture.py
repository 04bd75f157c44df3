"""The checkers' own picture of the log: what was observed and what was decided, folded apart from the program's fold.

It reads the stored bytes of both streams and knows no more than: sessions, the newest view of each object, the
bookings as decisions said them. Whoever listens is told of each decision before it is folded.
"""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from binder.memory_journal import MemoryJournal
from schemas import decisions as d
from schemas import events as e
from schemas.frames import Epoch, Frame, Genesis, decode_record
from schemas.kinds import GPU_CLAIM
from schemas.objects import AnyView, Gone, NodeView, PodView, Stamp, TenantView, rv_after
from schemas.streams import DECISIONS, EVENTS
from tests.simulation.held import HeldClaims
from tests.simulation.sessions import Session

STEP_NS_MAX = 30 * 1_000_000_000
"""What one message adds to logical time at most (T9)."""


class Booking(msgspec.Struct, frozen=True):
    """What a set holds: a node, for one pod; `former` is the temporary pod before it."""

    node: str
    pod: str
    pod_uid: str
    requests: dict[str, int]
    former: str = ""


Listener = Callable[[Stamp, d.Decision], None]


class Picture:
    """The log as it stands. `bookings`, `claims` by VMI uid; `placed`: nodes by pod uid; `now_ns`: logical time.

    `booked`: nodes by VMI uid of sets booked at admission, whose launchers are made for them.

    `changed`: the input at which a node last changed in what may end a refusal. `kept`: the node kept for one set.

    `body`: the input that is decided on.
    """

    def __init__(self, journal: MemoryJournal) -> None:
        self._streams = journal.streams
        self._decisions = 0
        self.sequence = 0
        self.now_ns = 0
        self._stamp_ns = 0
        self.epochs = 0
        self.frames = 0
        self.objects: dict[str, dict[str, AnyView]] = {}
        self.sessions: dict[str, Session] = {}
        self.claims: dict[str, tuple[d.TemplateClaim, ...]] = {}
        self.names: dict[str, d.VmiId] = {}
        self.admitted: dict[str, list[str]] = {}
        self.bookings: dict[str, Booking] = {}
        self.reasons: dict[str, str] = {}
        self.placed: dict[str, list[str]] = {}
        self.booked: dict[str, list[str]] = {}
        self.changed: dict[str, int] = {}
        self.held = HeldClaims()
        self.kept = ""
        self.adopting = False
        self.generation = 0
        self.rewinds = 0
        self.body = b""
        self.listeners: list[Listener] = []

    def follow(self, journal: MemoryJournal) -> None:
        """Go on with another log: what it has kept of this one is known. Its next generation begins anew."""
        self._streams = journal.streams
        self._decisions = len(self._streams[DECISIONS].messages)

    def _begin(self, genesis: Genesis) -> None:
        """Forget what another generation observed and decided (T4)."""
        self.generation = genesis.generation
        if genesis.adopts:
            self.adopting, self.sequence = True, genesis.events_last
            for table in (
                self.objects,
                self.sessions,
                self.claims,
                self.names,
                self.admitted,
                self.bookings,
                self.reasons,
            ):
                table.clear()
            self.held = HeldClaims()
            self.kept = ""

    def catch_up(self) -> None:
        """Fold what the log holds by now."""
        messages = self._streams[DECISIONS].messages
        while self._decisions < len(messages):
            record = decode_record(messages[self._decisions].body)
            self._decisions += 1
            if isinstance(record, Genesis):
                self._begin(record)
            if isinstance(record, Epoch):
                self.epochs += 1
            if isinstance(record, Frame):
                self.frames += 1
                self._fold(record)

    def _fold(self, frame: Frame) -> None:
        said = {entry.cause: entry.decisions for entry in frame.entries}
        for sequence in range(frame.covers_from, frame.covers_to + 1):
            message = self._streams[EVENTS].messages[sequence - 1]
            assert message.sequence == sequence
            if self._stamp_ns:
                self.now_ns += min(max(message.stamp_ns - self._stamp_ns, 0), STEP_NS_MAX)
            self._stamp_ns, self.sequence, self.body = message.stamp_ns, sequence, message.body
            self._hear(sequence, message.body)
            for place, decision in enumerate(said.get(sequence, ())):
                for listener in self.listeners:
                    listener(Stamp(frame.generation, sequence, place), decision)
                self._decided(decision)

    def _hear(self, sequence: int, body: bytes) -> None:
        event = e.decode_event(body)
        match event:
            case e.SessionOpened():
                known = self.sessions.get(event.kind)
                self.rewinds += event.rewound
                if known is None or event.process >= known.process:
                    rv = known.rv if known is not None and not event.rewound else ""
                    self.sessions[event.kind] = Session(sequence, event.rewound, set(), event.process, rv)
            case e.Changes():
                session = self.sessions.get(event.kind)
                if session is not None and session.number == event.session:
                    for view in event.changes:
                        session.reach(view.rv if session.listing is None else "")
                        self._see(event.kind, session, view)
            case e.Progress():
                for kind, number, rv in event.marks:
                    session = self.sessions.get(kind)
                    if session is not None and session.number == number:
                        session.reach(rv)
            case e.SessionSynced():
                session = self.sessions.get(event.kind)
                if session is not None and session.number == event.session and session.listing is not None:
                    self._sync(event, session)
            case e.VmiRequest() | e.PodRequest():
                self._read(event)
            case e.StartRequest():
                self._read(event.asked)
            case e.WriteRequest() if event.before is not None:
                self._believe(event.kind, event.before)
            case e.OrderRequest():
                for view in event.classes:
                    self._believe("gpuclasses", view)
            case _:
                pass

    def _read(self, request: e.VmiRequest | e.PodRequest) -> None:
        for kind, views in (("gpuclasses", request.classes), ("gpuclaims", request.claims)):
            for view in views:
                self._believe(kind, view)

    def _see(self, kind: str, session: Session, view: AnyView | Gone) -> None:
        table = self.objects.setdefault(kind, {})
        known = table.get(view.key)
        if isinstance(view, Gone):
            if known is not None and not rv_after(known.rv, view.rv):
                self._drop(kind, view.key)
            return
        if session.listing is not None:
            session.listing.add(view.key)
            if known is not None and not session.rewound and session.went_back(known.rv, view.rv):
                session.rewound, self.rewinds = True, self.rewinds + 1
        rewound = session.rewound and session.listing is not None
        if known is None or rewound or rv_after(view.rv, known.rv):
            table[view.key] = last_known(known, view) if isinstance(view, TenantView) else view
            self.held.see(view)
            if isinstance(view, NodeView) and _look(known) != _look(view):
                self.changed[view.key] = self.sequence

    def _believe(self, kind: str, view: AnyView) -> None:
        """Take in evidence, unless the watch knows as much: also that it is gone by now (T15)."""
        session = self.sessions.get(kind) or Session(0, rewound=False, listing=None)
        known = self.objects.get(kind, {}).get(view.key)
        if known is not None or rv_after(view.rv, session.rv):
            listing, session.listing = session.listing, None
            self._see(kind, session, view)
            session.listing = listing

    def _sync(self, event: e.SessionSynced, session: Session) -> None:
        table, listed = self.objects.setdefault(event.kind, {}), session.listing or set()
        for key in [key for key in table if key not in listed]:
            if session.rewound or not rv_after(table[key].rv, event.rv):
                self._drop(event.kind, key)
        session.listing, session.rv = None, event.rv

    def _drop(self, kind: str, key: str) -> None:
        del self.objects[kind][key]
        if kind == GPU_CLAIM.plural:
            self.held.drop(key)

    def _decided(self, decision: d.Decision) -> None:
        self.held.decided(decision)
        match decision:
            case d.NodeKept():
                self.kept = decision.node
            case d.PodAdmitted():
                self.admitted.setdefault(decision.vmi.uid, []).append(decision.request)
            case d.SetOpened():
                self.claims[decision.vmi.uid] = decision.claims
                self.names[decision.vmi.uid] = decision.vmi
            case d.SetBooked():
                self.claims[decision.vmi.uid] = decision.claims
                self.names[decision.vmi.uid] = decision.vmi
                self.booked.setdefault(decision.vmi.uid, []).append(decision.node)
                self.bookings.setdefault(decision.vmi.uid, Booking(decision.node, "", "", decision.requests))
            case d.SetPlaced():
                self._place(decision)
            case d.LauncherAdopted():
                self.admitted[decision.vmi.uid] = [*decision.requests]
            case d.SetAdopted():
                self._adopt(decision)
            case d.Adopted():
                self.adopting = False
            case d.SetWaits():
                self.reasons[decision.vmi.uid] = decision.reason
            case d.SetReleased():
                self.bookings.pop(decision.vmi.uid, None)
                self.reasons.pop(decision.vmi.uid, None)
            case d.SetClosed():
                for table in (self.bookings, self.claims, self.reasons, self.names):
                    table.pop(decision.vmi.uid, None)
            case _:
                pass

    def _place(self, decision: d.SetPlaced) -> None:
        uid = decision.vmi.uid
        before = self.bookings.get(uid)
        former = before.pod_uid if before is not None and before.pod_uid != decision.pod_uid else ""
        pod = self.pod(f"{decision.vmi.namespace}/{decision.pod}")
        requests = dict(pod.requests) if pod is not None else {}
        self.bookings[uid] = Booking(decision.node, decision.pod, decision.pod_uid, requests, former)
        self.placed.setdefault(decision.pod_uid, []).append(decision.node)
        self.reasons.pop(uid, None)

    def _adopt(self, decision: d.SetAdopted) -> None:
        uid, pod = decision.vmi.uid, self.pod(f"{decision.vmi.namespace}/{decision.pod}")
        self.claims[uid], self.names[uid] = decision.claims, decision.vmi
        requests = dict(pod.requests) if pod is not None else {}
        self.bookings[uid] = Booking(decision.node, decision.pod, decision.pod_uid, requests, decision.former)

    def pod(self, key: str) -> PodView | None:
        """Return the pod as last observed."""
        found = self.objects.get("pods", {}).get(key)
        return found if isinstance(found, PodView) else None

    def node(self, name: str) -> NodeView | None:
        """Return the node as last observed."""
        found = self.objects.get("nodes", {}).get(name)
        return found if isinstance(found, NodeView) else None

    def used(self, node: str, resource: str, *, without: str = "") -> int:
        """Count what bookings and held claims, but those of one VMI, and other pods take of a node."""
        booked = {uid: one for uid, one in self.bookings.items() if one.node == node}
        own = {pod for one in booked.values() for pod in (one.pod_uid, one.former) if pod}
        total = sum(one.requests.get(resource, 0) for uid, one in booked.items() if uid != without)
        total += self.held.used(node, resource, (*self.bookings, without) if without else self.bookings)
        for pod in self.objects.get("pods", {}).values():
            assert isinstance(pod, PodView)
            early = pod.owner_uid in booked and not booked[pod.owner_uid].pod_uid and pod.launcher
            if pod.node == node and not pod.ended and pod.uid not in own and not early:
                total += pod.requests.get(resource, 0)
        return total


def last_known(known: AnyView | None, view: TenantView) -> TenantView:
    """Return a tenant's release with what was last known of the quotas that can't be read in it (B1)."""
    before = known.hard if isinstance(known, TenantView) else {}
    if view.opaque:
        return replace(view, hard=before, unread=known.unread if isinstance(known, TenantView) else ())
    return replace(view, hard=view.hard | {key: before[key] for key in view.unread if key in before})


def _look(view: AnyView | None) -> tuple[object, ...]:
    return (view.uid, view.allocatable, view.taints, view.ready) if isinstance(view, NodeView) else ()
