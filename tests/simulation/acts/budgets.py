"""Budgets of the tenants' tree: written, lowered below their use, raised, deleted; also by releases of Flux."""

from collections.abc import Mapping

from typing_extensions import override

from binder.kube import PatchKind
from deploy.world.manifests import Obj, encode
from schemas.kinds import GPU_BUDGET, HELM_RELEASE
from schemas.names import APPLICATION_KIND_LABEL, BUDGET_CLASS_PREFIX, BUDGET_TOTAL, TENANT_KIND
from tests.simulation.acts.act import Act, create, delete, hands
from tests.simulation.labels import CARD, LEVELS, ROOT, TENANTS
from tests.simulation.world import World

KEYS = (BUDGET_TOTAL, f"{BUDGET_CLASS_PREFIX}card", f"{BUDGET_CLASS_PREFIX}slice", CARD)
"""Over all classes, of one class each, and the resource that pods ask for past us."""

UNREADABLE = -1
RELEASES = {TENANTS[0]: (ROOT, "tenant-a"), TENANTS[1]: (TENANTS[0], "tenant-b")}
"""Where a tenant's release stands, and its name."""

Hard = tuple[tuple[int, int], ...]
"""Units by number of the key."""


def _hard(limits: Hard) -> dict[str, int]:
    return {KEYS[key]: units for key, units in limits}


class SetBudget(Act, frozen=True):
    """Somebody gives a level of the tree a budget, or says another number: lower than what is held, or higher."""

    level: int
    limits: Hard
    number: int = 0

    @override
    def begin(self, world: World) -> None:
        """Write it."""
        namespace, name = LEVELS[self.level], f"budget-{self.number}"
        hard: Mapping[str, int] = _hard(self.limits)
        if world.cluster.find(GPU_BUDGET, f"{namespace}/{name}") is None:
            create(world, GPU_BUDGET, namespace, {"metadata": {"name": name}, "spec": {"hard": hard}})
            return
        put = encode([{"op": "add", "path": "/spec/hard", "value": hard}])
        hands(world, world.cluster.api.patch(GPU_BUDGET, namespace, name, put, kind=PatchKind.JSON))


class DropBudget(Act, frozen=True):
    """A budget is deleted: what it limited is limited by others alone."""

    level: int
    number: int = 0

    @override
    def begin(self, world: World) -> None:
        """Delete it."""
        delete(world, GPU_BUDGET, f"{LEVELS[self.level]}/budget-{self.number}")


class Release(Act, frozen=True):
    """Flux serves a tenant's release with these quotas; `UNREADABLE` units are a word that is no number (B1)."""

    tenant: int
    limits: Hard = ()

    @override
    def begin(self, world: World) -> None:
        """Write it."""
        namespace, name = RELEASES[TENANTS[self.tenant]]
        quotas = {key: "many" if units == UNREADABLE else str(units) for key, units in _hard(self.limits).items()}
        spec: Obj = {"values": {"resourceQuotas": quotas}}
        if world.cluster.find(HELM_RELEASE, f"{namespace}/{name}") is None:
            metadata = {"name": name, "labels": {APPLICATION_KIND_LABEL: TENANT_KIND}}
            create(world, HELM_RELEASE, namespace, {"metadata": metadata, "spec": spec})
            return
        put = encode([{"op": "add", "path": "/spec", "value": spec}])
        hands(world, world.cluster.api.patch(HELM_RELEASE, namespace, name, put, kind=PatchKind.JSON))


class DropRelease(Act, frozen=True):
    """A tenant's release goes; its mirror goes after it."""

    tenant: int

    @override
    def begin(self, world: World) -> None:
        """Delete it."""
        namespace, name = RELEASES[TENANTS[self.tenant]]
        delete(world, HELM_RELEASE, f"{namespace}/{name}")
