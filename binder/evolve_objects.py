"""The fold of watches: sessions, relists and changes, and what they make worth another look.

Older sessions are ignored; a relist's end removes only what is absent and not newer than the list
(T11); a rewound list is believed although its versions went back (T12), and so is one that shows it by its objects.
"""

from msgspec.structs import replace

from binder import evolve_backups, evolve_holdings, evolve_licences, evolve_starts
from binder.book import Book
from binder.budgets import resolved
from binder.evolve_sets import forget_wait
from binder.evolve_skips import node_changed, watch_launcher
from binder.following import follow_pods, pod_seen
from binder.state import KUBEVIRT_KINDS, Session, Touch
from schemas.events import Changes, SessionOpened, SessionSynced
from schemas.objects import (
    AnyView,
    ClaimView,
    ClassView,
    Gone,
    NamespaceView,
    NodeView,
    PodView,
    PvcView,
    PvView,
    SecretView,
    TenantView,
    VmiView,
    VmView,
    rv_after,
)


def open_session(book: Book, sequence: int, event: SessionOpened) -> None:
    """Begin to list a kind; what is known of it stays until the list is complete."""
    state = book.state
    if event.kind not in state.objects:
        return
    before = state.sessions.get(event.kind)
    if before is not None and before.number < sequence and event.process < before.process:
        # A dead process's message that landed late: nobody would ever list for it, and its successor goes on.
        return
    rv = before.rv if before is not None and not event.rewound else ""
    progress = before.progress if before is not None else 0
    book.store_session(
        event.kind, Session(sequence, rewound=event.rewound, rv=rv, progress=progress, process=event.process)
    )
    state.listing[event.kind] = {}
    if before is not None and not before.served and event.kind in KUBEVIRT_KINDS:
        # Passes looked at nodes meanwhile, and at no set.
        _mark_waiting(book)


def change(book: Book, sequence: int, event: Changes) -> None:
    """Fold a chunk of changes of the current session."""
    session = book.state.sessions.get(event.kind)
    if session is None or session.number != event.session:
        return
    listing = book.state.listing.get(event.kind)
    if listing is not None and not session.rewound and evolve_backups.shows_one(book, session, event):
        session = replace(session, rewound=True)
    newest = session.rv
    for view in event.changes if listing is None else ():
        newest = view.rv if rv_after(view.rv, newest) else newest
    book.store_session(event.kind, replace(session, progress=sequence, rv=newest))
    for view in event.changes:
        if isinstance(view, Gone):
            _gone(book, event.kind, view)
            continue
        if listing is not None:
            listing[view.key] = True
        observe(book, event.kind, view, believe=session.rewound and listing is not None)


def sync(book: Book, sequence: int, event: SessionSynced) -> None:
    """End a list: what it did not name, and is not newer than it, is gone."""
    state = book.state
    session = state.sessions.get(event.kind)
    listing = state.listing.get(event.kind)
    if session is None or session.number != event.session or listing is None:
        return
    absent = [key for key in state.objects[event.kind] if key not in listing]
    for key in sorted(absent):
        view = state.objects[event.kind][key]
        if session.rewound or not rv_after(view.rv, event.rv):
            remove(book, event.kind, key)
    if session.rewound:
        evolve_backups.listed(book, event.kind)
    del state.listing[event.kind]
    book.store_session(event.kind, replace(session, synced=True, rv=event.rv, progress=sequence))


def observe(book: Book, kind: str, view: AnyView, *, believe: bool = False) -> None:
    """Take in one object, unless what is known of it is as new; `believe` takes it whatever its version."""
    known = book.state.objects[kind].get(view.key)
    if known is not None and not (believe or rv_after(view.rv, known.rv) or evolve_licences.read_anew(known, view)):
        return
    if isinstance(view, TenantView):
        view = resolved(book.state.tenant(view.key), view)
    view = _as_first_seen(known, view)
    before = book.store(kind, view.key, view)
    if before is not None and replace(before, rv=view.rv) == view:
        return
    if before is not None and before.uid != view.uid:
        _forget(book, before)
    _mark(book, kind, before, view)


