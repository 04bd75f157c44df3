"""Which held claims go together, which of them a pass may have to look at, and in what order.

A claim attached to a VMI is of that VMI's set; else it goes with the other claims that the oldest VM naming it
names; else alone. The id of a group: the VMI's uid, `vm NAMESPACE/NAME` or `claim NAMESPACE/NAME`.
"""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from binder.indexes import Indexes
from binder.launchers import may_run
from binder.members import Members
from binder.order import AGAIN, APART, DIRTY, WAITING, Group, Line, Rank, budget_groups, woken_by
from binder.state import Holding, State
from binder.usage import Amounts, Share
from schemas.decisions import HeldClaim, TemplateClaim
from schemas.events import VmiRequest

LOST, NEW = 0, 1
"""Lost groups are served before new orders (D6)."""


class Holdings:
    """The state's holdings with their indexes.

    `members`: keys of claims by group; `freeable`: those that are being deleted and may go now.
    """

    def __init__(self, state: State, index: Indexes, goes_with_set: Callable[[str], bool]) -> None:
        self._state = state
        self._index = index
        self._goes_with_set = goes_with_set
        self.members = Members()
        self.group_of: dict[str, str] = {}
        self.freeable: dict[str, bool] = {}
        self._line = Line()
        self._moved: dict[str, bool] = {}

    def of(self, group: str) -> list[Holding]:
        """Return the claims of a group by name."""
        keys = self.members.of(group)
        return [self._state.holdings[key] for key in sorted(keys)] if keys else []

    def oldest_namer(self, key: str) -> str:
        """Return the oldest VM that names a claim, '' where none does; ages have one-second grain."""
        elder = self._index.claim_vms.first(key)
        return elder[-1] if elder is not None else ""

    def regroup(self, key: str) -> bool:
        """Let a claim stand in its group, and say whether it stood in another: then both are looked at anew."""
        before, after = self.group_of.get(key, ""), self._group_of(key)
        if before == after:
            return False
        if before:
            self.members.drop(before, key)
            del self.group_of[key]
            self.mark_group(before)
            self.line_up(before)
        if after:
            self.members.add(after, key)
            self.group_of[key] = after
            self.mark_group(after)
            self.line_up(after)
        return True

    def _group_of(self, key: str) -> str:
        holding = self._state.holdings.get(key)
        if holding is None or holding.freed:
            return ""
        if holding.attached is not None:
            return holding.attached.uid
        vm = self.oldest_namer(key)
        return f"vm {vm}" if vm else f"claim {key}"

    def weigh(self, key: str) -> None:
        """Keep whether a claim may go now: it is being deleted, and no launcher may use it any more."""
        claim, holding = self._state.claim(key), self._state.holdings.get(key)
        if claim is None or not claim.deleting or holding is None or holding.freed or self._is_used(holding):
            self.freeable.pop(key, None)
        else:
            self.freeable[key] = True

    def _is_used(self, holding: Holding) -> bool:
        """Say whether a launcher may use a claim: booked, or let go without a booking, as a migration's target."""
        if holding.attached is None:
            return False
        uid = holding.attached.uid
        return self.is_booked(uid) or may_run(self._state, self._index.pods_by_vmi.of(uid))

    def mark(self, key: str) -> None:
        """Mark a claim, and so its group, for the next pass."""
        if key in self.group_of:
            # One that is marked already may count by another resource now: its place in the line follows.
            self._state.dirty_holdings[key] = True
            self.line_up(self.group_of[key])

    def mark_group(self, group: str) -> None:
        """Mark a group for the next pass."""
        for key in self.members.of(group):
            self.mark(key)

    def unmark(self, key: str) -> None:
        """Say that a claim was looked at."""
        if self._state.dirty_holdings.pop(key, None):
            self.line_up(self.group_of.get(key, ""))

    @property
    def line(self) -> Line:
        """Return the line of groups as it stands."""
        if self._moved:
            moved, self._moved = self._moved, {}
            for group in moved:
                self._line_up(group)
        return self._line

    def is_dirty(self, group: str) -> bool:
        """Say whether a group is to be looked at whatever the nodes do."""
        return any(key in self._state.dirty_holdings for key in self.members.of(group))

    def line_up(self, group: str) -> None:
        """Say that something about a group's place in the line changed."""
        self._moved[group] = True

    def _line_up(self, group: str) -> None:
        held = self.of(group)
        groups: tuple[Group, ...] = (DIRTY,) if self.is_dirty(group) else ()
        if not self.is_booked(group):
            groups += (APART,) if is_apart(held) else ()
            groups += (AGAIN,) if any(one.again or one.refused for one in held) else ()
        waiting = [holding for holding in held if not holding.node]
        if waiting and not self._goes_with_set(group):
            groups += (WAITING,) if waiting[0].reason is not None else ()
            asked = units_of(counted(self._state, holding) for holding in held)
            groups += woken_by(waiting[0].reason, asked, own_units(held).values())
            groups += budget_groups(waiting[0].reason, waiting[0].over)
        self._line.put(group, self._rank(group, held), groups)

    def is_booked(self, group: str) -> bool:
        """Say whether a launcher's booking uses the claims of a group: then they stay as they are."""
        gpu_set = self._state.sets.get(group)
        return gpu_set is not None and bool(gpu_set.node)

    def _rank(self, group: str, held: list[Holding]) -> Rank:
        oldest = min(((self._created(one), one.namespace, one.claim.name) for one in held), default=(0, "", ""))
        return (LOST if any(one.lost for one in held) else NEW, *oldest, group)

    def age(self, group: str) -> tuple[int, str, str]:
        """Return what orders groups from the youngest to the oldest: by their oldest claims, then by name."""
        held = self.of(group)
        first = min((one.namespace, one.claim.name) for one in held)
        return (-min(self._created(one) for one in held), *first)

    def _created(self, holding: Holding) -> int:
        claim = self._state.claim(key_of(holding))
        return claim.created if claim is not None else 0


