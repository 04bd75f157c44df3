"""How a policy of ours becomes two objects of the API server: the policy, and the binding that puts it in force."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from schemas import names
from schemas.admission import POLICY, POLICY_BINDING, POLICY_SUFFIX
from schemas.kinds import CONFIGMAP, Resource
from webhooks import cel

_FORBIDDEN: Final = "Forbidden"


class Check(msgspec.Struct, frozen=True):
    """One thing that must hold, and the sentence for whoever breaks it."""

    holds: str
    message: str


class Policy(msgspec.Struct, frozen=True):
    """One policy: what it is asked about, when, and what must hold then.

    `on`: kinds with an optional subresource; `labelled`: only objects with this label, before or after, or with
    this value of it; `when`: conditions beside that; `settings`: whether it needs them.
    """

    name: str
    on: tuple[tuple[Resource, str], ...]
    operations: tuple[str, ...]
    checks: tuple[Check, ...]
    labelled: str = ""
    value: str = ""
    when: tuple[tuple[str, str], ...] = ()
    settings: bool = True


def rendered(policy: Policy, namespace: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return policy and binding, ready to be applied; the settings stand in `namespace`."""
    return _policy(policy), _binding(policy, namespace)


def _policy(policy: Policy) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "resourceRules": [_rule(kind, sub, policy.operations) for kind, sub in policy.on],
        }
        | _selector(policy),
        "validations": [
            {"expression": check.holds, "message": check.message, "reason": _FORBIDDEN} for check in policy.checks
        ],
    }
    if policy.settings:
        spec["paramKind"] = {"apiVersion": CONFIGMAP.api_version, "kind": CONFIGMAP.kind}
        spec["variables"] = [
            {"name": name, "expression": expression} for name, expression in _variables(policy) if expression
        ]
    if policy.when:
        spec["matchConditions"] = [{"name": name, "expression": expression} for name, expression in policy.when]
    return _object(POLICY, policy, spec)


def _variables(policy: Policy) -> Iterable[tuple[str, str]]:
    yield "groups", cel.GROUPS
    yield "settings", cel.SETTINGS
    yield "ours", cel.IS_CONTROLLER
    yield "kubevirt", cel.IS_KUBEVIRT if policy.when else ""


def _binding(policy: Policy, namespace: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"policyName": _name(policy), "validationActions": ["Deny"]}
    if policy.settings:
        spec["paramRef"] = {
            "name": names.SETTINGS_CONFIGMAP,
            "namespace": namespace,
            "parameterNotFoundAction": "Allow",
        }
    return _object(POLICY_BINDING, policy, spec)


def _object(kind: Resource, policy: Policy, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": _name(policy), "labels": {names.MANAGED_BY_LABEL: names.FIELD_MANAGER}},
        "spec": spec,
    }


def _name(policy: Policy) -> str:
    return policy.name + POLICY_SUFFIX


def _rule(kind: Resource, subresource: str, operations: tuple[str, ...]) -> dict[str, Any]:
    return {
        "apiGroups": [kind.group],
        "apiVersions": ["*"] if kind.group else [kind.version],
        "operations": list(operations),
        "resources": [f"{kind.plural}/{subresource}" if subresource else kind.plural],
        "scope": "Namespaced" if kind.namespaced else "Cluster",
    }


def _selector(policy: Policy) -> dict[str, Any]:
    if not policy.labelled:
        return {}
    if policy.value:
        return {"objectSelector": {"matchLabels": {policy.labelled: policy.value}}}
    return {"objectSelector": {"matchExpressions": [{"key": policy.labelled, "operator": "Exists"}]}}
