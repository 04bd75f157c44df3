"""Classes of one resource name: the younger say so in a condition, judged from the folded state (K1).

A derived fact like the counts, and no decision: judged anew when the older one goes, or a name is edited.
"""

import msgspec

from binder.book import Book
from binder.kube import Kube, PatchKind
from projector.reads import read
from schemas.classes import CONFLICT_CONDITION, ClassStatus
from schemas.conditions import Condition, ShownStamp, Truth, changed_at, condition_of
from schemas.kinds import GPU_CLASS
from schemas.objects import ClassView
from schemas.writes import SeenClass

OLDER, OWN = "OlderClass", "NameIsOwn"


def elders(book: Book) -> dict[str, str]:
    """Return each class with the one that keeps its resource name, '' where that is itself.

    The oldest by creation keeps it, also where the name was edited later; then the first by name.
    """
    classes = [view for view in book.state.objects["gpuclasses"].values() if isinstance(view, ClassView)]
    oldest: dict[str, str] = {}
    for view in sorted(classes, key=lambda view: (view.created, view.name)):
        oldest.setdefault(view.resource, view.name)
    return {view.name: oldest[view.resource] if oldest[view.resource] != view.name else "" for view in classes}


class Conflicts:
    """Keeps the condition of every class true; what was written is not asked again until something changes."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._judged: dict[str, tuple[str, str, bool]] = {}

    def due(self, book: Book) -> dict[str, str]:
        """Return the classes whose condition may not be true, with the class that keeps their name."""
        found = elders(book)
        self._judged = {name: judged for name, judged in self._judged.items() if name in found}
        return {name: elder for name, elder in sorted(found.items()) if self._differs(book, name, elder)}

    def _differs(self, book: Book, name: str, elder: str) -> bool:
        view = book.state.gpu_class(name)
        shows = view is not None and view.conflict
        uid = view.uid if view is not None else ""
        return bool(elder or shows) and self._judged.get(name) != (uid, elder, shows)

    async def write(self, book: Book, name: str, elder: str, stamp: ShownStamp, now: str) -> None:
        """Have a class say whose its resource name is. Raises ApiError; a class that is gone says nothing."""
        view = book.state.gpu_class(name)
        found = await read(self._kube, GPU_CLASS, "", name, SeenClass)
        if view is None or found is None or found.metadata.uid != view.uid:
            return
        before = found.status.conditions if found.status is not None else ()
        known = condition_of(before, CONFLICT_CONDITION)
        wanted = _condition(view, elder, known, now)
        if known is None or (known.status, known.message) != (wanted.status, wanted.message):
            others = tuple(one for one in before if one is not known)
            status = ClassStatus(stamp=stamp, conditions=(*others, wanted))
            # The list is written whole: on the version that was read, so that nobody else's condition is lost.
            metadata = {"uid": view.uid, "resourceVersion": found.metadata.resource_version}
            body = msgspec.json.encode({"metadata": metadata, "status": status})
            await self._kube.patch(GPU_CLASS, "", name, body, kind=PatchKind.MERGE, subresource="status")
        self._judged[name] = (view.uid, elder, view.conflict)

    def forget_all(self) -> None:
        """Say that what was written may stand no more: each class is looked at again."""
        self._judged.clear()

    def forget(self, name: str) -> None:
        """Say that a write was not taken: it is looked at again."""
        self._judged.pop(name, None)


def _condition(view: ClassView, elder: str, known: Condition | None, now: str) -> Condition:
    status = Truth.TRUE if elder else Truth.FALSE
    message = (
        f'resource name {view.resource} belongs to the older class "{elder}": give this class one of its own'
        if elder
        else f"no older class has the resource name {view.resource}"
    )
    return Condition(CONFLICT_CONDITION, status, OLDER if elder else OWN, message, changed_at(known, status, now))
