"""Declared units: what VMs, pools, replica sets, VMIs and held claims ask for on paper, from write to deletion (B2).

Counted whether anything runs or not, each unit once: what a VM starts counts within that VM, what a pool or a
replica set makes within that, and each counts for the larger of what its template says and what is below it.
Below a VM is its VMI, which counts for the larger of its entries and what its set holds, below a pool its VMs. Held
claims count by themselves, so an entry that names one counts nothing. Sums run along the line of tenants, as those of
`binder.budgets` do.

An owner is believed only where it is seen, in the same namespace, and of a kind that makes such objects: whoever
writes an object writes its owner reference. So nothing is free of charge for the owner that it names.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter

import msgspec

from binder.budgets import total_of
from binder.members import Members
from binder.tenants import line_of
from binder.usage import Amounts
from schemas.entries import ClassEntry, MalformedEntries, parse_entries
from schemas.objects import AnyView, PoolView, ReplicaSetView, VmiView, VmView

VMS, VMIS, POOLS, SETS = (
    "virtualmachines",
    "virtualmachineinstances",
    "virtualmachinepools",
    "virtualmachineinstancereplicasets",
)
MAKERS = {VMIS: (VMS, SETS), VMS: (POOLS,)}
"""What makes objects of a kind; no kind makes its own, so that there is no circle."""

SAID_BY: dict[type, Callable[[AnyView | None], object]] = {
    VmView: attrgetter("uid", "namespace", "gpus", "owner_uid"),
    VmiView: attrgetter("uid", "namespace", "gpus", "owner_uid"),
    PoolView: attrgetter("uid", "namespace", "gpus", "replicas"),
    ReplicaSetView: attrgetter("uid", "namespace", "gpus", "replicas"),
}
"""What says how much an object declares, and within what."""

NOTHING: Amounts = {}


class Declarer(msgspec.Struct, frozen=True):
    """One object that declares units. `owner`: uid of its controller; `units`: those of its template, by key."""

    kind: str
    namespace: str
    uid: str
    owner: str
    units: Amounts

    @property
    def key(self) -> str:
        """Return what it stands under."""
        return key_of(self.kind, self.namespace, self.uid)


class _Counted(msgspec.Struct, frozen=True):
    """What counts for an object now, and within what: `within` '' is the tenant itself."""

    within: str
    namespace: str
    units: Amounts


class Declared:
    """`used`: declared units by namespace and key, all tenants below included; `counted`: what each object adds."""

    def __init__(self) -> None:
        self.used: dict[str, Amounts] = {}
        self.counted: dict[str, _Counted] = {}
        self.below: dict[str, Amounts] = {}
        self.declarers: dict[str, Declarer] = {}
        self._held: dict[str, Amounts] = {}
        self._made = Members()

    def units(self, namespace: str, key: str) -> int:
        """Return how many units of a key a namespace and all tenants below it declare."""
        used = self.used.get(namespace)
        return used.get(key, 0) if used else 0

    def changed(self, kind: str, before: AnyView | None, view: AnyView | None) -> None:
        """Take in that an object came, changed or went."""
        if _says_the_same(before, view):
            return
        old, new = declarer_of(kind, before), declarer_of(kind, view)
        if old is not None and (new is None or new.key != old.key):
            self._leave(old)
        if new is not None:
            self._enter(self.declarers.get(new.key), new)

    def _leave(self, one: Declarer) -> None:
        self.declarers.pop(one.key, None)
        self._made.drop(_owner_key(one), one.key)
        self._recount([*self._made_by(one), one.key])

    def _enter(self, known: Declarer | None, one: Declarer) -> None:
        self.declarers[one.key] = one
        if known is not None:
            self._made.drop(_owner_key(known), one.key)
        if one.owner:
            self._made.add(_owner_key(one), one.key)
        # Whoever it makes counts within it from now on, and did before where it was known.
        self._recount([*(self._made_by(one) if known is None else ()), one.key])

    def _made_by(self, one: Declarer) -> list[str]:
        return list(self._made.of(f"{one.namespace}/{one.uid}"))

    def holds(self, namespace: str, uid: str, units: Amounts) -> None:
        """Take in what the set of a VMI holds; nothing is none."""
        key = key_of(VMIS, namespace, uid)
        if units:
            self._held[key] = units
        else:
            self._held.pop(key, None)
        self._count(key, namespace)

    def claims(self, key: str, namespace: str, units: Amounts) -> None:
        """Take in what a held claim is for; nothing once it is gone."""
        self._put(f"claims/{key}", _Counted("", namespace, units) if units else None)

    def _recount(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._count(key, key.split("/")[1])

    def _count(self, key: str, namespace: str) -> None:
        """Count one object for what it is worth now, and whatever it counts within."""
        one = self.declarers.get(key)
        within = self.maker_of(one) if one is not None else ""
        held = self._held.get(key, NOTHING)
        below = held if one is None or one.kind == VMIS else self.below.get(key, NOTHING)
        units = larger(one.units, below) if one is not None else below
        self._put(key, _Counted(within, namespace, units) if units else None)

    def maker_of(self, one: Declarer) -> str:
        """Return the key of what made an object, '' where that is not seen."""
        for kind in MAKERS.get(one.kind, ()) if one.owner else ():
            key = key_of(kind, one.namespace, one.owner)
            if key in self.declarers:
                return key
        return ""

    def _put(self, key: str, now: _Counted | None) -> None:
        before = self.counted.get(key)
        if before == now:
            return
        if now is not None:
            self.counted[key] = now
            self._add(now, 1)
        else:
            del self.counted[key]
        if before is not None:
            self._add(before, -1)
        for maker in dict.fromkeys(one.within for one in (before, now) if one is not None and one.within):
            self._count(maker, maker.split("/")[1])

    def _add(self, one: _Counted, sign: int) -> None:
        if one.within:
            _sum_up(self.below, one.within, one.units, sign)
            return
        for level in line_of(one.namespace):
            _sum_up(self.used, level, one.units, sign)

    def rise(self, one: Declarer) -> Amounts:
        """Return how many units more would be declared if an object said this; what becomes less is left out.

        One that leaves what it counted within counts anew where it goes, and its maker for what is left of that.
        """
        now, within = self.counted.get(one.key), self.maker_of(one)
        known = now.units if now is not None else NOTHING
        below = self._held if one.kind == VMIS else self.below
        then = larger(one.units, below.get(one.key, NOTHING))
        if now is None or now.within == within:
            more = self._within(within, _sum(then, known, -1))
        else:
            more = _sum(self._within(within, then), self._within(now.within, _sum(NOTHING, known, -1)))
        return {key: units for key, units in more.items() if units > 0}

    def _within(self, key: str, more: Amounts) -> Amounts:
        """Return how many units more something is worth, and what that is in, if so many come below it."""
        while key:
            one, below, counted = self.declarers[key], self.below.get(key, NOTHING), self.counted.get(key)
            known = counted.units if counted is not None else NOTHING
            then = larger(one.units, {name: below.get(name, 0) + more.get(name, 0) for name in {**below, **more}})
            more = {name: then.get(name, 0) - known.get(name, 0) for name in {**then, **known}}
            key = self.maker_of(one)
        return more


def key_of(kind: str, namespace: str, uid: str) -> str:
    """Name an object that declares units."""
    return f"{kind}/{namespace}/{uid}"


def _owner_key(one: Declarer) -> str:
    return f"{one.namespace}/{one.owner}"


def declarer_of(kind: str, view: AnyView | None) -> Declarer | None:
    """Return what an object declares."""
    match view:
        case VmView() | VmiView():
            return Declarer(kind, view.namespace, view.uid, view.owner_uid, declared_by(view.gpus))
        case PoolView() | ReplicaSetView():
            return Declarer(kind, view.namespace, view.uid, "", declared_by(view.gpus, view.replicas))
        case _:
            return None


def declared_by(gpus: str, replicas: int = 1) -> Amounts:
    """Return the units that so many copies of a template declare, by key; none where it can't be read.

    An entry that names a held claim declares nothing: the claim does.
    """
    try:
        entries = parse_entries(gpus) if gpus and replicas > 0 else ()
    except MalformedEntries:
        return {}
    return total_of((one.class_name, one.count * replicas) for one in entries if isinstance(one, ClassEntry))


def larger(one: Amounts, other: Amounts) -> Amounts:
    """Return the larger of two, key by key."""
    if not other:
        return one
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {**one, **other}}


def _sum(one: Amounts, other: Amounts, sign: int = 1) -> Amounts:
    return {key: one.get(key, 0) + sign * other.get(key, 0) for key in {**one, **other}}


def _says_the_same(before: AnyView | None, view: AnyView | None) -> bool:
    """Say whether a change is of no concern, as most are: of a status."""
    if type(before) is not type(view):
        return False
    said = SAID_BY.get(type(view))
    return said is None or said(before) == said(view)


def _sum_up(sums: dict[str, Amounts], key: str, units: Amounts, sign: int) -> None:
    total = sums.setdefault(key, {})
    for name, amount in units.items():
        total[name] = total.get(name, 0) + sign * amount
        if not total[name]:
            del total[name]
    if not total:
        del sums[key]
