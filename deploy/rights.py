"""What each part may do in a cluster: its rules of RBAC as data, from which chart, docs and tests are drawn.

A part is a role, the Job that begins the log, the one that cleans up, or a person: each has a service account or a
ClusterRole of its own, and may do what its code asks of the API server, no more. Rules that only a feature needs name
it, so that the chart leaves them out where the feature is off.
"""

from enum import StrEnum
from typing import Any, Final

import msgspec

from deploy.role_names import ELECTED, Role
from schemas import kinds as k
from schemas import names
from schemas.admission import (
    CONFIGURATION,
    CONFIGURATION_NAME,
    PLATFORM_VERB,
    POLICY,
    POLICY_BINDING,
    VALIDATING_CONFIGURATION,
)
from webhooks.policies import policy_objects

READ: Final = ("get", "list", "watch")
FOLLOW: Final = ("list", "watch")
INSTALLER, CLEANER = "adopt", "uninstall"
"""The accounts of the two Jobs, named after the commands that they run."""
STATUS: Final = "status"


class Feature(StrEnum):
    """What a cluster may leave out; the value says which value of the chart decides it."""

    LICENCES = "licences.enabled"
    OWN_CERTIFICATES = "webhooks.certificate.from: self"

    @property
    def condition(self) -> str:
        """Return the template condition under which the rules of the feature are there."""
        path, _, wanted = self.value.partition(": ")
        return f'eq .Values.{path} "{wanted}"' if wanted else f".Values.{path}"


class Rule(msgspec.Struct, frozen=True):
    """Verbs on kinds (with an optional subresource); `only`: objects of these names; `feature`: what needs it."""

    on: tuple[tuple[k.Resource, str], ...]
    verbs: tuple[str, ...]
    only: tuple[str, ...] = ()
    feature: Feature | None = None

    def manifest(self) -> dict[str, Any]:
        """Return the rule as RBAC spells it. Raises `ValueError` where its kinds are of more than one group."""
        groups = {resource.group for resource, _ in self.on}
        if len(groups) != 1:
            raise ValueError(f"one rule, one group, not {sorted(groups)}")
        named = [f"{resource.plural}/{sub}" if sub else resource.plural for resource, sub in self.on]
        told = {"apiGroups": sorted(groups), "resources": named}
        return told | ({"resourceNames": list(self.only)} if self.only else {}) | {"verbs": list(self.verbs)}


class Rights(msgspec.Struct, frozen=True):
    """What a part may do: everywhere, and in the namespace of the installation alone (`home`)."""

    everywhere: tuple[Rule, ...] = ()
    home: tuple[Rule, ...] = ()


def _on(verbs: tuple[str, ...], *resources: k.Resource, feature: Feature | None = None) -> Rule:
    return Rule(tuple((resource, "") for resource in resources), verbs, feature=feature)


def _status(*resources: k.Resource) -> Rule:
    return Rule(tuple((resource, STATUS) for resource in resources), ("patch",))


def _named(verbs: tuple[str, ...], resource: k.Resource, *only: str, feature: Feature | None = None) -> Rule:
    return Rule(((resource, ""),), verbs, only, feature)


def _elected(role: Role) -> tuple[Rule, ...]:
    """A role's own lease. RBAC can't bind a create to a name."""
    return (_on(("create",), k.LEASE), _named(("get", "update"), k.LEASE, f"{names.LEASE_PREFIX}{role}"))


