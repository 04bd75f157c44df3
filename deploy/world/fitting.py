"""Whether a pod fits a node, as kube-scheduler's filters say: taints, selectors, affinity, room.

Written apart from the rules of the heart on purpose: the model scheduler is what they are tested against.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from deploy.world.amounts import millis
from deploy.world.manifests import Obj, dig

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Amounts = dict[str, int]
"""Thousandths by resource name, all of them: only sums and comparisons matter."""


@lru_cache(maxsize=4096)
def _thousandths(text: str | int) -> int:
    return millis(text)


def requests_of(pod: Obj) -> Amounts:
    """Return what a pod takes of a node, itself as one of `pods` included.

    Sidecars run beside the containers; each other init container runs beside the sidecars before it.
    """
    spec = pod["spec"]
    running: Amounts = {}
    for container in spec.get("containers") or ():
        _add(running, _requests(container))
    started: Amounts = {}
    highest: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(running, own)
            _add(started, own)
            own = {}
        beside = dict(started)
        _add(beside, own)
        for name, value in beside.items():
            highest[name] = max(highest.get(name, 0), value)
    for name, value in highest.items():
        running[name] = max(running.get(name, 0), value)
    _add(running, {name: _thousandths(value) for name, value in (spec.get("overhead") or {}).items()})
    running["pods"] = 1000
    return running


def _requests(container: Obj) -> Amounts:
    return {name: _thousandths(value) for name, value in (dig(container, "resources", "requests") or {}).items()}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def allocatable_of(node: Obj) -> Amounts:
    """Return what a node offers."""
    return {name: _thousandths(value) for name, value in (dig(node, "status", "allocatable") or {}).items()}


def taints_of(node: Obj) -> list[Obj]:
    """Return the node's taints, with those that the node-lifecycle controller would set on it."""
    taints = [dict(taint) for taint in dig(node, "spec", "taints") or ()]
    if dig(node, "spec", "unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    conditions = dig(node, "status", "conditions") or ()
    if not any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
        taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
    return taints


def tolerates(pod: Obj, taints: Iterable[Obj]) -> bool:
    """Whether the pod tolerates every taint that keeps pods away."""
    tolerations = pod["spec"].get("tolerations") or []
    hard = [taint for taint in taints if taint["effect"] in ("NoSchedule", "NoExecute")]
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in hard)


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration["key"] != taint["key"]:
        return False
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def selects(pod: Obj, node: Obj) -> bool:
    """Whether the pod's nodeSelector and required node affinity accept the node."""
    labels = node["metadata"].get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    required = dig(pod, "spec", "affinity", "nodeAffinity", _REQUIRED)
    return required is None or matches_terms(required.get("nodeSelectorTerms") or (), node)


def matches_terms(terms: Iterable[Obj], node: Obj) -> bool:
    """Whether one of the terms accepts the node; an empty term accepts none."""
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    for term in terms:
        expressions, of_fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if not expressions and not of_fields:
            continue
        if all(_meets(one, labels) for one in expressions) and all(_meets(one, fields) for one in of_fields):
            return True
    return False


def _meets(requirement: Obj, labels: Mapping[str, str]) -> bool:
    operator, values = requirement["operator"], requirement.get("values") or []
    value = labels.get(requirement["key"])
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "NotIn":
        return value is None or value not in values
    if value is None:
        return False
    if operator == "In":
        return value in values
    if not value.lstrip("-").isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def pinned_to(pod: Obj) -> list[str] | None:
    """Return the only nodes that the pod's terms name, or None where some term names none."""
    terms = dig(pod, "spec", "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    if not terms:
        return None
    names: list[str] = []
    for term in terms:
        named = [one for one in term.get("matchFields") or () if one["operator"] == "In"]
        if not named:
            return None
        names += named[0]["values"]
    return list(dict.fromkeys(names))


def minds(pod: Obj) -> bool:
    """Whether there are pods that this one will not stand beside."""
    return bool(dig(pod, "spec", "affinity", "podAntiAffinity", _REQUIRED))


def repels(pod: Obj, other: Obj) -> list[str]:
    """Return the topology keys under which the pod will not stand beside the other one."""
    keys = []
    for term in dig(pod, "spec", "affinity", "podAntiAffinity", _REQUIRED) or ():
        spaces = term.get("namespaces") or [pod["metadata"]["namespace"]]
        if other["metadata"]["namespace"] in spaces and _chosen(term.get("labelSelector"), other):
            keys.append(term["topologyKey"])
    return keys


def _chosen(selector: Mapping[str, Any] | None, pod: Obj) -> bool:
    if selector is None:
        return False
    labels = pod["metadata"].get("labels") or {}
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(k) == v for k, v in wanted.items()) and all(_meets(one, labels) for one in expressions)
