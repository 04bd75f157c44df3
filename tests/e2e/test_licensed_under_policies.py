"""The whole program, KubeVirt, scheduler and collector under our own policies: nobody is held up in their work."""

import base64
from functools import partial

from deploy.standing_rules import install_policies
from schemas.kinds import GPU_CLAIM, NAMESPACE, SECRET, VM, VMI
from tests.cluster.api import Refused
from tests.cluster.nodes import L40S_24C
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.webhooks.guarding import keep_settings_watched, remove_policies

TOKEN = base64.b64encode(b"a token").decode()
COPY = "gpu-licence-l40s-24c"


async def test_a_licensed_vm_lives_and_ends_under_the_policies(program: Stack) -> None:
    """L1, L5, N4, C58: copy and disk are there, the set is bound, the VM runs and is deleted; forgers are refused."""
    api, tenant = program.api, program.tenant
    await keep_settings_watched(api)
    await install_policies(program.kube, program.system)
    try:
        settings = await api.get(f"/api/v1/namespaces/{program.system}/configmaps/gpubinder-settings")
        assert settings["data"]["kubevirtNamespace"] == "kubevirt"
        source = {"metadata": {"name": "lic"}, "data": {"client_configuration_token.tok": TOKEN}}
        await api.create(SECRET.path(program.system), source)
        await api.patch(NAMESPACE.path(name=tenant), {"metadata": {"labels": {"cozystack.io/vgpu": "true"}}})
        await program.gpu_class("l40s-24c", L40S_24C, "VGPU", license={"secretName": "lic"})
        await program.node("n1", {L40S_24C: 2})
        copy = await api.until(SECRET.path(tenant, COPY), lambda found: found is not None)
        assert copy is not None
        assert copy["data"] == source["data"]

        await program.vm("vgpu", [("l40s-24c", 1)])
        assert await program.running("vgpu") == "n1"
        vmi = await program.vmi("vgpu")
        assert vmi is not None
        assert vmi["spec"]["volumes"][-1]["secret"] == {"secretName": COPY, "volumeLabel": "GPULICENCE"}
        assert vmi["spec"]["domain"]["devices"]["disks"][-1]["name"] == "gpubinder-licence"
        vm = await api.get(VM.path(tenant, "vgpu"))
        assert "RestartRequired" not in [one["type"] for one in (vm.get("status") or {}).get("conditions") or ()]
        [claim] = await program.claims("vgpu")
        for path, change in (
            (GPU_CLAIM.path(tenant, claim["metadata"]["name"]) + "/status", {"status": {"phase": "Lost"}}),
            (VMI.path(tenant, "vgpu"), {"metadata": {"annotations": {"cozystack.io/gpus": "[]"}}}),
            (SECRET.path(tenant, COPY), {"data": {"client_configuration_token.tok": ""}}),
        ):
            await eventually(partial(_refused, program, path, change), f"{path} is guarded")

        await program.delete("vgpu")

        async def collected() -> bool:
            return not await program.claims("vgpu")

        await eventually(collected, "the claims are collected")
        await api.patch(NAMESPACE.path(name=tenant), {"metadata": {"labels": {"cozystack.io/vgpu": None}}})
        await api.until(SECRET.path(tenant, COPY), lambda found: found is None)
        assert TOKEN not in program.processes.children["gpubinder"].log.read_text()
        assert (await program.verified()).rederived > 0
    finally:
        await remove_policies(api)


async def _refused(program: Stack, path: str, change: object) -> bool:
    """Say whether a policy refuses a change, be it the administrator's."""
    try:
        await program.api.patch(path, change, dryRun="All")
    except Refused as refused:
        return "ValidatingAdmissionPolicy" in str(refused)
    return False


async def test_a_vm_starts_before_its_copy_is_there(program: Stack) -> None:
    """L5: a missing copy is refused by nobody; the class says what is missing (L3)."""
    await program.entitle()
    await program.gpu_class("l40s-24c", L40S_24C, "VGPU", license={"secretName": "lic"})
    await program.node("n1", {L40S_24C: 2})
    await program.vm("vgpu", [("l40s-24c", 1)])

    assert await program.bound("vgpu") == ["n1"]

    async def told() -> bool:
        found = await program.api.get("/apis/cozystack.io/v1alpha1/gpuclasses/l40s-24c")
        conditions = (found.get("status") or {}).get("conditions") or ()
        return [(one["type"], one["reason"]) for one in conditions] == [("LicenseSecretMissing", "SecretNotFound")]

    await eventually(told, "the class tells")
