"""What tenants ask for on paper, counted anew each time: by VMs, pools, replica sets, VMIs and claims, each unit once.

It shares nothing with the program's sums. Told from the log's picture it is what an answer must lean on; told from the
API server it is what is really declared.
"""

import json
from collections.abc import Iterable, Iterator

import msgspec

from deploy.world.manifests import Obj, controller_of, dig, meta
from schemas.kinds import GPU_CLAIM, VM, VM_POOL, VMI, VMI_REPLICA_SET, Resource
from schemas.names import GPUS_ANNOTATION, REFERENCE_LABEL, TEMPLATE_LABEL
from schemas.objects import AnyView, PoolView, ReplicaSetView, VmiView, VmView
from tests.simulation.cluster import Cluster
from tests.simulation.labels import LEVELS
from tests.simulation.laws.recount import Recount, Units, by_key, is_below
from tests.simulation.picture import Picture

KINDS: dict[str, Resource] = {kind.plural: kind for kind in (VM, VMI, VM_POOL, VMI_REPLICA_SET)}
_MAKERS = {VMI.plural: (VM.plural, VMI_REPLICA_SET.plural), VM.plural: (VM_POOL.plural,)}
_PLACES: dict[str, tuple[str, ...]] = {
    VM.plural: ("spec", "template"),
    VMI.plural: (),
    VM_POOL.plural: ("spec", "virtualMachineTemplate", "spec", "template"),
    VMI_REPLICA_SET.plural: ("spec", "template"),
}


class Thing(msgspec.Struct, frozen=True):
    """Something that declares units. `owner`: uid of what it says made it."""

    kind: str
    namespace: str
    uid: str
    owner: str
    units: Units

    @property
    def place(self) -> tuple[str, str]:
        """Where it is known under its uid."""
        return self.namespace, self.uid


def plus(one: Units, other: Units) -> Units:
    """Add up, key by key."""
    return {key: one.get(key, 0) + other.get(key, 0) for key in one | other}


def _larger(one: Units, other: Units) -> Units:
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in one | other}


def thing_of(kind: str, view: AnyView) -> Thing | None:
    """Return what a view declares."""
    if isinstance(view, VmView | VmiView):
        return Thing(kind, view.namespace, view.uid, view.owner_uid, _asked(view.gpus, 1))
    if isinstance(view, PoolView | ReplicaSetView):
        return Thing(kind, view.namespace, view.uid, "", _asked(view.gpus, view.replicas))
    return None


def told_of(kind: str, obj: Obj) -> Thing | None:
    """Return what an object of the API server declares, None where it does not refer to GPUs."""
    template = dig(obj, *_PLACES[kind]) if _PLACES[kind] else obj
    if REFERENCE_LABEL not in (dig(template or {}, "metadata", "labels") or {}):
        return None
    replicas = dig(obj, "spec", "replicas") if kind in {VM_POOL.plural, VMI_REPLICA_SET.plural} else 1
    gpus = (dig(template, "metadata", "annotations") or {}).get(GPUS_ANNOTATION, "")
    owner = controller_of(obj) or {}
    units = _asked(gpus, 1 if replicas is None else replicas)
    return Thing(kind, meta(obj)["namespace"], meta(obj)["uid"], owner.get("uid", ""), units)


def _asked(gpus: str, replicas: int) -> Units:
    entries = json.loads(gpus) if gpus else []
    units = by_key((one["className"], one.get("count", 1) * replicas) for one in entries if "className" in one)
    return {key: count for key, count in units.items() if count}


class Paper:
    """Counts what stands on paper as the log shows it, or as the API server does."""

    def __init__(self, picture: Picture, cluster: Cluster) -> None:
        self._picture, self._cluster = picture, cluster
        self._recount = Recount(picture)

    def seen(self, instead: Thing | None = None) -> dict[str, Units]:
        """Return the units of each level by key, as observed; with `instead` as it stands, or beside the rest."""
        found = [
            thing
            for kind in KINDS
            for view in self._picture.objects.get(kind, {}).values()
            if (thing := thing_of(kind, view)) is not None
        ]
        claims = [
            (one.key.partition("/")[0], by_key([(one.class_name, one.count)]))
            for one in self._picture.held.claims.values()
            if not one.freed
        ]
        return self._sums(found, claims, instead)

    def real(self, instead: Thing | None = None) -> dict[str, Units]:
        """Return the units of each level by key, as objects of the API server say."""
        found = [
            thing
            for plural, kind in KINDS.items()
            for obj in self._cluster.objects(kind)
            if (thing := told_of(plural, obj)) is not None
        ]
        claims = [
            (meta(claim)["namespace"], by_key([(claim["spec"]["className"], claim["spec"]["count"])]))
            for claim in self._cluster.objects(GPU_CLAIM)
            if TEMPLATE_LABEL not in (meta(claim).get("labels") or {}) and not self._is_freed(claim)
        ]
        return self._sums(found, claims, instead)

    def _is_freed(self, claim: Obj) -> bool:
        known = self._picture.held.claims.get(f"{meta(claim)['namespace']}/{meta(claim)['name']}")
        return known is not None and known.uid == meta(claim)["uid"] and known.freed

    def _sums(
        self, found: Iterable[Thing], claims: Iterable[tuple[str, Units]], instead: Thing | None
    ) -> dict[str, Units]:
        things = {(one.kind, *one.place): one for one in found}
        if instead is not None:
            things[instead.kind, *instead.place] = instead
        sums: dict[str, Units] = {level: {} for level in LEVELS}
        for namespace, units in (*claims, *self._worth(things)):
            for level in LEVELS:
                if is_below(namespace, level):
                    sums[level] = plus(sums[level], units)
        return {level: {key: count for key, count in units.items() if count} for level, units in sums.items()}

    def _worth(self, things: dict[tuple[str, str, str], Thing]) -> Iterator[tuple[str, Units]]:
        """Yield what counts by itself: each thing that nothing of its own tenant made, and sets without a VMI."""
        below: dict[tuple[str, str, str], Units] = {}
        sets = {
            (self._picture.names[uid].namespace, uid): by_key([(one.class_name, one.count) for one in claims])
            for uid, claims in self._picture.claims.items()
            if self._recount.counts(uid)
        }
        for kind in (VMI.plural, VM.plural, VM_POOL.plural, VMI_REPLICA_SET.plural):
            for place, one in [(place, one) for place, one in things.items() if one.kind == kind]:
                held = sets.pop(one.place, {}) if kind == VMI.plural else below.get(place, {})
                units = _larger(one.units, held)
                maker = next((key for key in _makers(one) if key in things), None)
                if maker is None:
                    yield one.namespace, units
                else:
                    below[maker] = plus(below.get(maker, {}), units)
        yield from ((namespace, units) for (namespace, _), units in sets.items())


def _makers(one: Thing) -> Iterator[tuple[str, str, str]]:
    yield from ((kind, one.namespace, one.owner) for kind in _MAKERS.get(one.kind, ()) if one.owner)