def _as_first_seen(known: AnyView | None, view: AnyView) -> AnyView:
    """Let a claim stay held or a template's, and a pod its VMI's: whoever edits that moves no units.

    A held claim that became a template's would never come off its finalizer; a pod without its owner counts twice.
    """
    if isinstance(view, ClaimView) and isinstance(known, ClaimView) and known.uid == view.uid:
        return replace(view, template=known.template)
    if isinstance(view, PodView) and isinstance(known, PodView) and known.uid == view.uid:
        return replace(view, owner_uid=known.owner_uid, owner_name=known.owner_name)
    return view


def believe_evidence(book: Book, kind: str, view: AnyView) -> None:
    """Take in what was read for a request, unless the watch knows as much: also that it is gone by now (T15)."""
    session = book.state.sessions.get(kind)
    if view.key in book.state.objects[kind] or session is None or rv_after(view.rv, session.rv):
        observe(book, kind, view)


def remove(book: Book, kind: str, key: str) -> None:
    """Take an object out: it is gone."""
    before = book.store(kind, key, None)
    if before is not None:
        _forget(book, before)
        _mark(book, kind, before, None)


def _gone(book: Book, kind: str, view: Gone) -> None:
    known = book.state.objects[kind].get(view.key)
    if known is not None and not rv_after(known.rv, view.rv):
        remove(book, kind, view.key)


def _forget(book: Book, before: AnyView) -> None:
    """Drop what was kept for an object that is gone; its admissions in a while: a backup may bring it back (T12)."""
    if isinstance(before, VmiView):
        known = book.state.admitted.get(before.uid)
        if known is not None:
            book.store_admitted(before.uid, replace(known, at_ns=book.state.now_ns))
        book.mark(before.uid)
    if isinstance(before, VmiView | VmView):
        forget_wait(book, before.key)


def _mark(book: Book, kind: str, before: AnyView | None, after: AnyView | None) -> None:
    """Mark what must be looked at again because of this change."""
    view = after if after is not None else before
    match view:
        case NodeView():
            node_changed(book, before, after)
            _mark_node(book, before, after)
        case PodView():
            _mark_pod(book, before, after)
        case VmiView():
            _look_after(book, view.uid)
            evolve_starts.seen(book, after)
            follow_pods(book, view.uid)
            if after is None or not _is_settled(book, after.uid):
                book.mark(view.uid)
            if after is not None and (before is None or before.uid != after.uid):
                book.state.dirty_claims.update(dict.fromkeys(book.index.owner_claims.of(after.uid), True))
        case VmView():
            evolve_holdings.vm_changed(book, before, after)
        case PvcView():
            _mark_volume(book, view.key)
        case ClaimView():
            _mark_claim(book, before, after)
        case ClassView():
            book.class_use.said(view.name, None)
            _mark_class_users(book, view.name)
            if _counts_otherwise(book, before, after):
                _mark_unplaced(book)
            evolve_licences.class_changed(book, before, after)
        case NamespaceView():
            evolve_licences.namespace_changed(book, before, after)
        case SecretView():
            evolve_licences.secret_changed(book, kind, before, after)
        case PvView():
            for key in book.index.volume_pvcs.of(view.key):
                _mark_volume(book, key)
        case _ if kind == "configmaps":
            _mark_waiting(book)
        case _:
            pass


