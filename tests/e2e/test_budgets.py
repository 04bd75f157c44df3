"""Budgets, end to end: a tree of tenants on a real server, its parents' limits, and releases that Flux serves."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest_asyncio
import yaml

from schemas.kinds import CRD, GPU_BUDGET, GPU_CLAIM, HELM_RELEASE, NAMESPACE
from schemas.names import APPLICATION_KIND_LABEL, MIRRORED_BUDGET
from schemas.streams import EVENTS
from tests.cluster.api import JSON_PATCH, Api, Object, Refused
from tests.cluster.nodes import H100, L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import SECONDS, Tenant, eventually

PAGE = (Path(__file__).parents[2] / "docs/budgets.md").read_text("utf-8")
CLASS, TOTAL = "gpus.cozystack.io/l40s", "gpus.cozystack.io"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
NAMES = {"kind": HELM_RELEASE.kind, "plural": HELM_RELEASE.plural, "singular": "helmrelease"}
RELEASES_NAME = f"{HELM_RELEASE.plural}.{HELM_RELEASE.group}"
RELEASES = {
    "apiVersion": CRD.api_version,
    "kind": CRD.kind,
    "metadata": {"name": RELEASES_NAME},
    "spec": {
        "group": HELM_RELEASE.group,
        "scope": "Namespaced",
        "names": NAMES,
        "versions": [
            {
                "name": HELM_RELEASE.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}},
            }
        ],
    },
}


class Family:
    """A tenant and a child of it, with a node and a class for both."""

    def __init__(self, program: Stack, name: str) -> None:
        self.api: Api = program.api
        self.parent = Tenant(program.api, program.nodes, name)
        self.child = Tenant(program.api, program.nodes, f"{name}-b")

    async def budget(self, tenant: Tenant, total: int | None = None, **hard: int) -> None:
        """Give a tenant a budget, of classes and of all of them together."""
        body = {"apiVersion": GPU_BUDGET.api_version, "kind": GPU_BUDGET.kind, "metadata": {"name": "b"}}
        whole = {} if total is None else {TOTAL: total}
        spec = {"hard": whole | {f"gpus.cozystack.io/{key}": units for key, units in hard.items()}}
        await self.api.create(GPU_BUDGET.path(tenant.tenant), body | {"spec": spec})

    async def shows(self, tenant: Tenant, usage: str, bound_by: str, name: str = "b") -> Object:
        """Wait until a budget shows this use and who binds; return it."""

        def is_so(budget: Object | None) -> bool:
            status = (budget or {}).get("status") or {}
            return (status.get("usage"), status.get("boundBy")) == (usage, bound_by)

        found = await self.api.until(GPU_BUDGET.path(tenant.tenant, name), is_so, SECONDS)
        assert found is not None
        return found

    async def release(self, quotas: object) -> None:
        """Write the child's HelmRelease, as cozystack does."""
        path = HELM_RELEASE.path(self.parent.tenant)
        spec = {"interval": "5m", "values": {"password": "hunter2", "resourceQuotas": quotas}}
        metadata = {"name": "tenant-b", "labels": {APPLICATION_KIND_LABEL: "Tenant"}}
        body = {"apiVersion": HELM_RELEASE.api_version, "kind": HELM_RELEASE.kind, "metadata": metadata, "spec": spec}
        if await self.api.find(f"{path}/tenant-b") is None:
            await self.api.create(path, body)
        else:
            put = [{"op": "add", "path": "/spec", "value": spec}]
            await self.api.patch(f"{path}/tenant-b", put, content=JSON_PATCH)

    async def mirrored(self, hard: Object | None) -> None:
        """Wait until the child's mirror allows this, or is gone."""
        path = GPU_BUDGET.path(self.child.tenant, MIRRORED_BUDGET)
        await self.api.until(path, lambda found: (found["spec"]["hard"] if found else None) == hard, SECONDS)


@pytest_asyncio.fixture
async def family(program: Stack) -> AsyncIterator[Family]:
    """Two tenants of the test's own; their namespaces go afterwards."""
    # What binds is what is tested here: nobody refuses it where it is written.
    await program.unasked()
    family = Family(program, f"tenant-x{secrets.token_hex(4)}")
    spaces = [family.parent.tenant, family.child.tenant]
    for name in spaces:
        await program.api.create(NAMESPACE.path(), {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        await program.api.until(account, lambda found: found is not None)
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 4})
    yield family
    for name in reversed(spaces):
        await program.api.delete(NAMESPACE.path(name=name))
        await program.api.until(NAMESPACE.path(name=name), lambda found: found is None, SECONDS)


