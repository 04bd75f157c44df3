"""Two tenants, one above the other, and what they write: VMs, pools, orders, and what is said against them."""

import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from schemas.admission import CONFIGURATION_NAME, VALIDATING_CONFIGURATION
from schemas.kinds import CONFIGMAP, GPU_BUDGET, GPU_CLAIM, NAMESPACE, POD, VM, VM_POOL, VMI, VMI_REPLICA_SET
from schemas.names import BUDGET_CLASS_PREFIX, SETTING_CONTROLLERS, SETTINGS_CONFIGMAP
from tests.cluster.api import Api, Object, Refused
from tests.cluster.nodes import L40S, L40S_24C
from tests.cluster.users import GPUBINDER
from tests.e2e.stack import Stack
from tests.e2e.tenant import SECONDS, Tenant, eventually, vm_body
from webhooks.registration import validating

ORDERS = "orders.gpubinder.cozystack.io"


class Tenants:
    """A tenant and a child of it, and the doors between them and what they write."""

    def __init__(self, stack: Stack, name: str) -> None:
        self.stack, self.api = stack, stack.api
        self.parent = Tenant(stack.api, stack.nodes, name)
        self.child = Tenant(stack.api, stack.nodes, f"{name}-b")

    async def budget(self, **hard: int) -> None:
        """Let the parent's budget be this, and wait until the binder has counted it."""
        path = GPU_BUDGET.path(self.parent.tenant)
        spec = {"hard": {f"{BUDGET_CLASS_PREFIX}{name}": units for name, units in hard.items()}}
        body = {"apiVersion": GPU_BUDGET.api_version, "kind": GPU_BUDGET.kind, "metadata": {"name": "b"}, "spec": spec}
        if await self.api.find(f"{path}/b") is None:
            await self.api.create(path, body)
        else:
            await self.api.patch(f"{path}/b", {"spec": spec})
        usage = ", ".join(f"/{units}" for units in hard.values())
        await self.api.until(f"{path}/b", lambda found: usage in _usage(found), SECONDS)

    async def declares(self, units: int) -> None:
        """Wait until so many units are declared below the parent: a write is answered by what was seen until then."""
        body = vm_body("probe", [("l40s", 64)])
        path = VM.path(self.child.tenant)

        async def said() -> bool:
            return f", {units} are declared, 64 more" in await refusal(self.api.create(path, body, dryRun="All"))

        await eventually(said, f"{units} units are declared")

    def over(self, kind: str, hard: int, used: int, asked: int) -> str:
        """Return how a refusal of the parent's budget begins, as kubectl shows it."""
        key = f"{BUDGET_CLASS_PREFIX}l40s"
        return (
            f'admission webhook "{kind}.budgets.gpubinder.cozystack.io" denied the request: budget of '
            f"{self.parent.tenant}: {key} is limited to {hard}, {used} are declared, {asked} more are asked"
        )


def _usage(found: Object | None) -> str:
    return str(((found or {}).get("status") or {}).get("usage", ""))


async def refusal(write: Awaitable[object]) -> str:
    """Return what the server says against a write, '' where it takes it."""
    try:
        await write
    except Refused as refused:
        return str(refused.status["message"])
    return ""


async def guard(stack: Stack) -> None:
    """Register all validating webhooks, and say who writes claims of templates."""
    settings = {"metadata": {"name": SETTINGS_CONFIGMAP}, "data": {SETTING_CONTROLLERS: GPUBINDER.name}}
    await stack.api.create(CONFIGMAP.path(stack.system), settings)
    at = f"https://127.0.0.1:{stack.processes.port}"
    hooks = validating(at, stack.plane.authority.pem, stack.system)
    await stack.api.delete(VALIDATING_CONFIGURATION.path(name=CONFIGURATION_NAME))
    await stack.api.create(VALIDATING_CONFIGURATION.path(), hooks)


@asynccontextmanager
async def two_tenants(parts: Stack) -> AsyncIterator[Tenants]:
    """Our roles apart, webhooks of every sort registered, two tenants, a class and a node with four units."""
    here = Tenants(parts, f"tenant-x{secrets.token_hex(4)}")
    api, spaces = parts.api, [here.parent.tenant, here.child.tenant]
    for name in spaces:
        await api.create(NAMESPACE.path(), {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        await api.until(account, lambda found: found is not None)
    await guard(parts)
    try:
        await parts.apart()
        await parts.gpu_class("l40s", L40S, maxCount=4)
        await parts.node("n1", {L40S: 4, L40S_24C: 2})
        await eventually(lambda: _is_asked(here), "orders are asked about")
        yield here
        for name in spaces:
            await _cleared(api, name)
    finally:
        for name in reversed(spaces):
            await api.delete(NAMESPACE.path(name=name))
            await api.until(NAMESPACE.path(name=name), lambda found: found is None, SECONDS)


async def _cleared(api: Api, namespace: str) -> None:
    """Have a namespace end with nothing in it: of one with pods its controller looks again after 16 s."""
    kinds = (VM_POOL, VMI_REPLICA_SET, VM, VMI, GPU_CLAIM, POD)
    for kind in kinds:
        await api.delete(kind.path(namespace))
    for kind in kinds:
        await api.until(kind.path(namespace), lambda found: found is not None and not found["items"], SECONDS)


async def _is_asked(here: Tenants) -> bool:
    return ORDERS in await refusal(here.api.create(GPU_CLAIM.path(here.child.tenant), claim("x", "none"), dryRun="All"))


def claim(name: str, gpu_class: str, count: int = 1, **labels: str) -> Object:
    """Return an order."""
    spec = {"className": gpu_class, "count": count}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind, "metadata": metadata, "spec": spec}


def scaled(kind: str, name: str, replicas: int, units: int) -> Object:
    """Return a pool or a replica set."""
    template = vm_body("x", [("l40s", units)])["spec"]["template"]
    selector = {"matchLabels": {"of": name}}
    template["metadata"]["labels"]["of"] = name
    if kind == VM_POOL.kind:
        made = {"metadata": {"labels": {"of": name}}, "spec": {"runStrategy": "Halted", "template": template}}
        spec: Object = {"replicas": replicas, "selector": selector, "virtualMachineTemplate": made}
        return {"apiVersion": VM_POOL.api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    spec = {"replicas": replicas, "selector": selector, "template": template, "paused": True}
    return {"apiVersion": VMI_REPLICA_SET.api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
