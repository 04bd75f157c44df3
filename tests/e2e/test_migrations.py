"""A live migration beside us: its target is the VM's own, goes where the scheduler says, and is counted once (C43)."""

from functools import partial

from deploy.world.virt_names import MIGRATION_FINALIZER, VMIM
from schemas.kinds import GPU_BUDGET, POD
from schemas.names import MIGRATION_LABEL
from tests.cluster.api import Object
from tests.cluster.nodes import L40S_24C
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.witness import gates, pinned_node

TOTAL = "gpus.cozystack.io"


async def migrate(program: Stack, name: str) -> Object:
    """Ask for a migration of vm1; return its target once it is there."""
    metadata = {"name": name, "finalizers": [MIGRATION_FINALIZER]}
    body = {"apiVersion": VMIM.api_version, "kind": VMIM.kind, "metadata": metadata, "spec": {"vmiName": "vm1"}}
    made = await program.api.create(VMIM.path(program.tenant), body)

    async def target() -> Object | None:
        uid = made["metadata"]["uid"]
        pods = await program.launchers("vm1")
        return next((pod for pod in pods if pod["metadata"]["labels"].get(MIGRATION_LABEL) == uid), None)

    found = await eventually(target, "the migration has a target")
    assert found is not None
    return found


async def uses(program: Stack, units: int) -> bool:
    """Say whether the tenant's budget counts so many units."""
    found = await program.api.get(GPU_BUDGET.path(program.tenant, "b"))
    return bool((found.get("status") or {}).get("used") == {TOTAL: units})


async def test_a_target_is_neither_gated_nor_pinned_and_counts_once(program: Stack) -> None:
    """C43, T25: cancelled, the target leaves nothing booked and the source as it was; carried out, the set moves along.

    The budget counts one unit all the while.
    """
    api, tenant = program.api, program.tenant
    await program.entitle()
    await program.gpu_class("l40s-24c", L40S_24C, "VGPU")
    await program.node("n1", {L40S_24C: 1})
    budget = {"apiVersion": GPU_BUDGET.api_version, "kind": GPU_BUDGET.kind, "metadata": {"name": "b"}}
    await api.create(GPU_BUDGET.path(tenant), budget | {"spec": {"hard": {TOTAL: 1}}})
    await program.vm("vm1", [("l40s-24c", 1)])
    assert await program.running("vm1") == "n1"
    [source] = await program.launchers("vm1")

    # There is no second node yet: the target stands, and is cancelled.
    target = await migrate(program, "cancelled")
    assert (gates(target), pinned_node(target)) == ([], "")
    await eventually(partial(uses, program, 1), "the VM is counted once beside its target")
    await api.delete(VMIM.path(tenant, "cancelled"))
    await api.until(POD.path(tenant, target["metadata"]["name"]), lambda found: found is None)
    assert await program.quiet() == {source["metadata"]["uid"]: "n1"}
    assert await program.bound("vm1") == ["n1"]
    assert await program.running("vm1") == "n1"

    await program.node("n2", {L40S_24C: 1})
    target = await migrate(program, "done")
    assert (gates(target), pinned_node(target)) == ([], "")
    await api.until(
        VMIM.path(tenant, "done"), lambda found: (found or {}).get("status", {}).get("phase") == "Succeeded"
    )
    await eventually(partial(uses, program, 1), "the VM is counted once on two nodes")
    assert await program.bound("vm1") == ["n1"]
    await api.delete(POD.path(tenant, source["metadata"]["name"]), gracePeriodSeconds="0")

    async def moved() -> bool:
        return await program.bound("vm1") == ["n2"]

    await eventually(moved, "the set is where the VM is")
    await eventually(partial(uses, program, 1), "the VM is counted once where it is now")
    assert await program.running("vm1") == "n2"
    # What the source had is free for others.
    await api.patch(GPU_BUDGET.path(tenant, "b"), {"spec": {"hard": {TOTAL: 2}}})
    await program.vm("vm2", [("l40s-24c", 1)])
    assert await program.running("vm2") == "n1"
    await program.verified()
