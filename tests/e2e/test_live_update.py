"""KubeVirt's LiveUpdate beside us: it puts the VM template's placement back onto the VMI, and we are not in its way."""

from contextlib import aclosing

from schemas.kinds import GPU_CLAIM, NAMESPACE, POD, SECRET, VM, VMI
from tests.cluster.api import Object
from tests.cluster.nodes import L40S_24C
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually

TAINT = {"key": "gpu", "value": "l40s", "effect": "NoSchedule"}
ZONE = "example.org/zone"
COPY = "gpu-licence-l40s-24c"


async def to_zone(program: Stack, vm: str, zone: str) -> Object:
    """Have the tenant choose a zone in the VM's template; return the VMI once KubeVirt has carried that over."""
    template = {"spec": {"nodeSelector": {ZONE: zone}}}
    await program.api.patch(VM.path(program.tenant, vm), {"spec": {"template": template}})

    def follows(vmi: Object | None) -> bool:
        return vmi is not None and (vmi["spec"].get("nodeSelector") or {}) == {ZONE: zone}

    vmi = await program.api.until(VMI.path(program.tenant, vm), follows)
    assert vmi is not None
    return vmi


async def test_nothing_of_ours_is_fought_over(program: Stack) -> None:
    """C58: pin and tolerations are on the pod; the VMI is KubeVirt's and the tenant's; placement is the pod's own.

    The tenant moves its selector while the launcher is gated, and away from its node while it runs: the pod was made
    before either and is judged by what it says itself; nothing moves, nothing is lost, and nobody writes in turns.
    """
    api, tenant = program.api, program.tenant
    await api.create(
        SECRET.path(program.system), {"metadata": {"name": "lic"}, "data": {"client_configuration_token.tok": "VA=="}}
    )
    await api.patch(NAMESPACE.path(name=tenant), {"metadata": {"labels": {"cozystack.io/vgpu": "true"}}})
    await program.gpu_class("l40s-24c", L40S_24C, "VGPU", license={"secretName": "lic"}, tolerations=[TAINT])
    await api.until(SECRET.path(tenant, COPY), lambda found: found is not None)
    await program.vm("vm1", [("l40s-24c", 1)])
    await program.waiting("vm1", "NoNodeOffersClass")
    await to_zone(program, "vm1", "b")
    await program.node("n1", {L40S_24C: 1}, labels={ZONE: "a"}, taints=[TAINT])

    assert await program.running("vm1") == "n1"
    [pod] = await program.launchers("vm1")
    assert TAINT | {"operator": "Equal"} in [{"operator": "Equal"} | one for one in pod["spec"]["tolerations"]]
    assert ZONE not in (pod["spec"].get("nodeSelector") or {})
    vmi = await to_zone(program, "vm1", "c")
    assert "tolerations" not in vmi["spec"]
    assert "affinity" not in vmi["spec"]
    assert vmi["spec"]["volumes"][-1]["secret"]["secretName"] == COPY
    assert len(vmi["spec"]["domain"]["devices"]["gpus"]) == 1
    [claim] = await program.claims("vm1")
    assert claim["status"]["phase"] == "Bound"

    # Another VM's whole start passes everybody's hands; meanwhile nobody has touched the first.
    before = await eventually(lambda: _ready(program, "vm1"), "the VMI is ready")
    assert before is not None
    await program.node("n2", {L40S_24C: 1}, labels={ZONE: "b"}, taints=[TAINT])
    await program.vm("vm2", [("l40s-24c", 1)])
    assert await program.running("vm2") == "n2"
    assert [one for one in await _written(program, before) if _but_status(one) != _but_status(before)] == []
    assert not await asks_for_restart(program, "vm1")
    assert await program.bound("vm1") == ["n1"]
    [still] = await program.launchers("vm1")
    assert still["metadata"]["uid"] == pod["metadata"]["uid"]
    assert (await api.get(GPU_CLAIM.path(tenant, claim["metadata"]["name"])))["status"]["nodeName"] == "n1"
    assert await api.find(POD.path(tenant, still["metadata"]["name"])) is not None
    # Whoever changes the template's devices is told: it is the VM's own doing that needs a restart, and never ours.
    devices: Object = {"domain": {"devices": {"rng": {}}}}
    await api.patch(VM.path(tenant, "vm1"), {"spec": {"template": {"spec": devices}}})
    await eventually(lambda: asks_for_restart(program, "vm1"), "the VM asks for a restart")


async def asks_for_restart(program: Stack, vm: str) -> bool:
    """Say whether KubeVirt marks a VM as one that needs a restart."""
    found = await program.api.get(VM.path(program.tenant, vm))
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"]) == ("RestartRequired", "True") for one in conditions)


async def _ready(program: Stack, vm: str) -> Object | None:
    """Return the VMI once its status says what its pod and its guest are; more may be said there later."""
    vmi = await program.vmi(vm)
    ready = [one for one in ((vmi or {}).get("status") or {}).get("conditions") or () if one["type"] == "Ready"]
    return vmi if ready and ready[0]["status"] == "True" else None


async def _written(program: Stack, before: Object) -> list[Object]:
    """Return a VMI as each write since then left it."""
    name, since = before["metadata"]["name"], before["metadata"]["resourceVersion"]
    newest = (await program.api.get(VMI.path(program.tenant, name)))["metadata"]["resourceVersion"]
    found: list[Object] = []
    seen = since
    while seen != newest:
        async with aclosing(program.api.watch(VMI.path(program.tenant), seen)) as events:
            async for event in events:
                one: Object = event["object"]
                if one["metadata"].get("name") == name:
                    found.append(one)
                    seen = one["metadata"]["resourceVersion"]
                if seen == newest:
                    break
    return found


def _but_status(vmi: Object) -> Object:
    """Return what LiveUpdate and we might write in turns: everything but what KubeVirt reports of the guest."""
    metadata = {key: vmi["metadata"].get(key) for key in ("labels", "annotations", "finalizers", "ownerReferences")}
    return {"metadata": metadata, "spec": vmi["spec"]}
