"""What tenants hold and may hold, counted anew from the log's picture each time it is asked: no sums are kept.

It shares nothing with the program's books: the tree is told by whole parts of names, budgets by what was seen of
them, use by what was decided and by the pods that stand.
"""

from collections.abc import Iterable, Iterator

import msgspec

from schemas import decisions as d
from schemas.objects import BudgetView, PodView, TenantView
from tests.simulation.held import Held
from tests.simulation.labels import LEVELS, ROOT
from tests.simulation.picture import Picture

TOTAL = "gpus.cozystack.io"
MIRROR = "tenant-quotas"
Units = dict[str, int]


class Bound(msgspec.Struct, frozen=True):
    """One key of one budget: whose, which, what it allows, and what is held under it."""

    namespace: str
    budget: str
    key: str
    hard: int
    used: int


def is_below(namespace: str, level: str) -> bool:
    """Say whether a namespace is `level` or below it; all tenants are below the root."""
    if namespace == level or not (namespace.startswith("tenant-") and level.startswith("tenant-")):
        return namespace == level
    parts, above = namespace.split("-"), level.split("-")
    return level == ROOT or (namespace != ROOT and parts[: len(above)] == above)


def line(namespace: str) -> list[str]:
    """Return the levels that bind a namespace, nearest first."""
    return sorted((level for level in LEVELS if is_below(namespace, level)), key=lambda level: LEVELS.index(level) * -1)


def by_key(claims: Iterable[tuple[str, int]]) -> Units:
    """Add up units by class, and over all of them."""
    units: Units = {}
    for name, count in claims:
        for key in (TOTAL, f"{TOTAL}/{name}"):
            units[key] = units.get(key, 0) + count
    return units


class Recount:
    """Counts the picture as it stands."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    def hard(self, namespace: str, name: str) -> Units:
        """Return what a budget allows: a tenant's release wins over its mirror, and unread means last known."""
        said = self._picture.objects.get("gpubudgets", {}).get(f"{namespace}/{name}")
        hard = dict(said.hard) if isinstance(said, BudgetView) else {}
        for view in self._picture.objects.get("helmreleases", {}).values():
            if isinstance(view, TenantView) and (view.tenant, MIRROR) == (namespace, name):
                last = {key: hard.get(key, 0) for key in view.unread if key not in view.hard}
                return view.hard | last or hard or ({TOTAL: 0} if view.opaque else {})
        return hard

    def budgets(self) -> list[tuple[str, str, Units]]:
        """Return every budget that binds, in the order of namespace and name."""
        objects = self._picture.objects
        names: dict[tuple[str, str], bool] = {}
        for view in objects.get("gpubudgets", {}).values():
            names[view.namespace, view.name] = True
        for view in objects.get("helmreleases", {}).values():
            assert isinstance(view, TenantView)
            names[view.tenant, MIRROR] = True
        return [(namespace, name, self.hard(namespace, name)) for namespace, name in sorted(names)]

    def held(self, level: str, key: str) -> int:
        """Count the units of a key that a level and all below it hold: claims by class, other pods by resource."""
        units = sum(
            by_key([(name, count)]).get(key, 0) for space, name, count in self._claims() if is_below(space, level)
        )
        return units + sum(
            pod.requests.get(key, 0)
            for pod in self._standing()
            if "/" in key and is_below(pod.namespace, level) and not self._is_own(pod)
        )

    def _claims(self) -> Iterator[tuple[str, str, int]]:
        for uid in self._picture.claims:
            if self.counts(uid):
                yield from (
                    (self._picture.names[uid].namespace, one.class_name, one.count) for one in self._picture.claims[uid]
                )
        for held in self._picture.held.claims.values():
            if held.counts:
                yield held.key.partition("/")[0], held.class_name, held.count

    def counts(self, uid: str) -> bool:
        """Say whether a VMI's own claims count: booked, or a pod of it still stands."""
        return uid in self._picture.bookings or any(
            pod.owner_uid == uid and self._is_own(pod) for pod in self._standing()
        )

    def _standing(self) -> Iterator[PodView]:
        for pod in self._picture.objects.get("pods", {}).values():
            assert isinstance(pod, PodView)
            if pod.node and not pod.ended:
                yield pod

    def _is_own(self, pod: PodView) -> bool:
        """Say whether a pod's units are its VMI's claims: a booked one, or one whose creation was answered."""
        if pod.owner_uid not in self._picture.claims:
            return False
        booking = self._picture.bookings.get(pod.owner_uid)
        if booking is not None and pod.uid in {booking.pod_uid, booking.former}:
            return True
        return pod.launcher and pod.admission in self._picture.admitted.get(pod.owner_uid, ())

    def asked(self, uid: str, claims: Iterable[d.TemplateClaim], held: Iterable[Held]) -> Units:
        """Return what a set asks beside what counts already."""
        fresh = [] if self.counts(uid) else [(one.class_name, one.count) for one in claims]
        return by_key([*fresh, *((one.class_name, one.count) for one in held if not one.counts)])

    def over(self, namespace: str, asked: Units) -> list[Bound]:
        """Return every budget of a namespace's line that leaves less than is asked."""
        found = [one for one in self.bounds(namespace) if asked.get(one.key)]
        return [one for one in found if one.used + asked[one.key] > one.hard]

    def bounds(self, namespace: str) -> Iterator[Bound]:
        """Return every key of every budget of a namespace's line: nearest first, then by name of the budget."""
        levels = line(namespace)
        found = [(levels.index(level), name, hard) for level, name, hard in self.budgets() if level in levels]
        for place, name, hard in sorted(found, key=lambda one: one[:2]):
            for key, units in sorted(hard.items()):
                yield Bound(levels[place], name, key, units, self.held(levels[place], key))
