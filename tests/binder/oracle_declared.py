"""What tenants declare, counted the slow way: every VM, pool, replica set, VMI and claim, from the tables alone.

Written apart from the rules it checks: it shares no code with them, and is as plain as it can be.
"""

import json

from binder.state import State
from schemas.objects import PoolView, ReplicaSetView, VmiView, VmView
from tests.binder.oracle_budgets import TOTAL, by_key, is_below, own_pods

Units = dict[str, int]
COUNT_MAX = 64


def declared(state: State, level: str) -> Units:
    """Count the units that a namespace and all tenants below it declare, by key; keys without any are left out."""
    total: Units = {}
    for namespace, units in _all(state):
        if is_below(namespace, level):
            total = _plus(total, units)
    return {key: count for key, count in total.items() if count}


def _all(state: State) -> list[tuple[str, Units]]:
    found = [
        (holding.namespace, by_key([(holding.claim.class_name, holding.claim.count)]))
        for holding in state.holdings.values()
        if not holding.freed
    ]
    views = [view for table in state.objects.values() for view in table.values()]
    pools = [view for view in views if isinstance(view, PoolView)]
    sets = [view for view in views if isinstance(view, ReplicaSetView)]
    vms = [view for view in views if isinstance(view, VmView)]
    vmis = [view for view in views if isinstance(view, VmiView)]
    for pool in pools:
        below: Units = {}
        for vm in vms:
            if is_of(vm, pool):
                below = _plus(below, _vm(state, vm, vmis))
        found.append((pool.namespace, _larger(_template(pool.gpus, pool.replicas), below)))
    for replica_set in sets:
        below = {}
        for vmi in vmis:
            if is_of(vmi, replica_set) and not any(is_of(vmi, vm) for vm in vms):
                below = _plus(below, _vmi(state, vmi))
        units = _larger(_template(replica_set.gpus, replica_set.replicas), below)
        found.append((replica_set.namespace, units))
    found += [(vm.namespace, _vm(state, vm, vmis)) for vm in vms if not any(is_of(vm, pool) for pool in pools)]
    for vmi in vmis:
        if not any(is_of(vmi, vm) for vm in vms) and not any(is_of(vmi, one) for one in sets):
            found.append((vmi.namespace, _vmi(state, vmi)))
    seen = {(vmi.namespace, vmi.uid) for vmi in vmis}
    for uid, gpu_set in state.sets.items():
        if (gpu_set.vmi.namespace, uid) not in seen:
            found.append((gpu_set.vmi.namespace, _held(state, gpu_set.vmi.namespace, uid)))
    return found


def is_of(one: VmView | VmiView, owner: VmView | PoolView | ReplicaSetView) -> bool:
    """Say whether one object says that another, of its namespace, made it."""
    return bool(one.owner_uid) and (one.namespace, one.owner_uid) == (owner.namespace, owner.uid)


def _vm(state: State, vm: VmView, vmis: list[VmiView]) -> Units:
    below: Units = {}
    for vmi in vmis:
        if is_of(vmi, vm):
            below = _plus(below, _vmi(state, vmi))
    return _larger(_template(vm.gpus, 1), below)


def _vmi(state: State, vmi: VmiView) -> Units:
    return _larger(_template(vmi.gpus, 1), _held(state, vmi.namespace, vmi.uid))


def _held(state: State, namespace: str, uid: str) -> Units:
    gpu_set = state.sets.get(uid)
    if gpu_set is None or gpu_set.vmi.namespace != namespace:
        return {}
    if not gpu_set.node and not any(own_pods(state, gpu_set)):
        return {}
    return by_key([(claim.class_name, claim.count) for claim in gpu_set.claims])


def _template(gpus: str, replicas: int) -> Units:
    """Return what a template says; histories write only annotations that admission would take, or none that parse."""
    try:
        entries = json.loads(gpus)
    except ValueError:
        return {}
    if any(not 1 <= one.get("count", 1) <= COUNT_MAX for one in entries):
        return {}
    return by_key([(one["className"], one.get("count", 1) * replicas) for one in entries if "className" in one])


def _plus(one: Units, other: Units) -> Units:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def _larger(one: Units, other: Units) -> Units:
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {**one, **other}}


def miscounted(state: State, used: dict[str, Units], held: dict[str, Units]) -> list[str]:
    """Say where running sums differ from a recount, and where more is held than is declared."""
    levels = sorted({*used, *held, "tenant-root"})
    found = []
    for level in levels:
        recount = declared(state, level)
        if recount != used.get(level, {}):
            found.append(f"{level} declares {recount}, the sums say {used.get(level, {})} (B2)")
        for key, units in held.get(level, {}).items():
            if key.startswith(TOTAL) and units > recount.get(key, 0):
                found.append(f"{level} holds {units} of {key}, and declares {recount.get(key, 0)}")
    return found
