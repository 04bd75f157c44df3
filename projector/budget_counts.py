"""Budget status: what is held under each budget, and whose budget leaves least, from the folded state.

Counts are no decisions; they carry a stamp, so that an old one never overwrites a newer one. An object is
written at most once a second, and at most twice a minute where nothing but the use of tenants above changed:
each unit taken anywhere would else be written to every budget of the cluster.
"""

import asyncio
from collections.abc import Iterable
from heapq import nsmallest

import msgspec
import structlog
from msgspec.structs import replace
from typing_extensions import override

from binder.book import Book
from binder.budgets import binding, hard_of
from binder.kube import ApiError, Kube, PatchKind
from binder.usage import Amounts
from projector.paced import Paced
from projector.reads import read
from schemas import pinning
from schemas.budgets import BINDINGS_MAX, TEXT_MAX, Binding, BudgetStatus
from schemas.conditions import ShownStamp
from schemas.kinds import GPU_BUDGET
from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL
from schemas.objects import BudgetView
from schemas.quantity import AMOUNT_MAX
from schemas.writes import SeenBudget

SECONDS_ABOVE = 30.0
"""How long a budget is left alone after a write where only the use of tenants above changed."""

AT_ONCE = 16
_encode = msgspec.json.Encoder().encode

log = structlog.get_logger()


class Counted(msgspec.Struct, frozen=True):
    """What a budget is to show: units in use by key, what it allows, and for each key the budget that leaves least.

    `declared`: units by those keys that something can declare.
    """

    used: Amounts
    declared: Amounts
    hard: Amounts
    binding: tuple[Binding, ...]

    @property
    def own(self) -> tuple[object, ...]:
        """Return what is shown within a second: its own numbers, and whose budgets bind."""
        return (
            self.used,
            self.declared,
            self.hard,
            [(one.key, one.namespace, one.budget, one.hard) for one in self.binding],
        )

    def status(self, namespace: str, stamp: ShownStamp | None = None) -> BudgetStatus:
        """Return it as the status of a budget in that namespace."""
        usage = _listed([_told(key, self.used[key], units) for key, units in _in_order(self.hard.items())])
        asks = _listed(
            [_told(key, self.declared[key], hard) for key, hard in _in_order(self.hard.items()) if key in self.declared]
        )
        above = [one for one in self.binding if one.namespace != namespace]
        bound = _listed([f"{one.namespace}: {_told(one.key, one.used, one.hard)}" for one in above])
        return BudgetStatus(self.used, self.declared, self.binding, usage, asks, bound or "itself", stamp)


def _in_order(units: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(units, key=lambda one: (one[0] == BUDGET_TOTAL, one))


def _listed(told: list[str]) -> str:
    """Return a list to be read, as much of it as a status takes."""
    whole = ", ".join(told)
    return whole if len(whole) <= TEXT_MAX else whole[: TEXT_MAX - 1] + "…"


def _told(key: str, used: int, hard: int) -> str:
    """Return used of allowed units as people read it: a class by its name."""
    name = "total" if key == BUDGET_TOTAL else key.removeprefix(BUDGET_CLASS_PREFIX)
    return f"{name} {used}/{hard}"


def counted(book: Book, view: BudgetView) -> Counted:
    """Return what a budget is to show now."""
    hard = hard_of(book.state, view.namespace, view.name)
    used = {key: tellable(book.budgets.held(view.namespace, key)) for key in hard}
    declared = {key: book.declared.units(view.namespace, key) for key in hard if key.startswith(BUDGET_TOTAL)}
    least = nsmallest(BINDINGS_MAX, binding(book.budgets, view.namespace), key=lambda one: one.hard - one.used)
    told = [Binding(one.key, one.namespace, one.budget, one.hard, tellable(one.used)) for one in least]
    return Counted(used, declared, hard, tuple(sorted(told, key=lambda one: one.key)))


def tellable(units: int) -> int:
    """Return units as a status can hold them: each pod may request as many as there are numbers for."""
    return min(units, AMOUNT_MAX)


class _Shown(msgspec.Struct, frozen=True):
    """What a budget of that uid is known to show, and since when."""

    uid: str
    counted: Counted
    since: float


class BudgetCounts(Paced):
    """Keeps the status of budgets true. `changed()` after each step; `run(book)` beside them."""

    def __init__(self, kube: Kube) -> None:
        super().__init__()
        self._kube = kube
        self._shown: dict[str, _Shown] = {}
        self._later = self._doubted = False

    @property
    def shown(self) -> dict[str, Counted]:
        """What each budget is known to show, by namespace/name."""
        return {key: shown.counted for key, shown in self._shown.items()}

    @override
    def look_again(self) -> None:
        """Read every budget again; what is shown meanwhile is what was."""
        self._doubted = True
        super().look_again()

    @override
    def _unasked_s(self) -> float | None:
        return SECONDS_ABOVE if self._later else None

    @override
    async def write(self, book: Book) -> None:
        """Write each budget whose status does not show what is counted now, several side by side."""
        if book.state.adopting:
            return
        views = [view for view in book.state.objects["gpubudgets"].values() if isinstance(view, BudgetView)]
        self._shown = {view.key: self._shown[view.key] for view in views if view.key in self._shown}
        self._later = False
        doubted, self._doubted = self._doubted, False
        stamp, room = ShownStamp(book.state.generation, book.state.events_seq, 0), asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as tasks:
            for view in views:
                now = counted(book, view)
                if doubted or self._is_due(view, now):
                    known = view.key in self._shown and not doubted
                    tasks.create_task(self._write_one(room, view, now, stamp, known=known))

    def _is_due(self, view: BudgetView, now: Counted) -> bool:
        shown = self._shown.get(view.key)
        if shown is None or shown.uid != view.uid or shown.counted.own != now.own:
            return True
        if shown.counted == now:
            return False
        due = asyncio.get_running_loop().time() - shown.since >= SECONDS_ABOVE
        self._later = self._later or not due
        return due

    async def _write_one(
        self, room: asyncio.Semaphore, view: BudgetView, now: Counted, stamp: ShownStamp, *, known: bool
    ) -> None:
        async with room:
            status = now.status(view.namespace, stamp)
            try:
                if known or not await self._shows(view, status):
                    # `add` replaces the whole status: keys that the budget had before do not stay beside the new ones.
                    patch = [
                        {"op": "test", "path": pinning.UID_PATH, "value": view.uid},
                        {"op": "add", "path": pinning.STATUS_PATH, "value": status},
                    ]
                    await self._kube.patch(
                        GPU_BUDGET, view.namespace, view.name, _encode(patch), kind=PatchKind.JSON, subresource="status"
                    )
            except ApiError as error:
                # Forgotten, so that it is read again; counted again with the next change, or now if it was not reached.
                self._shown.pop(view.key, None)
                log.info("budget.not-written", budget=view.key, code=error.code, reason=error.reason)
                if error.code not in {404, 422}:
                    self._news.set()
                return
        self._shown[view.key] = _Shown(view.uid, now, asyncio.get_running_loop().time())

    async def _shows(self, view: BudgetView, status: BudgetStatus) -> bool:
        found = await read(self._kube, GPU_BUDGET, view.namespace, view.name, SeenBudget)
        shown = found.status if found is not None and found.metadata.uid == view.uid else None
        return shown is not None and replace(shown, stamp=status.stamp) == status
