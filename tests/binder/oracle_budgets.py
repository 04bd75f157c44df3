"""What tenants hold and may hold, counted the slow way: every set, claim, pod and budget, from the tables alone.

Written apart from the rules it checks: it shares no code with them, and is as plain as it can be.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from binder.state import GpuSet, Holding, State
from schemas import decisions as d
from schemas.objects import BudgetView, PodView, Stamp, TenantView
from schemas.reasons import Wait

TOTAL = "gpus.cozystack.io"
MIRROR = "tenant-quotas"


def is_below(namespace: str, level: str) -> bool:
    """Say whether a namespace is `level` or a tenant below it: by whole parts of names, all tenants below the root."""
    if namespace == level:
        return True
    parts, above = namespace.split("-"), level.split("-")
    if parts[0] != "tenant" or above[0] != "tenant" or len(parts) < 2 or len(above) < 2:
        return False
    return level == "tenant-root" or (len(parts) > len(above) and parts[: len(above)] == above)


def budgets(state: State) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Return every budget as it binds: namespace, name, units by key."""
    said = {
        (view.namespace, view.name): view.hard
        for view in state.objects["gpubudgets"].values()
        if isinstance(view, BudgetView)
    }
    for view in state.objects["helmreleases"].values():
        assert isinstance(view, TenantView)
        mirror = said.get((view.tenant, MIRROR))
        hard = dict(view.hard)
        for key in view.unread:
            hard.setdefault(key, (mirror or {}).get(key, 0))
        if not hard:
            hard = mirror or ({TOTAL: 0} if view.opaque else {})
        said[view.tenant, MIRROR] = hard
    for (namespace, name), hard in sorted(said.items()):
        yield namespace, name, hard


def _claims(state: State) -> Iterator[tuple[str, str, int]]:
    """Return what is held: namespace, class and units of every claim that counts."""
    for gpu_set in state.sets.values():
        if gpu_set.node or any(own_pods(state, gpu_set)):
            for claim in gpu_set.claims:
                yield gpu_set.vmi.namespace, claim.class_name, claim.count
    for holding in state.holdings.values():
        if counts(holding):
            yield holding.namespace, holding.claim.class_name, holding.claim.count


def counts(holding: Holding) -> bool:
    """Say whether a held claim counts: it is on a node, or it lost one."""
    return bool(holding.node) or (holding.lost is not None and bool(holding.claim.resource))


def own_pods(state: State, gpu_set: GpuSet) -> Iterator[PodView]:
    """Return a set's own pods that stand on a node."""
    for pod in state.objects["pods"].values():
        assert isinstance(pod, PodView)
        if pod.node and not pod.ended and is_own(state, pod) and pod.owner_uid == gpu_set.vmi.uid:
            yield pod


def is_own(state: State, pod: PodView) -> bool:
    """Say whether a pod's units are its VMI's claims: the booked one, or an admitted one whose stamp nobody copied."""
    gpu_set = state.sets.get(pod.owner_uid)
    if not pod.owner_uid or gpu_set is None:
        return False
    admitted = state.admitted.get(pod.owner_uid)
    stamped = [
        other
        for other in state.objects["pods"].values()
        if isinstance(other, PodView) and (other.namespace, other.admission) == (pod.namespace, pod.admission)
    ]
    honest = pod.launcher and admitted is not None and pod.admission in admitted.requests and len(stamped) == 1
    return honest or pod.uid in {gpu_set.pod_uid, gpu_set.former}


def held(state: State, level: str, key: str) -> int:
    """Count the units of a key that a namespace and all tenants below it hold."""
    units = 0
    for namespace, gpu_class, count in _claims(state):
        if is_below(namespace, level) and key in {TOTAL, f"{TOTAL}/{gpu_class}"}:
            units += count
    for pod in state.objects["pods"].values():
        assert isinstance(pod, PodView)
        if is_below(pod.namespace, level) and pod.node and not pod.ended and not is_own(state, pod):
            units += pod.requests.get(key, 0) if "/" in key else 0
    return units


def asked(state: State, gpu_set: GpuSet) -> dict[str, int]:
    """Count what a set asks beside what counts already, by key."""
    fresh = [(one.class_name, one.count) for one in gpu_set.claims]
    if gpu_set.node or any(own_pods(state, gpu_set)):
        fresh = []
    for claim in gpu_set.held:
        holding = state.holdings.get(f"{gpu_set.vmi.namespace}/{claim.name}")
        if holding is None or not counts(holding):
            fresh.append((claim.class_name, claim.count))
    return by_key(fresh)


def by_key(fresh: list[tuple[str, int]]) -> dict[str, int]:
    """Add up units by class and over all."""
    amounts: dict[str, int] = {}
    for gpu_class, count in fresh:
        for key in (TOTAL, f"{TOTAL}/{gpu_class}"):
            amounts[key] = amounts.get(key, 0) + count
    return amounts


def over(state: State, namespace: str, wanted: dict[str, int]) -> list[tuple[str, str, str]]:
    """Return every budget and key that leaves less than is wanted in a namespace."""
    return [
        (level, name, key)
        for level, name, hard in budgets(state)
        if is_below(namespace, level)
        for key, units in hard.items()
        if wanted.get(key, 0) and held(state, level, key) + wanted[key] > units
    ]


def exceeded(state: State, decision: d.SetPlaced | d.SetBooked | d.HeldPlaced) -> Iterator[str]:
    """Say which budgets a placement would exceed (B3)."""
    if isinstance(decision, d.SetPlaced):
        namespace, wanted = decision.vmi.namespace, asked(state, state.sets[decision.vmi.uid])
    elif isinstance(decision, d.SetBooked):
        fresh_set = GpuSet(decision.vmi, Stamp(), 0, decision.claims, held=decision.held)
        namespace, wanted = decision.vmi.namespace, asked(state, fresh_set)
    else:
        namespace, fresh = decision.namespace, []
        for claim in decision.claims:
            holding = state.holdings.get(f"{namespace}/{claim.name}")
            if holding is not None and not counts(holding):
                fresh.append((claim.class_name, claim.count))
        wanted = by_key(fresh)
    for level, name, key in over(state, namespace, wanted):
        yield f"{decision}: budget {level}/{name} has no {wanted[key]} of {key} left (B3)"


def told_so(before: GpuSet | Holding, decision: d.SetWaits | d.HeldWaits) -> bool:
    """Say whether somebody was told this before: the same reason, of the same bound, or of the same owner (C59)."""
    if decision.reason is Wait.CLAIM_IN_USE and before.message != decision.message:
        return False
    known, now = before.over, decision.over
    if before.reason is not decision.reason or known is None or now is None:
        return before.reason is decision.reason
    return replace(known, used=0) == replace(now, used=0)
