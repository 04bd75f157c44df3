"""What the API server knows of each resource beside its schema: status, generation, who may overwrite blindly."""

import msgspec

from schemas import kinds
from schemas.kinds import Resource

_STATUS = frozenset({"nodes", "pods", "services", "namespaces", "persistentvolumes", "persistentvolumeclaims"})
_WHOLE = frozenset({kinds.VMI, kinds.WORKLOAD})
_SCALED = frozenset({"virtualmachinepools", "virtualmachineinstancereplicasets"})


class Traits(msgspec.Struct, frozen=True):
    """One resource's traits.

    `status`: has a status subresource. `counted`: has `metadata.generation`. `blind`: may be replaced
    without a resourceVersion. `custom`: comes from a CRD. `scaled`: has a scale subresource.
    """

    status: bool
    counted: bool
    blind: bool
    custom: bool
    scaled: bool = False


def traits_of(resource: Resource) -> Traits:
    """Return the traits of a resource; custom ones have a status subresource, but for VMIs and Workloads."""
    if not _is_custom(resource.group):
        status = resource.plural in _STATUS or resource == kinds.CRD
        counted = resource in (kinds.POD, kinds.PRIORITY_CLASS, kinds.CRD)
        return Traits(status=status, counted=counted, blind=resource != kinds.LEASE, custom=False)
    status = resource not in _WHOLE
    return Traits(status=status, counted=True, blind=False, custom=True, scaled=resource.plural in _SCALED)


def _is_custom(group: str) -> bool:
    return "." in group and not group.endswith(".k8s.io")


def every_resource() -> list[Resource]:
    """Return every resource that the program knows, which is what a fresh model serves."""
    return [found for found in vars(kinds).values() if isinstance(found, Resource)]
