"""Budgets at writing and orders, on a real API server through real webhook configurations: who is told what."""

import asyncio
import json

import pytest

from schemas.kinds import GPU_CLAIM, VM, VM_POOL, VMI, VMI_REPLICA_SET
from schemas.names import BUDGET_CLASS_PREFIX, TEMPLATE_LABEL
from tests.cluster.api import Object
from tests.cluster.nodes import L40S, L40S_24C
from tests.e2e.tenant import SECONDS, eventually, vm_body
from tests.e2e.tenants import ORDERS, Tenants, claim, refusal, scaled


async def test_b2_a_vm_beyond_a_budget_is_refused_where_it_is_written(tenants: Tenants) -> None:
    """B2, T20, C28: an ancestor's budget, by name and numbers; never a decrease, another change, or what goes."""
    api, child, vms = tenants.api, tenants.child, VM.path(tenants.child.tenant)
    await tenants.budget(l40s=3)
    vm = vm_body("vm1", [("l40s", 2)]) | {"metadata": {"name": "vm1", "finalizers": ["example.org/held"]}}
    vm["spec"]["runStrategy"] = "Halted"
    await api.create(vms, vm)
    await tenants.declares(2)

    over = tenants.over("virtualmachines", 3, 2, 2)
    assert (await refusal(child.vm("vm2", [("l40s", 2)]))).startswith(over)
    assert (await refusal(api.create(vms, vm_body("vm2", [("l40s", 2)]), dryRun="All"))).startswith(over)
    more = _entries(4)
    assert (await refusal(api.patch(f"{vms}/vm1", more))).startswith(tenants.over("virtualmachines", 3, 2, 2))
    assert not await refusal(api.patch(f"{vms}/vm1", _entries(3)))
    await tenants.declares(3)

    await tenants.budget(l40s=1)
    memory = {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "2Gi"}}}}}}
    for change in (memory, {"metadata": {"labels": {"a": "b"}}}, {"spec": {"runStrategy": "Manual"}}, _entries(2)):
        assert not await refusal(api.patch(f"{vms}/vm1", change))
    await tenants.declares(2)
    assert not await refusal(api.delete(f"{vms}/vm1"))
    assert (await api.get(f"{vms}/vm1"))["metadata"]["deletionTimestamp"]
    assert not await refusal(api.patch(f"{vms}/vm1", _entries(4)))
    assert not await refusal(api.patch(f"{vms}/vm1", {"metadata": {"finalizers": None}}))
    await api.until(f"{vms}/vm1", lambda found: found is None, SECONDS)
    await tenants.declares(0)


def _entries(count: int) -> Object:
    gpus = json.dumps([{"className": "l40s", "count": count}])
    return {"spec": {"template": {"metadata": {"annotations": {"cozystack.io/gpus": gpus}}}}}


async def test_b2_pools_replica_sets_and_their_scale_are_counted_by_replicas(tenants: Tenants) -> None:
    """B2, T20: created, edited, or scaled through `/scale`, whose review shows neither template nor labels."""
    api, child = tenants.api, tenants.child.tenant
    await tenants.budget(l40s=3)
    for kind in (VM_POOL, VMI_REPLICA_SET):
        path = kind.path(child)
        over = tenants.over(kind.plural, 3, 0, 4)
        assert (await refusal(api.create(path, scaled(kind.kind, "many", 4, 1)))).startswith(over)
        await api.create(path, scaled(kind.kind, "few", 2, 1))
        await tenants.declares(2)
        over = tenants.over(f"{kind.plural}-scale", 3, 2, 2)
        assert (await refusal(api.patch(f"{path}/few/scale", {"spec": {"replicas": 4}}))).startswith(over)
        over = tenants.over(kind.plural, 3, 2, 2)
        assert (await refusal(api.patch(f"{path}/few", {"spec": {"replicas": 4}}))).startswith(over)
        assert not await refusal(api.patch(f"{path}/few/scale", {"spec": {"replicas": 3}}))
        await tenants.declares(3)
        assert not await refusal(api.patch(f"{path}/few/scale", {"spec": {"replicas": 1}}))
        await api.delete(f"{path}/few")
        await tenants.declares(0)
    bare = {"apiVersion": VMI.api_version, "kind": VMI.kind, "metadata": {"name": "bare"}}
    template = vm_body("x", [("l40s", 4)])["spec"]["template"]
    bare |= {"metadata": {"name": "bare", **template["metadata"]}, "spec": template["spec"]}
    said = await refusal(api.create(VMI.path(child), bare))
    assert said.startswith(tenants.over("virtualmachineinstances", 3, 0, 4))


async def test_a_vm_at_its_budget_starts_and_its_vmi_is_not_counted_again(tenants: Tenants) -> None:
    """B2: what KubeVirt starts for a VM that was asked about is not asked about again, nor counted beside it."""
    await tenants.budget(l40s=2)
    await tenants.child.vm("vm1", [("l40s", 2)])
    assert await tenants.child.running("vm1") == "n1"
    await tenants.declares(2)


