"""The fold of an API server that came back from a backup: how a list shows that, and what is said again then (T12)."""

from msgspec.structs import replace

from binder import evolve_holdings
from binder.book import Book
from binder.state import Session
from schemas.events import Changes
from schemas.names import GATE
from schemas.objects import rv_after

BACK_FROM_BACKUP = "the API server came back from a backup and undid it"


def shows_one(book: Book, session: Session, event: Changes) -> bool:
    """Say whether a list shows an object as it was before what the watch had come to know of it.

    A list is as new as all that was known when it began, so that the server went back: etcd restored with bumped
    revisions counts on from above, and its objects keep the versions that they had.
    """
    for view in event.changes:
        known = book.state.objects[event.kind].get(view.key)
        if known is not None and rv_after(known.rv, view.rv) and not rv_after(known.rv, session.rv):
            return True
    return False


def listed(book: Book, kind: str) -> None:
    """Have said again what the complete list of a kind shows as it was before."""
    if kind == "pods":
        _pods(book)
    if kind == "gpuclaims":
        _claims(book)
        evolve_holdings.went_back(book)


def _claims(book: Book) -> None:
    """Have the claims said again that a server back from a backup shows no more, or as they were before (T12)."""
    for uid, gpu_set in list(book.state.sets.items()):
        shown = [book.state.claim(f"{gpu_set.vmi.namespace}/{claim.name}") for claim in gpu_set.claims]
        if any(claim is None or claim.stamp < gpu_set.stamp for claim in shown):
            book.store_set(uid, replace(gpu_set, missing=True))
            book.mark(uid)


def _pods(book: Book) -> None:
    """Gather the sets again whose launcher stands behind our gate since the server is back from a backup (T12).

    Its pin is gone, and who ran on the node at the time of the backup may be back there too.
    """
    for uid, gpu_set in list(book.state.sets.items()):
        pod = book.state.pod(f"{gpu_set.vmi.namespace}/{gpu_set.pod}") if gpu_set.node else None
        if pod is not None and pod.uid == gpu_set.pod_uid and GATE in pod.gates:
            book.store_set(uid, replace(gpu_set, pinned=False, refused=BACK_FROM_BACKUP))
            book.mark(uid)
