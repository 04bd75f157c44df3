"""What the chart's accounts may do in a cluster, asked of a real API server: their part, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio

from deploy.rights import CLEANER, INSTALLER, RIGHTS, Rule
from deploy.role_names import Role
from schemas import kinds as k
from schemas import names
from schemas.admission import CONFIGURATION, POLICY, VALIDATING_CONFIGURATION
from tests.chart.helm import rendered
from tests.cluster.api import Api, Object
from tests.e2e.tenant import eventually

_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_COLLECTIONS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": f"{_RBAC}/namespaces/{{}}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{{}}/rolebindings",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
}
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
ASKED = (
    *((kind, "") for kind in (k.NODE, k.POD, k.PV, k.PVC, k.SERVICE, k.NAMESPACE, k.SECRET, k.CONFIGMAP, k.EVENT)),
    *((kind, "") for kind in (k.LEASE, k.CRD, k.DEPLOYMENT, k.GPU_CLASS, k.GPU_CLAIM, k.GPU_BUDGET, k.HELM_RELEASE)),
    *(
        (kind, "")
        for kind in (
            k.WORKLOAD,
            k.WORKLOAD_MONITOR,
            k.KUBEVIRT,
            k.VM,
            k.VMI,
            k.VM_POOL,
            k.VMI_REPLICA_SET,
            k.DATA_VOLUME,
        )
    ),
    *((kind, "") for kind in (CONFIGURATION, VALIDATING_CONFIGURATION, POLICY)),
    *((kind, "status") for kind in (k.POD, k.NODE, k.GPU_CLASS, k.GPU_CLAIM, k.GPU_BUDGET, k.WORKLOAD_MONITOR, k.VMI)),
    *((k.POD, sub) for sub in ("exec", "binding", "eviction", "log")),
)
NEVER = (
    ("secrets", "watch", {Role.INGEST}),
    ("secrets", "create", {Role.PROJECTOR}),
    ("pods", "patch", {Role.PROJECTOR, CLEANER}),
    ("pods", "create", set[str]()),
    ("pods/exec", "create", set[str]()),
    ("pods/binding", "create", set[str]()),
    ("nodes", "patch", set[str]()),
    ("virtualmachines", "patch", set[str]()),
    ("virtualmachineinstances", "delete", {Role.PROJECTOR}),
    ("gpuclaims/status", "patch", {Role.PROJECTOR}),
    ("gpuclaims", "create", {Role.PROJECTOR}),
    ("gpubudgets", "create", {Role.PROJECTOR}),
    ("gpuclasses", "create", set[str]()),
    ("deployments", "patch", set[str]()),
    ("clusterroles", "create", set[str]()),
    ("mutatingwebhookconfigurations", "create", set[str]()),
)
"""Who alone may do, everywhere, what does most harm: said again here, beside the program's own table."""


@pytest_asyncio.fixture
async def granted(api: Api, namespace: str, helm_home: Path) -> AsyncIterator[str]:
    """The chart's accounts and rights in a namespace of the test's own; they go afterwards."""
    objects = [body for body in rendered({}, helm_home, namespace=namespace) if body["kind"] in _COLLECTIONS]
    made = []
    try:
        for body in objects:
            collection = _COLLECTIONS[body["kind"]].format(namespace)
            await api.create(collection, body)
            made.append(f"{collection}/{body['metadata']['name']}")
        yield namespace
    finally:
        for path in made:
            await api.delete(path)


class Asking:
    """Asks what somebody may do."""

    def __init__(self, api: Api, user: str, groups: Iterable[str] = ()) -> None:
        self._api, self._user, self._groups = api, user, list(groups)

    async def may(self, verb: str, group: str, plural: str, *, namespace: str = "", name: str = "") -> bool:
        """Say whether it may; `namespace` '' means everywhere."""
        resource, _, sub = plural.partition("/")
        about = {"verb": verb, "group": group, "resource": resource, "subresource": sub}
        spec = {"user": self._user, "groups": self._groups, "resourceAttributes": about}
        about |= {key: value for key, value in (("namespace", namespace), ("name", name)) if value}
        answer = await self._api.create(_REVIEWS, {"spec": spec})
        return bool(answer["status"]["allowed"])


