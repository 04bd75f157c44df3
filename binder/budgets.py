"""What tenants may hold and what they do hold, by key, each unit counted for its namespace and all tenants above.

Keys are units over all classes, units of one class, and resource names for pods without a claim
(`schemas.names`). A key that a budget does not name is no limit; zero is one (C28). Every unit that is
taken or freed is added along its line of tenants, so that a question costs the line's length, not the
number of tenants.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from binder.state import Loosened, State
from binder.tenants import line_of, release_of_tenant
from binder.usage import Amounts
from schemas import decisions as d
from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL, MIRRORED_BUDGET
from schemas.objects import BudgetView, TenantView

Charge = tuple[str, Amounts]
"""What one set, claim or pod counts for: its namespace, and units by key."""

Used = Callable[[str, str], int]
"""How many units of a key a tenant and all below it use."""

FREED, LIMIT = int(Loosened.FREED), int(Loosened.LIMIT)


class Budgets:
    """`limits`: units by key, by namespace and budget. `used`: held units by namespace and key, all below included.

    `charges`: what each set, held claim and pod counts for, by table.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.limits: dict[str, dict[str, Amounts]] = {}
        self.used: dict[str, Amounts] = {}
        self.charges: dict[str, dict[str, Charge]] = {"sets": {}, "holdings": {}, "pods": {}}

    def held(self, namespace: str, key: str) -> int:
        """Return how many units of a key are held by a namespace and all tenants below it."""
        used = self.used.get(namespace)
        return used.get(key, 0) if used else 0

    def left(self, bound: str) -> int | None:
        """Return how many more units a namespace's budgets allow of a key (`bound_of`), None where none limits it."""
        namespace, _, key = bound.partition(" ")
        allowed = [hard[key] for hard in self.limits.get(namespace, {}).values() if key in hard]
        return min(allowed) - self.held(namespace, key) if allowed else None

    def counts(self, table: str, key: str) -> bool:
        """Say whether a set, held claim or pod counts for anything now."""
        return key in self.charges[table]

    def charge(self, table: str, key: str, charge: Charge | None) -> None:
        """Let a set, held claim or pod count for this alone; None or no units: for nothing."""
        charges = self.charges[table]
        if charge is not None and not charge[1]:
            charge = None
        before = charges.get(key)
        if before == charge:
            return
        if charge is not None:
            charges[key] = charge
            self._use(charge, 1)
        else:
            del charges[key]
        if before is not None:
            self._use(before, -1)

    def _use(self, charge: Charge, sign: int) -> None:
        namespace, amounts = charge
        for level in line_of(namespace):
            used = self.used.setdefault(level, {})
            for key, amount in amounts.items():
                used[key] = used.get(key, 0) + sign * amount
                if not used[key]:
                    del used[key]
                if sign < 0 and self._limits(level, key):
                    self._loosen(level, key, FREED)
            if not used:
                del self.used[level]

    def _limits(self, namespace: str, key: str) -> bool:
        return any(key in hard for hard in self.limits.get(namespace, {}).values())

    def _loosen(self, namespace: str, key: str, how: int) -> None:
        """Mark for the next pass that there may be more of a key: who waits for it is looked at again."""
        mark = bound_of(namespace, key)
        self._state.dirty_budgets[mark] = self._state.dirty_budgets.get(mark, 0) | how

    def changed(self, view: BudgetView | TenantView) -> None:
        """Take in that a budget came, changed or went: `view` as it stands or stood."""
        if isinstance(view, BudgetView):
            self._limit(view.namespace, view.name)
        elif view.tenant:
            self._limit(view.tenant, MIRRORED_BUDGET)

    def _limit(self, namespace: str, name: str) -> None:
        hard = hard_of(self._state, namespace, name)
        budgets = self.limits.get(namespace, {})
        before = budgets.get(name, {})
        if hard == before:
            return
        if hard:
            self.limits[namespace] = budgets | {name: hard}
        else:
            del budgets[name]
            if not budgets:
                del self.limits[namespace]
        for key in {**before, **hard}:
            if before.get(key) != hard.get(key):
                self._loosen(namespace, key, LIMIT)


def bound_of(namespace: str, key: str) -> str:
    """Name one key of one namespace's budgets, as `State.dirty_budgets` does."""
    return f"{namespace} {key}"


