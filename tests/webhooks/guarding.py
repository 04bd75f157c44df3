"""Policies on a real API server: installed for a test, and people of every kind who write under them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from binder.kube_client import KubeClient
from deploy.standing_rules import install_policies
from schemas.admission import POLICY, POLICY_BINDING
from schemas.names import SETTINGS_CONFIGMAP
from tests.binder.waiting import eventually
from tests.cluster.api import Api, Object, Refused
from tests.cluster.controlplane import ControlPlane
from tests.cluster.users import GPUBINDER
from tests.cluster.users import KUBEVIRT as KUBEVIRT_USER
from webhooks.policies import policy_objects

SECONDS = 120.0
TENANT = "alice@example.org"
BUDGETS = "gpubudgets.cozystack.io"
BUDGET_KIND: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": BUDGETS},
    "spec": {
        "group": "cozystack.io",
        "scope": "Namespaced",
        "names": {"kind": "GPUBudget", "listKind": "GPUBudgetList", "plural": "gpubudgets", "singular": "gpubudget"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


KEEPER = "keeps-settings-watched.example.org"


class Guarded:
    """An API server with policies. `tenant` may do everything in one namespace, `ours` is the program itself."""

    def __init__(self, admin: Api, system: str, namespace: str) -> None:
        self.admin, self.system, self.namespace = admin, system, namespace
        self.tenant: Api
        self.ours: Api
        self.kubevirt: Api
        self.collector: Api
        self.ender: Api


@asynccontextmanager
async def guarded(control_plane: ControlPlane, api: Api, namespace: str) -> AsyncIterator[Guarded]:
    """Install the policies as our own user does, for the length of a test."""
    system = f"{namespace}-system"
    await api.create("/api/v1/namespaces", {"metadata": {"name": system}})
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    if await api.find(f"{crds}/{BUDGETS}") is None:
        await api.create(crds, BUDGET_KIND)
    await api.create(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
        {
            "metadata": {"name": "tenant"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": TENANT}],
        },
    )
    kube = await KubeClient.connect(kubeconfig=str(control_plane.kubeconfig(GPUBINDER)))
    here = Guarded(api, system, namespace)
    try:
        async with AsyncExitStack() as stack:
            own, admin = control_plane.kubeconfig, control_plane.kubeconfig()
            here.ours = await stack.enter_async_context(Api(own(GPUBINDER)))
            here.kubevirt = await stack.enter_async_context(Api(own(KUBEVIRT_USER)))
            here.tenant = await stack.enter_async_context(Api(admin, posing_as=TENANT))
            for field, account in (("collector", "generic-garbage-collector"), ("ender", "namespace-controller")):
                name = f"system:serviceaccount:kube-system:{account}"
                groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
                setattr(here, field, await stack.enter_async_context(Api(admin, posing_as=name, groups=groups)))
            await keep_settings_watched(api)
            await install_policies(kube, system)
            await _heard(here)
            yield here
    finally:
        await remove_policies(api)
        await kube.close()
        await api.delete(f"/api/v1/namespaces/{system}")


async def _heard(here: Guarded) -> None:
    """Wait until all that was installed is asked, with the settings it asks for.

    An API server hears of policies in the order they were written; the parameters have a watch of their own.
    """
    last = "came-last.example.org"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule | {"resourceNames": [last]}]},
        "validations": [{"expression": "false", "message": "heard of", "reason": "Forbidden"}],
    }
    param = {"name": SETTINGS_CONFIGMAP, "namespace": here.system, "parameterNotFoundAction": "Deny"}
    await here.admin.create(POLICY.path(), {"metadata": {"name": last}, "spec": spec})
    bound = {"policyName": last, "validationActions": ["Deny"], "paramRef": param}
    await here.admin.create(POLICY_BINDING.path(), {"metadata": {"name": last}, "spec": bound})
    path, body = f"/api/v1/namespaces/{here.namespace}/configmaps", {"metadata": {"name": last}}

    async def asked() -> bool:
        try:
            await here.tenant.create(path, body, dryRun="All")
        except Refused as refused:
            return "heard of" in refused.status["message"]
        return False

    await eventually(asked, "the last policy says no")
    for kind in (POLICY_BINDING, POLICY):
        await here.admin.delete(kind.path(name=last))


async def keep_settings_watched(api: Api) -> None:
    """Leave one policy that is asked about nothing: an API server never reads parameters again after its last one.

    Tried on 1.36: its watch of ConfigMaps ends with the last policy that has one as parameter, and is not begun
    again before the server restarts.
    """
    if await api.find(POLICY.path(name=KEEPER)) is not None:
        return
    rule = {"apiGroups": ["example.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "true"}],
    }
    param = {"name": "none", "namespace": "default", "parameterNotFoundAction": "Allow"}
    await api.create(POLICY.path(), {"metadata": {"name": KEEPER}, "spec": spec})
    bound = {"policyName": KEEPER, "validationActions": ["Deny"], "paramRef": param}
    await api.create(POLICY_BINDING.path(), {"metadata": {"name": KEEPER}, "spec": bound})


async def remove_policies(api: Api) -> None:
    """Take policies and bindings away again."""
    await keep_settings_watched(api)
    for body in policy_objects("any"):
        kind = POLICY if body["kind"] == POLICY.kind else POLICY_BINDING
        path = kind.path(name=body["metadata"]["name"])
        if await api.find(path) is not None:
            await api.delete(path)


async def denied(attempt: Callable[[], Awaitable[object]]) -> str:
    """Try until a policy refuses it (they take a moment to be heard of), and return what kubectl would show."""
    async with asyncio.timeout(SECONDS):
        while True:
            status = await _refusal(attempt)
            if "ValidatingAdmissionPolicy" in status.get("message", ""):
                assert (status["code"], status["reason"]) == (403, "Forbidden")
                return str(status["message"])
            await asyncio.sleep(0.1)


async def _refusal(attempt: Callable[[], Awaitable[object]]) -> Object:
    try:
        await attempt()
    except Refused as refused:
        # A kind that is new is not served at once.
        if refused.code not in {403, 404}:
            raise
        return refused.status
    return {}