def key_of(holding: Holding) -> str:
    """Return the key of a holding's claim."""
    return f"{holding.namespace}/{holding.claim.name}"


def is_apart(held: list[Holding]) -> bool:
    """Say whether a group is split over nodes or partly Lost; Pending beside a node is served as new orders are."""
    lost = [one for one in held if one.lost]
    return len({one.node: True for one in held if one.node}) > 1 or 0 < len(lost) < len(held)


def counted(state: State, holding: Holding) -> HeldClaim | None:
    """Return the claim with the resource it is or would be counted by; None where its class does not exist (T24)."""
    claim = holding.claim
    if claim.resource:
        return claim
    view = state.gpu_class(claim.class_name)
    return HeldClaim(claim.name, claim.uid, claim.class_name, claim.count, view.resource) if view is not None else None


def as_decided(state: State, request: VmiRequest) -> VmiRequest:
    """Return a request whose claims count as was decided: a status that is not written yet says less (T24)."""
    held = [(claim, state.holding(claim.namespace, claim.name)) for claim in request.claims]
    claims = tuple(
        replace(claim, resource=known.claim.resource)
        if known is not None and known.claim.resource and known.claim.uid == claim.uid
        else claim
        for claim, known in held
    )
    return replace(request, claims=claims) if claims != request.claims else request


def units_of(claims: Iterable[TemplateClaim | HeldClaim | None]) -> Amounts:
    """Return the units of claims by resource."""
    total: Amounts = {}
    for claim in claims:
        if claim is not None:
            total[claim.resource] = total.get(claim.resource, 0) + claim.count
    return total


def own_units(held: Iterable[Holding]) -> dict[str, Amounts]:
    """Return the units that claims hold, by node: who moves to that node has them already."""
    own: dict[str, Amounts] = {}
    for holding in held:
        if holding.node:
            amounts = own.setdefault(holding.node, {})
            amounts[holding.claim.resource] = amounts.get(holding.claim.resource, 0) + holding.claim.count
    return own


def share_of(state: State, holding: Holding | None) -> Share | None:
    """Return what a claim takes of its node: nothing while the launcher's booking counts it already."""
    if holding is None or not holding.node:
        return None
    gpu_set = state.sets.get(holding.attached.uid) if holding.attached is not None else None
    if gpu_set is not None and gpu_set.node:
        return None
    return (holding.node, {holding.claim.resource: holding.claim.count})
