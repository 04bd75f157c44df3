"""What can happen to the budgets of a small tree of tenants, told by numbers."""

from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL, MIRRORED_BUDGET, TENANT_ROOT
from schemas.objects import BudgetView, TenantView
from tests.binder.cluster_acts import NAMESPACES, RESOURCES
from tests.binder.node_acts import NodeActs

KEYS = (BUDGET_TOTAL, f"{BUDGET_CLASS_PREFIX}a", f"{BUDGET_CLASS_PREFIX}b", RESOURCES[0])
LEVELS = (TENANT_ROOT, *NAMESPACES)
BUDGETS = ("b0", "b1", MIRRORED_BUDGET)
RELEASES = ((TENANT_ROOT, "tenant-a", NAMESPACES[0]), ("tenant-a", "tenant-b", NAMESPACES[1]))


def _hard(a: int, b: int) -> dict[str, int]:
    return {key: (a >> 2 * place) % 7 for place, key in enumerate(KEYS) if (b >> place) % 2}


class BudgetActs(NodeActs):
    """Acts on budgets and tenants' releases; as many go as come, so that most of the time few bind."""

    def _budget(self, a: int, b: int, c: int, d: int) -> None:
        namespace, name = LEVELS[c % 3], BUDGETS[c // 3 % 3]
        self.scene.show(BudgetView(name, "", "", namespace, hard=_hard(a, d)))

    def _budget_gone(self, a: int, *_: int) -> None:
        view = self._pick("gpubudgets", a)
        if view is not None:
            self.scene.remove("gpubudgets", view.key)

    def _release(self, a: int, b: int, c: int, d: int) -> None:
        namespace, name, tenant = RELEASES[c % 2]
        hard = _hard(a, d)
        unread = tuple(key for place, key in enumerate(KEYS) if (b >> place) % 4 == 3 and key not in hard)
        self.scene.show(TenantView(name, "", "", namespace, tenant=tenant, hard=hard, unread=unread, opaque=b % 8 == 7))

    def _release_gone(self, a: int, *_: int) -> None:
        view = self._pick("helmreleases", a)
        if view is not None:
            self.scene.remove("helmreleases", view.key)
