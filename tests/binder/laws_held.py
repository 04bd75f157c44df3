"""Laws of history over held claims: what must hold of each decision about them at the moment it is made."""

from collections.abc import Iterator

from binder.state import Holding, State
from schemas import decisions as d
from schemas.objects import ClaimView, ClassView, NodeView
from schemas.reasons import Placing, Unkept
from tests.binder.oracle import bears, paused, used_on
from tests.binder.oracle_budgets import by_key, over, told_so
from tests.binder.oracle_held import together, verdict, with_launcher

CROWD = 60
"""With more claims than this the order of groups is not counted anew."""


def law(state: State, decision: d.HeldPlaced | d.HeldLost | d.HeldWaits) -> Iterator[str]:
    """Yield what is wrong with a decision about claims that go together."""
    held: list[Holding] = []
    for claim in decision.claims:
        one = state.holding(decision.namespace, claim.name)
        if one is None or one.claim.uid != claim.uid or one.freed:
            yield f"{decision}: claim {claim.name} is not held"
            return
        if one.claim.resource not in {"", claim.resource}:
            yield f"{decision}: claim {claim.name} was counted by {one.claim.resource} (T24)"
        gpu_set = state.sets.get(one.attached.uid) if one.attached else None
        if gpu_set is not None and gpu_set.node:
            yield f"{decision}: a launcher may use claim {claim.name}"
        held.append(one)
    if any(one.again for one in held):
        return
    keys = sorted(f"{decision.namespace}/{one.name}" for one in decision.claims)
    [(whose, group)] = [(whose, group) for whose, group in together(state).items() if keys[0] in group]
    by_hand = getattr(decision, "why", None) is Placing.MOVED or getattr(decision, "reason", None) is Unkept.COMMANDED
    if paused(state) and not isinstance(decision, d.HeldWaits) and not by_hand:
        yield f"{decision}: placing is paused"
    match decision:
        case d.HeldPlaced():
            if keys != group and not _left_over_budget(state, group, keys):
                yield f"{decision}: {group} go together (D10)"
            yield from _placing(state, decision)
            if decision.why in {Placing.ORDERED, Placing.REBOUND}:
                yield from _jumped(state, decision, group)
        case d.HeldLost():
            if keys != group:
                yield f"{decision}: {group} go together (D10)"
        case d.HeldWaits():
            if with_launcher(state, whose):
                yield f"{decision}: they are told with their VMI's set"
            if all(one.node or told_so(one, decision) for one in held):
                yield f"{decision} is told again, or to claims that have a node (C59)"


def _left_over_budget(state: State, group: list[str], keys: list[str]) -> bool:
    """Say whether those that are left behind hold nothing yet, and their budgets have no units left (B3)."""
    left = [state.holdings[key] for key in group if key not in keys]
    fresh = by_key([(one.claim.class_name, one.claim.count) for one in left])
    pending = all(not one.node and one.lost is None for one in left)
    return set(keys) < set(group) and pending and bool(over(state, left[0].namespace, fresh))


def _placing(state: State, decision: d.HeldPlaced) -> Iterator[str]:
    node = state.node(decision.node)
    if not isinstance(node, NodeView) or not node.ready or node.unschedulable:
        yield f"{decision}: the node can't serve"
        return
    names = {claim.name for claim in decision.claims}
    asked: dict[str, int] = {}
    for claim in decision.claims:
        asked[claim.resource] = asked.get(claim.resource, 0) + claim.count
        view = state.gpu_class(claim.class_name)
        if not isinstance(view, ClassView) or not bears(view.tolerations, node):
            yield f"{decision}: class {claim.class_name} does not tolerate the node, or is not there"
    for by, count in asked.items():
        own = sum(
            one.claim.count
            for one in state.holdings.values()
            if (one.namespace, one.node, one.claim.resource) == (decision.namespace, decision.node, by)
            and one.claim.name in names
        )
        free = node.allocatable.get(by, 0) - used_on(state, node, by) + own
        if count > free:
            yield f"{decision}: {free} of {by} are free, {count} are taken"


def _jumped(state: State, decision: d.HeldPlaced, group: list[str]) -> Iterator[str]:
    """No new order comes before a Lost group that fits, nor before an older one that does (D6)."""
    if len(state.holdings) > CROWD:
        return
    place = _place(state, group)
    for whose, keys in together(state).items():
        waits = any(not state.holdings[key].node for key in keys) and not with_launcher(state, whose)
        if waits and keys != group and _place(state, keys) < place and verdict(state, keys).startswith("fits"):
            yield f"{decision}: {keys} are ahead of it, and fit"


def _place(state: State, keys: list[str]) -> tuple[bool, int, str, str]:
    views = [view for key in keys if isinstance(view := state.claim(key), ClaimView)]
    oldest = min((view.created, view.namespace, view.name) for view in views)
    return (not any(state.holdings[key].lost for key in keys), *oldest)


def freeing(state: State, decision: d.HeldFreed) -> Iterator[str]:
    """A claim is freed that is being deleted, and that no launcher may use."""
    view, one = state.claim(f"{decision.namespace}/{decision.name}"), state.holding(decision.namespace, decision.name)
    if view is None or one is None or not view.deleting or one.freed or one.claim.uid != decision.uid:
        yield f"{decision}: it is not being deleted, or was freed before"
        return
    gpu_set = state.sets.get(one.attached.uid) if one.attached else None
    if gpu_set is not None and gpu_set.node:
        yield f"{decision}: a launcher may use it"
