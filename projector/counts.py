"""Class status: how much of each class there is and whose its name is, from the folded state, at most once a second.

Counts are no decisions. They carry a stamp all the same, so that an old count never overwrites a newer one.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Self

import msgspec
import structlog
from typing_extensions import override

from binder.book import Book
from binder.kube import ApiError, Kube, PatchKind
from binder.rules.serving import every_class_tolerates
from projector.clock import wall
from projector.conflicts import Conflicts
from projector.paced import Paced
from projector.reads import read
from schemas.classes import ClassStatus
from schemas.conditions import ShownStamp
from schemas.kinds import GPU_CLASS
from schemas.objects import ClassView, NodeView
from schemas.writes import SeenClass

log = structlog.get_logger()


class Amount(msgspec.Struct, frozen=True):
    """Units of one class: offered by nodes, booked, left on nodes that serve it, most left on one of them."""

    allocatable: int | None
    held: int | None
    free: int | None
    most_free: int | None

    @classmethod
    def shown(cls, status: ClassStatus) -> Self:
        """Return what a class shows; None where it was never counted."""
        return cls(status.allocatable, status.held, status.free, status.most_free)


def amounts(book: Book) -> dict[str, Amount]:
    """Return the amount of every class, by name.

    Held units are counted by the resource that their claims were decided under (T24). Free are those on
    nodes that are ready, not cordoned, and whose taints the class tolerates.
    """
    held: dict[str, int] = {}
    booked = [one.claims for one in book.state.sets.values() if one.node]
    for claim in (claim for claims in booked for claim in claims):
        held[claim.resource] = held.get(claim.resource, 0) + claim.count
    # A held claim counts once, whether a VMI holds it or not.
    for holding in book.state.holdings.values():
        if holding.node:
            held[holding.claim.resource] = held.get(holding.claim.resource, 0) + holding.claim.count
    classes = book.state.objects["gpuclasses"]
    return {
        name: _amount(book, view, held.get(view.resource, 0))
        for name, view in classes.items()
        if isinstance(view, ClassView)
    }


def _amount(book: Book, view: ClassView, held: int) -> Amount:
    allocatable = free = most = 0
    for node in book.state.objects["nodes"].values():
        assert isinstance(node, NodeView)
        offered = node.allocatable.get(view.resource, 0)
        allocatable += offered
        if offered and _serves(node, view):
            left = max(book.free(node, view.resource), 0)
            free += left
            most = max(most, left)
    return Amount(allocatable, held, free, most)


def _serves(node: NodeView, view: ClassView) -> bool:
    ready = node.ready and not node.unschedulable and not node.deleting
    return ready and every_class_tolerates((view.tolerations,), node)


class ClassCounts(Paced):
    """Keeps the counts in class status true. `changed()` after each step; `run(book)` beside them."""

    def __init__(self, kube: Kube, clock: Callable[[], datetime] = wall) -> None:
        super().__init__()
        self._kube = kube
        self._clock = clock
        self._conflicts = Conflicts(kube)
        self._shown: dict[str, tuple[str, Amount]] = {}
        self._doubted = False

    @property
    def shown(self) -> Mapping[str, Amount]:
        """What each class is known to show, by name."""
        return {name: amount for name, (_, amount) in self._shown.items()}

    @override
    def look_again(self) -> None:
        """Read every class again; what is shown meanwhile is what was."""
        self._doubted = True
        self._conflicts.forget_all()
        super().look_again()

    @override
    async def write(self, book: Book) -> None:
        """Write each class whose status does not show what is counted now; nothing before that is known (T4)."""
        if book.state.adopting:
            return
        counted = amounts(book)
        doubted, self._doubted = self._doubted, False
        stamp = ShownStamp(book.state.generation, book.state.events_seq, 0)
        self._shown = {name: shown for name, shown in self._shown.items() if name in counted}
        for name, amount in sorted(counted.items()):
            view = book.state.gpu_class(name)
            # Another class under the name of one that is gone shows nothing yet.
            if view is not None and (doubted or self._shown.get(name) != (view.uid, amount)):
                await self._write_one(view, amount, stamp, doubted=doubted)
        for name, elder in self._conflicts.due(book).items():
            try:
                await self._conflicts.write(book, name, elder, stamp, f"{self._clock():%Y-%m-%dT%H:%M:%SZ}")
            except ApiError as error:
                self._conflicts.forget(name)
                self._not_written(name, error)

    async def _write_one(self, view: ClassView, amount: Amount, stamp: ShownStamp, *, doubted: bool) -> None:
        name = view.name
        known = self._shown.get(name)
        try:
            if (doubted or known is None or known[0] != view.uid) and await self._shows(name, amount):
                self._shown[name] = (view.uid, amount)
                return
            status = ClassStatus(
                allocatable=amount.allocatable,
                held=amount.held,
                free=amount.free,
                most_free=amount.most_free,
                stamp=stamp,
            )
            # A merge: conditions that stand beside the counts stay.
            body = msgspec.json.encode({"status": status})
            await self._kube.patch(GPU_CLASS, "", name, body, kind=PatchKind.MERGE, subresource="status")
            self._shown[name] = (view.uid, amount)
        except ApiError as error:
            # Forgotten, so that it is read again; counted again with the next change, or now if it was not reached.
            self._shown.pop(name, None)
            self._not_written(name, error)

    def _not_written(self, name: str, error: ApiError) -> None:
        log.info("counts.not-written", gpu_class=name, code=error.code, reason=error.reason)
        if error.code != 404:
            self._news.set()

    async def _shows(self, name: str, amount: Amount) -> bool:
        found = await read(self._kube, GPU_CLASS, "", name, SeenClass)
        status = found.status if found is not None else None
        return status is not None and amount == Amount.shown(status)
