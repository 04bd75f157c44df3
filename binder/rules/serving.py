"""Which nodes may serve a set: readiness, taints, selectors, volumes.

Pure tests of one node against one need. Semantics are kube-scheduler's: an empty toleration key with
Exists still has to match the effect, an empty effect matches all (C19); a term list is ORed, a term
ANDed, an empty term matches nothing; volumes and selectors match labels, never node names (C18).
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from schemas.names import NODE_NAME_FIELD
from schemas.objects import NodeSelectorTerm, NodeView, Requirement, Taint, Toleration

HARD_EFFECTS = ("NoSchedule", "NoExecute")


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Say whether one of the tolerations covers the taint."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {"", "Equal"}:
        # An empty key is valid with Exists alone; the API server refuses it otherwise.
        return bool(toleration.key) and toleration.value == taint.value
    return toleration.operator == "Exists"


def every_class_tolerates(classes: Iterable[Sequence[Toleration]], node: NodeView) -> bool:
    """Say whether each class, on its own, tolerates the node's hard taints: not their union (C19)."""
    hard = [taint for taint in node.taints if taint.effect in HARD_EFFECTS]
    if not hard:
        return True
    return all(all(tolerates(tolerations, taint) for taint in hard) for tolerations in classes)


def selector_accepts(selector: Mapping[str, str], node: NodeView) -> bool:
    """Say whether the node carries every label of a nodeSelector."""
    return all(node.labels.get(key) == value for key, value in selector.items())


def terms_accept(terms: Sequence[NodeSelectorTerm] | None, node: NodeView) -> bool:
    """Say whether one term matches; None means no restriction, an empty list matches nothing."""
    return terms is None or any(_term_matches(term, node) for term in terms)


def _term_matches(term: NodeSelectorTerm, node: NodeView) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_matches(need, node.labels.get(need.key)) for need in term.match_expressions) and all(
        _matches(need, node.name if need.key == NODE_NAME_FIELD else None) for need in term.match_fields
    )


def _matches(need: Requirement, value: str | None) -> bool:
    match need.operator:
        case "In":
            return value is not None and value in need.values
        case "NotIn":
            return value is None or value not in need.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(need, value)
        case _:
            return False


def _compares(need: Requirement, value: str | None) -> bool:
    have, bound = _number(value), _number(need.values[0]) if len(need.values) == 1 else None
    if have is None or bound is None:
        return False
    return have > bound if need.operator == "Gt" else have < bound


def _number(text: str | None) -> int | None:
    """Read a number as the scheduler does: decimal, 64 bits, nothing around it; None for anything else."""
    if text is None or not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None