def _mark_node(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    """A node that offers nothing counted, now and before, wakes nobody."""
    offering = [side for side in (before, after) if isinstance(side, NodeView) and book.usage.offers(side)]
    if offering:
        name = offering[0].name
        how = _difference(book, before, after)
        book.state.dirty_nodes[name] = book.state.dirty_nodes.get(name, 0) | how


def _difference(book: Book, before: AnyView | None, after: AnyView | None) -> Touch:
    """Say how two views of a node differ: in amounts that no class counts by, or in anything else."""
    everything = Touch.STATIC | Touch.GROWN | Touch.SHRUNK
    if not isinstance(before, NodeView) or not isinstance(after, NodeView):
        return everything
    same = replace(before, allocatable=after.allocatable, rv=after.rv) == after
    counted = [name for name in book.usage.ranked if before.allocatable.get(name) != after.allocatable.get(name)]
    return Touch.GROWN | Touch.SHRUNK if same and not counted else everything


def _mark_pod(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    # Where no node is in trouble, none has to be looked after.
    for pod in (before, after) if book.state.troubles else ():
        if isinstance(pod, PodView) and pod.owner_uid:
            _look_after(book, pod.owner_uid)
    pod_seen(book, before, after)
    if isinstance(after, PodView) and after.owner_uid:
        watch_launcher(book, after)
    if isinstance(before, PodView) and isinstance(after, PodView) and _runs_on(book, before, after):
        return
    for pod in (before, after):
        if isinstance(pod, PodView):
            if pod.owner_uid:
                book.mark(pod.owner_uid)
            # A stamp that came or went with this pod makes another pod honest or not (T25).
            for key in book.index.pods_by_stamp.of(f"{pod.namespace}/{pod.admission}"):
                other = book.state.pod(key)
                if other is not None and other.owner_uid and other.owner_uid != pod.owner_uid:
                    book.mark(other.owner_uid)


def _look_after(book: Book, uid: str) -> None:
    """Look again at nodes that can't keep what is booked for a VMI: it may be let go now where it could not before."""
    gpu_set = book.state.sets.get(uid) if book.state.troubles else None
    if gpu_set is not None:
        for name in dict.fromkeys((gpu_set.node, *(one.node for one in book.held.of(uid)))):
            book.troubles.look(name)


def _is_settled(book: Book, uid: str) -> bool:
    """Say whether a set's launcher is pinned: until that pod ends or goes, there is nothing to decide about it."""
    gpu_set = book.state.sets.get(uid)
    return gpu_set is not None and gpu_set.pinned and not gpu_set.temporary


def _runs_on(book: Book, before: PodView, after: PodView) -> bool:
    same = (before.uid, before.owner_uid, before.admission) == (after.uid, after.owner_uid, after.admission)
    if not same or after.ended or not _is_settled(book, after.owner_uid):
        return False
    return book.state.sets[after.owner_uid].pod_uid == after.uid


def _mark_volume(book: Book, pvc_key: str) -> None:
    pods = [book.state.pod(key) for key in book.index.pvc_pods.of(pvc_key)]
    for uid in (*book.index.pvc_vmis.of(pvc_key), *(pod.owner_uid for pod in pods if pod is not None)):
        book.mark(uid)


def _mark_claim(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    evolve_holdings.observed(book, before, after)
    if isinstance(after, ClaimView) and after.template:
        book.state.dirty_claims[after.key] = True
    if isinstance(before, ClaimView) and after is None:
        uid = book.claim_sets.get(before.key)
        if uid is not None:
            book.store_set(uid, replace(book.state.sets[uid], missing=True))
            book.mark(uid)


def _mark_class_users(book: Book, name: str) -> None:
    """Look again at every set that waits and names the class: tolerations or existence changed."""
    book.troubles.classes_changed()
    for uid, gpu_set in book.state.sets.items():
        if not gpu_set.node and (not gpu_set.claims or any(claim.class_name == name for claim in gpu_set.claims)):
            book.mark(uid)
    for key in book.index.class_claims.of(name):
        evolve_holdings.class_changed(book, key)


def _counts_otherwise(book: Book, before: AnyView | None, after: AnyView | None) -> bool:
    """Say whether a resource is counted now that was not, or is not any more: any pod may request it."""
    was, now = (side.resource if isinstance(side, ClassView) else "" for side in (before, after))
    counted = book.class_resources
    return was != now and (bool(was and was not in counted) or counted.get(now) == 1)


def _mark_waiting(book: Book) -> None:
    book.troubles.look_everywhere()
    evolve_holdings.look_again(book)
    _mark_unplaced(book)


def _mark_unplaced(book: Book) -> None:
    for uid, gpu_set in book.state.sets.items():
        if not gpu_set.node:
            book.mark(uid)