def hard_of(state: State, namespace: str, name: str) -> Amounts:
    """Return what a budget allows by key; nothing where it isn't there.

    A tenant's HelmRelease wins over the budget that mirrors it, which is asked for what can't be read there and
    was never known: unreadable never means unlimited. While the release has no GPU keys (any more), the budget
    counts as it stands until it is gone.
    """
    view = state.budget(f"{namespace}/{name}")
    said = view.hard if view is not None else {}
    release = state.tenant(release_of_tenant(namespace)) if name == MIRRORED_BUDGET else None
    if release is None:
        return said
    hard = release.hard | {key: said.get(key, 0) for key in release.unread if key not in release.hard}
    return hard or said or ({BUDGET_TOTAL: 0} if release.opaque else {})


def resolved(before: TenantView | None, view: TenantView) -> TenantView:
    """Return a tenant's release with what was last known of each key that can't be read."""
    if before is None or not (view.opaque or view.unread):
        return view
    if view.opaque:
        return replace(view, hard=before.hard, unread=before.unread)
    known = {key: before.hard[key] for key in view.unread if key in before.hard}
    return replace(view, hard=view.hard | known)


def units_of(claims: Iterable[d.TemplateClaim | d.HeldClaim]) -> Amounts:
    """Return what claims count for: units of their classes, and of all classes together."""
    return total_of((claim.class_name, claim.count) for claim in claims)


def total_of(units: Iterable[tuple[str, int]]) -> Amounts:
    """Add up units of classes: by class, and over all of them."""
    amounts: Amounts = {}
    for class_name, count in units:
        for key in (BUDGET_CLASS_PREFIX + class_name, BUDGET_TOTAL):
            amounts[key] = amounts.get(key, 0) + count
    return amounts


def first_over(budgets: Budgets, namespace: str, asked: Amounts, used: Used | None = None) -> d.Over | None:
    """Return the first budget that leaves less than is asked, None where all have enough (B2, B3).

    The namespace's own come first, then those of each tenant above; in one namespace by name, classes before
    their sum. `used` says what is used of a key: what is held, unless it is given. Zero units are never too many,
    so a budget lowered below its use takes nothing and gives nothing new.
    """
    return next((one for one in answers(budgets, namespace, asked, used) if is_over(one)), None)


def answers(budgets: Budgets, namespace: str, asked: Amounts, used: Used | None = None) -> Iterator[d.Over]:
    """Name every budget of the line that limits a key which is asked for, in the order in which they are asked."""
    use, keys = used or budgets.held, _asked_for(asked)
    for level in line_of(namespace):
        for name, limits in sorted(budgets.limits.get(level, {}).items()):
            for key in keys:
                if key in limits:
                    yield d.Over(level, name, key, limits[key], use(level, key), asked[key])


def _asked_for(asked: Amounts) -> list[str]:
    """Return the keys of which units are asked, classes before their sum."""
    return sorted((key for key, amount in asked.items() if amount > 0), key=lambda key: (key == BUDGET_TOTAL, key))


def is_over(one: d.Over) -> bool:
    """Say whether a budget leaves less than is asked."""
    return one.used + one.asked > one.hard


def binding(budgets: Budgets, namespace: str) -> Iterator[d.Over]:
    """Name, for each key that any budget of the line limits, the one that leaves least; the nearest of equals.

    `asked` is 0: nobody asks.
    """
    least: dict[str, d.Over] = {}
    for level in line_of(namespace):
        for name, hard in sorted(budgets.limits.get(level, {}).items()):
            for key, units in hard.items():
                one, known = d.Over(level, name, key, units, budgets.held(level, key), 0), least.get(key)
                if known is None or one.hard - one.used < known.hard - known.used:
                    least[key] = one
    for _, one in sorted(least.items()):
        yield one


def told_alike(one: d.Over | None, other: d.Over | None) -> bool:
    """Say whether two bounds are the same to who waits: what is used of them changes all the time (C59)."""
    if one is None or other is None:
        return one is other
    told = (one.namespace, one.budget, one.key, one.hard, one.asked)
    return told == (other.namespace, other.budget, other.key, other.hard, other.asked)


def sentence(over: d.Over) -> str:
    """Say which budget leaves too little: whose, of what, how much it allows, uses, and how much was asked."""
    unit = "unit" if over.hard == 1 else "units"
    of = f"GPU {unit} of all classes" if over.key == BUDGET_TOTAL else f"{unit} of {over.key}"
    held, asked = ("is" if count == 1 else "are" for count in (over.used, over.asked))
    return (
        f"budget {over.namespace}/{over.budget} allows {over.hard} {of}, {over.used} {held} held by {over.namespace} "
        f"and the tenants below it, {over.asked} more {asked} asked; free some there, or have that budget raised"
    )
