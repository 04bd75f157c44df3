"""No budget is exceeded by what is bound, a tenant's or one above it: recounted at every decision (B3, B4, C28)."""

from collections.abc import Iterable, Iterator

from typing_extensions import override

from deploy.world.manifests import Obj, deleting, dig, key_of, meta
from schemas import decisions as d
from schemas.kinds import GPU_BUDGET, NAMESPACE
from schemas.objects import Stamp, TenantView
from schemas.reasons import Placing, Wait
from tests.simulation.held import Held
from tests.simulation.laws.law import Law
from tests.simulation.laws.recount import MIRROR, TOTAL, Bound, Recount, Units, by_key
from tests.simulation.picture import Picture
from tests.simulation.world import World

WOKEN_S = 60.0


class Budgeted(Law):
    """What is newly held fits into every budget of the tenants' line; who waits for one is told just how it stands."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._recount = Recount(picture)

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        match decision:
            case d.SetPlaced() if decision.vmi.uid not in self.picture.bookings:
                self._fits(stamp, decision.vmi.namespace, self._asked_by_set(decision.vmi.uid), decision.vmi.name)
            case d.HeldPlaced() if decision.why is not Placing.AGAIN:
                asked = self._asked_by_held(decision.namespace, decision.claims)
                self._fits(stamp, decision.namespace, asked, decision.claims[0].name)
            case d.SetWaits(reason=Wait.OVER_BUDGET):
                asked = self._asked_by_set(decision.vmi.uid)
                self._is_so(stamp, decision.vmi.namespace, decision.over, asked, decision.vmi.name)
            case d.HeldWaits(reason=Wait.OVER_BUDGET):
                asked = self._asked_by_held(decision.namespace, decision.claims)
                self._is_so(stamp, decision.namespace, decision.over, asked, decision.claims[0].name)
            case _:
                pass

    def _asked_by_set(self, uid: str) -> Units:
        return self._recount.asked(uid, self.picture.claims.get(uid, ()), self.picture.held.of(uid))

    def _asked_by_held(self, namespace: str, claims: Iterable[d.HeldClaim]) -> Units:
        return self._recount.asked("", (), [one for _, one in self.picture.held.named(namespace, claims)])

    def _fits(self, stamp: Stamp, namespace: str, asked: Units, who: str) -> None:
        for one in self._recount.over(namespace, asked):
            self.found.append(f"{stamp}: {namespace}/{who} takes {asked[one.key]} of {one.key} beyond {one}")

    def _is_so(self, stamp: Stamp, namespace: str, over: d.Over | None, asked: Units, who: str) -> None:
        known = self._recount.over(namespace, asked)
        # The nearest level's first budget by name; there classes before their sum.
        first = min(known, key=lambda one: order_of(known, one), default=None)
        told = Bound(over.namespace, over.budget, over.key, over.hard, over.used) if over is not None else None
        if first != told or over is None or over.asked != asked.get(over.key):
            self.found.append(f"{stamp}: {namespace}/{who} is told of {over}, and asks {asked}, which {first} refuses")


def order_of(known: list[Bound], one: Bound) -> tuple[int, str, bool, str]:
    """Return where a bound comes among those known: by level, then by budget; there classes before their sum."""
    levels = list(dict.fromkeys(other.namespace for other in known))
    return levels.index(one.namespace), one.budget, one.key == TOTAL, one.key


class BudgetShown(Law):
    """At rest each budget shows the use that a recount gives, and who binds; releases have mirrors, others none."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._recount = Recount(picture)

    @override
    def pending(self) -> Iterator[str]:
        shown = {key_of(budget): budget for budget in self.world.cluster.objects(GPU_BUDGET)}
        for key, budget in shown.items():
            if not deleting(budget):
                yield from self._compared(key, budget)
        releases = {
            view.tenant: view
            for view in self.picture.objects.get("helmreleases", {}).values()
            if isinstance(view, TenantView) and (view.hard or view.unread or view.opaque)
        }
        for tenant in releases:
            there = self.world.cluster.find(NAMESPACE, tenant)
            mirror, due = shown.get(f"{tenant}/{MIRROR}"), self._recount.hard(tenant, MIRROR)
            if there is not None and not deleting(there) and (mirror is None or mirror["spec"]["hard"] != due):
                yield f"the release of {tenant} says {due}, its mirror {mirror and mirror['spec']['hard']}"
        for key in shown:
            if key.endswith(f"/{MIRROR}") and key.partition("/")[0] not in releases:
                yield f"budget {key} mirrors no release"

    def _compared(self, key: str, budget: Obj) -> Iterator[str]:
        namespace, name = meta(budget)["namespace"], meta(budget)["name"]
        due = {one: self._recount.held(namespace, one) for one in self._recount.hard(namespace, name)}
        used = dig(budget, "status", "used")
        if used != due:
            yield f"budget {key} shows {used} in use, {due} are held"
        least: dict[str, Bound] = {}
        for one in self._recount.bounds(namespace):
            known = least.get(one.key)
            if known is None or one.hard - one.used < known.hard - known.used:
                least[one.key] = one
        told = dig(budget, "status", "binding") or ()
        says = {
            one["key"]: Bound(one["namespace"], one["budget"], one["key"], one["hard"], one["used"]) for one in told
        }
        if says != least:
            yield f"budget {key} says that {says} bind, and {least} do"


class Woken(Law):
    """Who was told of a budget is looked at again soon after it has the units, and not with all others now and then."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._affords = Affords(picture)
        self._since: dict[str, float] = {}

    @override
    def pending(self) -> Iterator[str]:
        told = [uid for uid, reason in self.picture.reasons.items() if reason == Wait.OVER_BUDGET]
        free = [self.picture.names[uid].name for uid in told if self._affords.set_of(uid)]
        waiting = [one for one in self.picture.held.claims.values() if one.reason == Wait.OVER_BUDGET]
        free += [one.key for one in waiting if not one.freed and self._affords.held([one])]
        self._since = {who: self._since.get(who, self.world.now) for who in free}
        for who, since in self._since.items():
            if self.world.now - since > WOKEN_S:
                self.found.append(f"{who} still waits for a budget that has had the units for {WOKEN_S} s")
        yield from (f"{who} waits for a budget that has the units" for who in free)


class Affords:
    """Whether budgets, as they stand now, have units for who waits: for the laws of who must be served."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._recount = Recount(picture)

    def set_of(self, uid: str) -> bool:
        """Say whether a VMI's whole set may be bound."""
        asked = self._recount.asked(uid, self._picture.claims.get(uid, ()), self._picture.held.of(uid))
        vmi = self._picture.names.get(uid)
        return vmi is None or not self._recount.over(vmi.namespace, asked)

    def new(self, home: str, entries: Iterable[tuple[str, int]], claims: Iterable[Held]) -> bool:
        """Say whether a VMI that is not there yet may be bound with these class entries and held claims."""
        fresh = [(one.class_name, one.count) for one in claims if not one.counts]
        return not self._recount.over(home, by_key([*entries, *fresh]))

    def held(self, claims: list[Held]) -> bool:
        """Say whether held claims that go together may be bound."""
        namespace = claims[0].key.partition("/")[0]
        return not self._recount.over(namespace, self._recount.asked("", (), claims))