async def test_o1_orders_are_refused_with_the_numbers(tenants: Tenants) -> None:
    """O1, A5: each refusal as kubectl shows it; a template's mark is ours alone; nothing stands in a deletion's way."""
    api, path = tenants.api, GPU_CLAIM.path(tenants.child.tenant)
    await tenants.stack.gpu_class("slice", L40S_24C, "VGPU", maxCount=2)
    denied = f'admission webhook "{ORDERS}" denied the request: '

    async def said(order: Object, begins: str) -> None:
        found = await refusal(api.create(path, order))
        assert found.startswith(denied + begins), found

    await said(claim("a", "ghost"), 'the GPU class "ghost" does not exist: choose one that')
    await said(
        claim("a", "l40s", 5), '5 units of the GPU class "l40s" are asked, of which one claim can have 4 at most'
    )
    entitled = f"which namespace {tenants.child.tenant} may not have: its label cozystack.io/vgpu is not"
    await said(claim("a", "slice"), f'the GPU class "slice" is asked for, a class of vGPUs, {entitled}')
    await said(claim("a", "l40s", 1, **{TEMPLATE_LABEL: "true"}), f"the label {TEMPLATE_LABEL} marks claims that")
    await tenants.child.order("a", "l40s", 3)
    await tenants.child.held("a", "Bound")
    await said(claim("b", "l40s", 2), '2 units of the GPU class "l40s" are asked, 1 are free now')
    await tenants.budget(l40s=3)
    key = f"{BUDGET_CLASS_PREFIX}l40s is limited to 3, 3 are declared, 1 more are asked"
    await said(claim("b", "l40s"), f"budget of {tenants.parent.tenant}: {key}")
    found = await refusal(api.create(path, claim("b", "l40s"), dryRun="All"))
    assert key in found
    await api.delete(f"{path}/a")
    await api.until(f"{path}/a", lambda found: found is None, SECONDS)


async def test_c21_fifty_orders_for_the_last_unit_bind_one(tenants: Tenants) -> None:
    """O1, C21: whatever passes at the same moment, no more is bound than there is."""
    await tenants.child.order("first", "l40s", 3)
    await tenants.child.held("first", "Bound")
    path = GPU_CLAIM.path(tenants.child.tenant)

    said = await asyncio.gather(*(refusal(tenants.api.create(path, claim(f"o{n}", "l40s"))) for n in range(50)))

    assert any(not one for one in said)
    assert all("are free now" in one for one in said if one)

    async def settled() -> list[str]:
        phases = [(one.get("status") or {}).get("phase", "") for one in await tenants.child.claims()]
        return phases if "" not in phases else []

    phases = await eventually(settled, "every claim shows a phase")
    assert phases.count("Bound") == 2
    assert phases.count("Pending") == said.count("") - 1


async def test_a5_a_vgpu_needs_its_namespaces_entitlement(tenants: Tenants) -> None:
    """A5: a VM of a vGPU class starts once its namespace has the label, and not before."""
    stack, vmis = tenants.stack, VMI.path(tenants.stack.tenant)
    await stack.gpu_class("slice", L40S_24C, "VGPU", maxCount=2)
    template = vm_body("x", [("slice", 1)])["spec"]["template"]
    body = {"apiVersion": VMI.api_version, "kind": VMI.kind, "spec": template["spec"]}
    body |= {"metadata": {"name": "bare", **template["metadata"]}}

    said = await refusal(stack.api.create(vmis, body))

    assert 'names the GPU class "slice" in entry 0, a class of vGPUs, which namespace' in said
    await stack.entitle()
    await stack.vm("vm1", [("slice", 1)])
    assert await stack.running("vm1") == "n1"


@pytest.mark.parametrize("dead", ["webhooks", "binder"])
async def test_t20_writes_pass_and_orders_do_not_while_nobody_answers(tenants: Tenants, dead: str) -> None:
    """T20: without webhooks or binder a VM is written unchecked, an order is refused; what binds is checked again."""
    await tenants.budget(l40s=1)
    await asyncio.to_thread(tenants.stack.processes.children[dead].kill)

    await tenants.child.vm("vm1", [("l40s", 2)])

    async def told() -> bool:
        said = await refusal(tenants.child.order("a", "l40s"))
        assert ORDERS in said
        # On a busy machine the API server may give up two seconds after our own refusal was due.
        return ("failed calling webhook" in said) is (dead == "webhooks")

    await eventually(told, "the order is refused by whoever is there")
    await tenants.stack.processes.revive(dead)
    assert "allows 1 unit of" in await tenants.child.waiting("vm1", "OverBudget")


async def test_what_names_no_class_is_none_of_our_business(tenants: Tenants) -> None:
    """T20, C24: VMs and pools without entries are written as ever, with a GPU of their own too; nobody is asked."""
    api, child = tenants.api, tenants.child.tenant
    await tenants.budget(l40s=0)
    raw = vm_body("raw", [])
    raw["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
    raw["spec"]["template"]["spec"]["domain"]["devices"]["gpus"] = [{"name": "gpu1", "deviceName": L40S}]
    pool = scaled(VM_POOL.kind, "pool", 3, 1)
    pool["spec"]["virtualMachineTemplate"]["spec"]["template"].pop("metadata")
    await asyncio.to_thread(tenants.stack.processes.children["webhooks"].kill)

    for path, body in ((VM.path(child), raw), (VM_POOL.path(child), pool)):
        assert not await refusal(api.create(path, body))
    assert not await refusal(api.patch(f"{VM_POOL.path(child)}/pool/scale", {"spec": {"replicas": 1}}))
    await tenants.stack.processes.revive("webhooks")