def account(api: Api, namespace: str, part: str) -> Asking:
    """Return who asks as the service account of a part."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return Asking(api, f"system:serviceaccount:{namespace}:gpubinder-{part}", groups)


def _plural(kind: k.Resource, sub: str) -> str:
    return f"{kind.plural}/{sub}" if sub else kind.plural


def _covers(rules: Iterable[Rule], verb: str, kind: k.Resource, sub: str) -> bool:
    return any(verb in rule.verbs and (kind, sub) in rule.on and not rule.only for rule in rules)


@pytest.mark.parametrize("part", sorted(RIGHTS))
async def test_a_part_may_do_what_it_needs_and_nothing_else(part: str, api: Api, granted: str) -> None:
    """Each verb on each kind, everywhere and at home, is allowed where the part's table says so, and nowhere else."""
    asking = account(api, granted, part)
    wrong: list[str] = []

    async def ask(verb: str, kind: k.Resource, sub: str) -> None:
        everywhere = _covers(RIGHTS[part].everywhere, verb, kind, sub)
        home = everywhere or (kind.namespaced and _covers(RIGHTS[part].home, verb, kind, sub))
        for place, wanted in (("", everywhere), *(((granted, home),) if kind.namespaced else ())):
            if await asking.may(verb, kind.group, _plural(kind, sub), namespace=place) != wanted:
                wrong.append(f"{verb} {_plural(kind, sub)} in {place or 'all'}: should be {wanted}")

    await asyncio.gather(*(ask(verb, kind, sub) for verb, (kind, sub) in product(VERBS, ASKED)))
    assert not wrong


async def test_what_does_most_harm_is_one_parts_alone(api: Api, granted: str) -> None:
    """No account but the one whose part it is may write pods, secrets, statuses, webhooks or rights."""
    groups = {kind.plural: kind.group for kind, _ in ASKED} | {"clusterroles": k.RBAC_GROUP}
    for plural, verb, allowed in NEVER:
        found = {
            part
            for part in RIGHTS
            if await account(api, granted, part).may(verb, groups[plural.partition("/")[0]], plural)
        }
        assert found == allowed, f"{verb} {plural}"


async def test_a_role_keeps_its_hands_off_what_is_anothers_at_home(api: Api, granted: str) -> None:
    """The anchor is the binder's and the installer's, a lease is its role's, and the settings are nobody's."""
    for part in RIGHTS:
        asking = account(api, granted, part)
        anchor = await asking.may("patch", "", "configmaps", namespace=granted, name=names.ANCHOR_CONFIGMAP)
        settings = await asking.may("patch", "", "configmaps", namespace=granted, name=names.SETTINGS_CONFIGMAP)
        assert anchor == (part in {Role.BINDER, INSTALLER}), part
        assert not settings, part
        for role in Role:
            lease = f"{names.LEASE_PREFIX}{role}"
            may = await asking.may("update", k.LEASE.group, k.LEASE.plural, namespace=granted, name=lease)
            assert may == (part == role and role is not Role.WEBHOOKS), (part, role)


PEOPLE = (
    ("view", "get", "gpuclaims", True),
    ("view", "list", "gpubudgets", True),
    ("view", "list", "workloads", True),
    ("view", "create", "gpuclaims", False),
    ("edit", "create", "gpuclaims", True),
    ("edit", "delete", "gpuclaims", True),
    ("edit", "patch", "gpuclaims/status", False),
    ("edit", "create", "gpubudgets", False),
    ("edit", "patch", "workloads", False),
    ("edit", "get", "gpuclasses", False),
    ("admin", "create", "gpuclaims", True),
    ("admin", "patch", "gpubudgets", False),
    ("admin", "patch", "gpuclaims/status", False),
    ("admin", "administer", "gpuclaims", False),
)


async def test_tenants_order_claims_and_see_budgets(api: Api, granted: str) -> None:
    """N4, B1: Kubernetes' own roles take in ours: a tenant orders and sees, and writes no status, budget or record."""
    for role in ("view", "edit", "admin"):
        ref = {"apiGroup": k.RBAC_GROUP, "kind": "ClusterRole", "name": role}
        subject = {"apiGroup": k.RBAC_GROUP, "kind": "User", "name": f"somebody-{role}"}
        body: Object = {"metadata": {"name": f"test-{role}"}, "roleRef": ref, "subjects": [subject]}
        await api.create(f"{_RBAC}/namespaces/{granted}/rolebindings", body)

    async def aggregated() -> bool:
        editor = Asking(api, "somebody-edit")
        return await editor.may("create", k.GROUP, "gpuclaims", namespace=granted)

    await eventually(aggregated, "Kubernetes' roles took in ours")
    for role, verb, plural, wanted in PEOPLE:
        assert await Asking(api, f"somebody-{role}").may(verb, k.GROUP, plural, namespace=granted) == wanted, (
            f"{role}: {verb} {plural}"
        )