async def test_b3_a_parents_budget_binds_its_children(program: Stack, family: Family) -> None:
    """B3, C28: a child uses up its parent's budget; the next VM waits, hears whose it is, and starts when raised."""
    parent, child = family.parent, family.child
    await family.budget(parent, l40s=1)
    await family.budget(child, l40s=3)
    await family.shows(parent, "l40s 0/1", "itself")
    await child.vm("vm1", [("l40s", 1)])
    await child.running("vm1")
    await family.shows(parent, "l40s 1/1", "itself")
    shown = await family.shows(child, "l40s 1/3", f"{parent.tenant}: l40s 1/1")
    assert shown["status"]["used"] == {CLASS: 1}

    await child.vm("vm2", [("l40s", 1)])
    message = await child.waiting("vm2", "OverBudget")
    assert message.startswith(f"budget {parent.tenant}/b allows 1 unit of {CLASS}, 1 is held by {parent.tenant}")
    assert len(await child.gated("vm2")) == 1
    [event] = await child.events("OverBudget")
    assert event["regarding"]["name"] == "vm2"

    await program.api.patch(GPU_BUDGET.path(parent.tenant, "b"), {"spec": {"hard": {CLASS: 2}}})
    await child.running("vm2")
    await family.shows(parent, "l40s 2/2", "itself")
    # Lowered, it takes nothing; what ends is not replaced.
    await program.api.patch(GPU_BUDGET.path(parent.tenant, "b"), {"spec": {"hard": {CLASS: 0}}})
    await family.shows(parent, "l40s 2/0", "itself")
    await child.delete("vm1")
    await family.shows(parent, "l40s 1/0", "itself")
    await child.running("vm2")


async def test_budgets_are_a_table_that_answers(program: Stack, family: Family) -> None:
    """`kubectl get gpubudgets` of a real server says used of allowed units and who binds."""
    await family.budget(family.parent, l40s=2)
    await family.budget(family.child, l40s=9)
    await family.child.vm("vm1", [("l40s", 2)])
    await family.child.running("vm1")
    await family.shows(family.child, "l40s 2/9", f"{family.parent.tenant}: l40s 2/2")
    shown = await table(program.api, family.child)

    assert [column["name"] for column in shown["columnDefinitions"]] == ["Name", "Used", "Declared", "Binds", "Age"]
    assert shown["rows"][0]["cells"][:4] == ["b", "l40s 2/9", "l40s 2/9", f"{family.parent.tenant}: l40s 2/2"]


async def table(api: Api, tenant: Tenant) -> Object:
    """Return what `kubectl get gpubudgets` prints: the server makes the table."""
    session = api._session  # noqa: SLF001 - only the table is asked for in another media type
    assert isinstance(session, aiohttp.ClientSession)
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with session.get(GPU_BUDGET.path(tenant.tenant), headers=accept) as answer:
        shown: Object = await answer.json(content_type=None)
        return shown


async def test_the_page_on_budgets_is_followed_word_for_word(program: Stack, family: Family) -> None:
    """`docs/budgets.md`: its manifest is taken as it stands, and its table is what the server shows of its example."""
    manifest, *others = PAGE.split("```")[1::2]
    shown = next(one for one in others if "get gpubudgets" in one)
    parent, child = family.parent, family.child
    body = yaml.safe_load(manifest)
    # The page's own manifest, taken by the server for a tenant; then the budgets of its example.
    await family.api.create(GPU_BUDGET.path(child.tenant), body | {"metadata": {"name": "gpus"}})
    limits = {CLASS: 3, "gpus.cozystack.io": 4}
    await family.api.replace(
        GPU_BUDGET.path(child.tenant, "gpus"), await edited(family.api, GPU_BUDGET.path(child.tenant, "gpus"), limits)
    )
    await family.budget(parent, l40s=4)
    await parent.vm("own", [("l40s", 3)])
    await child.vm("vm", [("l40s", 1)])
    await parent.running("own")
    await child.running("vm")

    head, row = (re.split(r"  +", line.strip()) for line in shown.strip().splitlines()[1:])
    told = row[3].replace("tenant-a", parent.tenant)
    await family.shows(child, row[1], told, "gpus")
    answer = await table(program.api, child)
    assert [column["name"].upper() for column in answer["columnDefinitions"]] == head
    assert answer["rows"][0]["cells"][:4] == ["gpus", row[1], row[2], told]


async def edited(api: Api, path: str, hard: Object) -> Object:
    """Return a budget as it stands, with other limits."""
    return await api.get(path) | {"spec": {"hard": hard}}


