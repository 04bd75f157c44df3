"""Who names an owner, and who takes it off again, on a real API server: what is declared is asked about (B2)."""

from schemas.kinds import VM, VM_POOL, VMI, VMI_REPLICA_SET
from tests.e2e.tenant import vm_body
from tests.e2e.tenants import Tenants, refusal, scaled


async def test_b2_who_takes_an_owner_off_is_asked(tenants: Tenants) -> None:
    """B2: a pool's VM, a replica set's VMI, made to count by themselves beside what goes on to declare them."""
    api, child = tenants.api, tenants.child.tenant
    await tenants.budget(l40s=5)
    one = vm_body("vm", [("l40s", 2)])
    one["spec"]["runStrategy"] = "Halted"
    template = one["spec"]["template"]
    bare = {"apiVersion": VMI.api_version, "kind": VMI.kind, "spec": template["spec"]}
    bare |= {"metadata": {"name": "vmi", **template["metadata"]}}
    for owner, made, body in ((VM_POOL, VM, one), (VMI_REPLICA_SET, VMI, bare)):
        path = made.path(child)
        standing = await api.create(owner.path(child), scaled(owner.kind, "few", 2, 2))
        await tenants.declares(4)
        reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": "few", "controller": True}
        reference["uid"] = standing["metadata"]["uid"]
        metadata = body["metadata"] | {"ownerReferences": [reference]}
        if made == VMI:
            # Who writes a VMI is asked for it by itself; the controller of replica sets is not.
            await tenants.budget(l40s=6)
        name = (await api.create(path, body | {"metadata": metadata}))["metadata"]["name"]
        await tenants.budget(l40s=5)
        await tenants.declares(4)
        off = {"metadata": {"ownerReferences": None}}
        said = await refusal(api.patch(f"{path}/{name}", off))
        assert said.startswith(tenants.over(made.plural, 5, 4, 2)), said
        assert not await refusal(api.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}))
        await tenants.budget(l40s=6)
        assert not await refusal(api.patch(f"{path}/{name}", off))
        await tenants.declares(6)
        await api.delete(f"{path}/{name}")
        await api.delete(f"{owner.path(child)}/few")
        await tenants.declares(0)
        await tenants.budget(l40s=5)