_INGEST = Rights(
    everywhere=(
        _on(FOLLOW, k.NODE, k.POD, k.PV, k.PVC, k.NAMESPACE),
        _on(FOLLOW, k.GPU_CLASS, k.GPU_CLAIM, k.GPU_BUDGET),
        _on(FOLLOW, k.KUBEVIRT, k.VM, k.VMI, k.VMI_REPLICA_SET),
        _on(FOLLOW, k.VM_POOL),
        _on(FOLLOW, k.HELM_RELEASE),
        # Copies are told from other Secrets by a label, which RBAC can't ask for.
        _on(FOLLOW, k.SECRET, feature=Feature.LICENCES),
    ),
    home=(
        *_elected(Role.INGEST),
        _on(FOLLOW, k.CONFIGMAP),
        _on(("create",), k.SECRET, feature=Feature.LICENCES),
        _named(("get",), k.SECRET, names.DIGEST_KEY_SECRET, feature=Feature.LICENCES),
    ),
)
_PROJECTOR = Rights(
    everywhere=(
        _on((*READ, "create", "patch", "delete"), k.GPU_CLAIM),
        _on(("get", "patch"), k.GPU_CLASS),
        _on(("get", "create", "patch", "delete"), k.GPU_BUDGET),
        _status(k.GPU_CLAIM, k.GPU_CLASS, k.GPU_BUDGET),
        _on(("get", "patch", "delete"), k.POD),
        _on(("get", "delete"), k.VMI),
        _on((*READ, "create", "patch", "delete"), k.WORKLOAD),
        _on(("create",), k.EVENT),
        _on(("get",), k.NAMESPACE),
        _on(("get", "create", "update", "delete"), k.SECRET, feature=Feature.LICENCES),
    ),
    home=_elected(Role.PROJECTOR),
)
_ACCOUNTING = Rights(
    everywhere=(
        _on(READ, k.POD, k.PVC, k.SERVICE),
        _on(READ, k.WORKLOAD_MONITOR),
        _on(FOLLOW, k.DATA_VOLUME),
        _status(k.WORKLOAD_MONITOR),
        _on((*READ, "create", "patch", "delete"), k.WORKLOAD),
        _on(("get",), k.NAMESPACE),
    ),
    home=_elected(Role.ACCOUNTING),
)
_INSTALLER = Rights(
    everywhere=(
        _on(("get",), k.NAMESPACE),
        # What an earlier life left, and what is booked of a cluster that is taken over.
        _on(("list",), k.NODE, k.POD),
        _on(("list",), k.GPU_CLASS, k.GPU_CLAIM, k.GPU_BUDGET),
        _on(("list",), k.VM, k.VMI),
        _on(("list",), k.WORKLOAD),
        _on(("list",), k.SECRET, feature=Feature.LICENCES),
    ),
    home=(
        _on(("create",), k.CONFIGMAP),
        _named(("get", "patch"), k.CONFIGMAP, names.ANCHOR_CONFIGMAP),
        _on(("get",), k.LEASE),
    ),
)
_POLICIES = sorted({body["metadata"]["name"] for body in policy_objects("")})
_CLEANER = Rights(
    everywhere=(
        _on(("get", "list", "patch"), k.GPU_CLAIM, k.GPU_CLASS),
        _on(("list", "patch"), k.POD),
        _on(("list",), k.VMI),
        _on(("list", "delete"), k.GPU_BUDGET, k.WORKLOAD),
        _on(("list", "delete"), k.SECRET, feature=Feature.LICENCES),
        *(_named(("delete",), kind, CONFIGURATION_NAME) for kind in (CONFIGURATION, VALIDATING_CONFIGURATION)),
        *(_named(("delete",), kind, *_POLICIES) for kind in (POLICY, POLICY_BINDING)),
    ),
    home=(
        _on(("list", "patch"), k.DEPLOYMENT),
        _on(("get", "delete"), k.LEASE),
        _named(("get", "delete"), k.CONFIGMAP, names.ANCHOR_CONFIGMAP, names.SETTINGS_CONFIGMAP),
        _named(("delete",), k.SECRET, names.DIGEST_KEY_SECRET, names.WEBHOOK_TLS_SECRET),
    ),
)

RIGHTS: Final[dict[str, Rights]] = {
    Role.BINDER: Rights(
        # What objects show of the log: one that has not come so far is not led.
        everywhere=(_on(("list",), k.GPU_CLAIM, k.GPU_CLASS, k.GPU_BUDGET),),
        home=(
            *_elected(Role.BINDER),
            # `gpubinder status` is asked in its pod: who leads what.
            _named(("get",), k.LEASE, *(f"{names.LEASE_PREFIX}{role}" for role in ELECTED if role is not Role.BINDER)),
            _named(("get", "patch"), k.CONFIGMAP, names.ANCHOR_CONFIGMAP),
        ),
    ),
    Role.INGEST: _INGEST,
    Role.PROJECTOR: _PROJECTOR,
    Role.WEBHOOKS: Rights(
        everywhere=(
            _on(("get", "list"), k.GPU_CLASS),
            _on(("get",), k.GPU_CLAIM),
            _on(("get", "list"), k.KUBEVIRT),
            _on(("get",), k.NAMESPACE),
            # The owner of a Scale, whose template says what more replicas would take.
            _on(("get",), k.VMI_REPLICA_SET),
            _on(("get",), k.VM_POOL),
            *(
                _named(("get", "patch"), kind, CONFIGURATION_NAME, feature=Feature.OWN_CERTIFICATES)
                for kind in (CONFIGURATION, VALIDATING_CONFIGURATION)
            ),
        ),
        home=(
            _named(("get",), k.CONFIGMAP, names.SETTINGS_CONFIGMAP),
            _on(("create",), k.SECRET, feature=Feature.OWN_CERTIFICATES),
            _named(("get", "update"), k.SECRET, names.WEBHOOK_TLS_SECRET, feature=Feature.OWN_CERTIFICATES),
        ),
    ),
    Role.ACCOUNTING: _ACCOUNTING,
    INSTALLER: _INSTALLER,
    CLEANER: _CLEANER,
}
"""What each service account of the chart may do."""

WRITE: Final = ("create", "update", "patch", "delete", "deletecollection")
PEOPLE: Final[dict[str, tuple[Rule, ...]]] = {
    "view": (_on(READ, k.GPU_CLAIM, k.GPU_BUDGET, k.WORKLOAD, k.WORKLOAD_MONITOR),),
    "edit": (_on(WRITE, k.GPU_CLAIM),),
    "classes": (_on(READ, k.GPU_CLASS),),
    "platform": (
        _on((*READ, *WRITE), k.GPU_CLASS, k.GPU_BUDGET, k.GPU_CLAIM),
        _on((PLATFORM_VERB,), k.GPU_CLAIM),
    ),
}
"""What people may do by ClusterRoles of the chart: `view` and `edit` are added to Kubernetes' own of that name."""

AGGREGATED: Final[dict[str, tuple[str, ...]]] = {"view": ("view", "edit", "admin"), "edit": ("edit", "admin")}
"""Kubernetes' roles that take in ours: a tenant's administrator is no less than its editor."""