async def test_what_meets_at_a_parents_budget_waits_and_says_so(program: Stack, family: Family) -> None:
    """B3, C27: at one moment in two children, for the last unit of the parent's: one has it, the other waits for it.

    A budget of the child's own and another class are no help. So it is with a VM that asks for all there is.
    """
    api, parent, child = program.api, family.parent, family.child
    other = Tenant(api, program.nodes, f"{parent.tenant}-c")
    await api.create(NAMESPACE.path(), {"metadata": {"name": other.tenant}})
    await program.gpu_class("h100", H100)
    await program.node("n2", {H100: 8})
    await family.budget(child, l40s=5)
    await family.budget(parent, 1)
    await api.until(GPU_BUDGET.path(parent.tenant, "b"), lambda found: bool((found or {}).get("status")), SECONDS)

    async def bound() -> list[Tenant]:
        claims = [(one, claim) for one in (child, other) for claim in await one.claims()]
        return [one for one, claim in claims if (claim.get("status") or {}).get("phase") == "Bound"]

    await asyncio.gather(child.order("one", "l40s"), other.order("one", "h100"))
    [first] = await eventually(bound, "one of the orders is bound")
    second = other if first is child else child
    waits = await second.held("one", "Pending", "OverBudget")
    assert await bound() == [first]
    [told] = [one["message"] for one in waits["conditions"] if one["reason"] == "OverBudget"]
    assert told.startswith(f"budget {parent.tenant}/b allows 1 GPU unit of all classes, 1 is held by {parent.tenant}")
    await api.delete(GPU_CLAIM.path(first.tenant, "one"))
    await second.held("one", "Bound")
    await api.delete(GPU_CLAIM.path(second.tenant, "one"))

    await api.patch(GPU_BUDGET.path(parent.tenant, "b"), {"spec": {"hard": {TOTAL: 2}}})
    await asyncio.gather(child.vm("vm", [("l40s", 2)]), other.order("two", "h100"))
    [first] = await eventually(bound, "the VM or the order has its units")
    if first is other:
        assert "allows 2 GPU units of all classes" in await child.waiting("vm", "OverBudget")
        await api.delete(GPU_CLAIM.path(other.tenant, "two"))
        assert await child.running("vm") == "n1"
    else:
        await other.held("two", "Pending", "OverBudget")
        await child.delete("vm")
        await other.held("two", "Bound")
    await api.delete(NAMESPACE.path(name=other.tenant))
    await api.until(NAMESPACE.path(name=other.tenant), lambda found: found is None, SECONDS)


async def test_b1_flux_releases_are_mirrored_where_flux_is_served(program: Stack, family: Family) -> None:
    """B1, D12: quotas bind as soon as Flux is there, unreadable ones as last known; nothing else gets out (T16)."""
    child, api = family.child, program.api
    await child.vm("vm1", [("l40s", 1)])
    await child.running("vm1")
    await api.create(CRD.path(), RELEASES)
    try:
        await eventually(lambda: _are_served(api), "HelmReleases are served")
        await family.release({"cpu": "8", CLASS: "1"})
        await family.mirrored({CLASS: 1})
        await family.shows(child, "l40s 1/1", "itself", MIRRORED_BUDGET)
        await child.vm("vm2", [("l40s", 1)])
        await child.waiting("vm2", "OverBudget")
        await family.release({CLASS: "many", "gpus.cozystack.io": 9})
        await family.mirrored({CLASS: 1, "gpus.cozystack.io": 9})
        await api.patch(GPU_BUDGET.path(child.tenant, MIRRORED_BUDGET), {"spec": {"hard": {CLASS: 7}}})
        await family.mirrored({CLASS: 1, "gpus.cozystack.io": 9})
        assert len(await child.gated("vm2")) == 1
        await family.release({CLASS: 2})
        await child.running("vm2")
        await family.release({"cpu": "8"})
        await family.mirrored(None)
        assert "hunter2" not in await _all_events(program)
    finally:
        await api.delete(CRD.path(name=RELEASES_NAME))
        await api.until(CRD.path(name=RELEASES_NAME), lambda found: found is None, SECONDS)


async def _are_served(api: Api) -> bool:
    """Say whether releases can be listed: while a kind is being set up, the server answers with a page or 429."""
    with suppress(ValueError, Refused):
        await api.get(HELM_RELEASE.path())
        return True
    return False


async def _all_events(program: Stack) -> str:
    """Return everything that stands on EVENTS."""
    found = []
    journal = program.journal
    last = (await journal.info(EVENTS)).last
    async for run in journal.read(EVENTS, 1, until=last):
        found += [message.body.decode(errors="replace") for message in run]
    return json.dumps(found)
