"""Copies of a licence in many namespaces, and a program that dies between them: it goes on where the log is (C51)."""

import asyncio
import base64
from collections.abc import Mapping

from schemas.kinds import GPU_CLASS, NAMESPACE, SECRET
from schemas.names import VGPU_LABEL
from tests.cluster.api import Object, Refused
from tests.cluster.nodes import L40S_24C
from tests.e2e.stack import Stack
from tests.e2e.tenant import SECONDS, eventually

COPY = "gpu-licence-l40s-24c"
TOKEN, CONF = "client_configuration_token.tok", "gridd.conf"
COUNT = 12
HELD = "holds-secrets"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


def data(**values: str) -> dict[str, str]:
    """Return a Secret's data; two underscores stand for a dot."""
    return {key.replace("__", "."): base64.b64encode(value.encode()).decode() for key, value in values.items()}


class Copies:
    """The tenants `names`, and what stands in them."""

    def __init__(self, program: Stack) -> None:
        self.program, self.api = program, program.api
        self.names = [f"{program.tenant}-{number}" for number in range(COUNT)]
        self.source = SECRET.path(program.system, "lic")

    async def tenant(self, name: str) -> None:
        """Create a namespace that may use vGPUs."""
        await self.api.create(NAMESPACE.path(), {"metadata": {"name": name, "labels": {VGPU_LABEL: "true"}}})

    async def stand(self) -> dict[str, Object]:
        """Return the copies by namespace."""
        found = [await self.api.find(SECRET.path(name, COPY)) for name in self.names]
        return {name: one["data"] for name, one in zip(self.names, found, strict=True) if one is not None}

    async def hold(self, wanted: Mapping[str, str], names: list[str]) -> None:
        """Wait until these namespaces have a copy of exactly this, and no other has one."""

        async def so() -> bool:
            return await self.stand() == dict.fromkeys(names, wanted)

        await eventually(so, f"{len(names)} copies hold what they should")

    async def missing(self, status: str) -> None:
        """Wait until the class says whether its source is missing."""

        def so(found: Object | None) -> bool:
            conditions = ((found or {}).get("status") or {}).get("conditions") or ()
            return ("LicenseSecretMissing", status) in [(one["type"], one["status"]) for one in conditions]

        await self.api.until(GPU_CLASS.path(name="l40s-24c"), so, SECONDS)

    async def licence(self, value: Object | None) -> None:
        """Give the class a licence, or take it away."""
        await self.api.patch(GPU_CLASS.path(name="l40s-24c"), {"spec": {"license": value}})

    async def restarted(self) -> None:
        """Kill the program and start it again."""
        await asyncio.to_thread(self.program.processes.children["gpubinder"].kill)
        await self.program.processes.revive("gpubinder")
        await self.program.ready()

    async def guard(self, names: list[str]) -> None:
        """Have Secrets of these namespaces deleted by nobody, until `unguard`."""
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["secrets"]}]
        said = [{"expression": f"!(oldObject.metadata.namespace in {names!r})", "message": "held by the test"}]
        spec: Object = {"matchConstraints": {"resourceRules": rules}, "validations": said}
        await self.api.create(POLICIES, {"metadata": {"name": HELD}, "spec": spec})
        bound = {"policyName": HELD, "validationActions": ["Deny"]}
        await self.api.create(BINDINGS, {"metadata": {"name": HELD}, "spec": bound})
        await eventually(self.is_guarded, "Secrets are held")

    async def unguard(self) -> None:
        """Let Secrets be deleted again."""
        for path in (BINDINGS, POLICIES):
            await self.api.delete(f"{path}/{HELD}")

        async def let_go() -> bool:
            return not await self.is_guarded()

        await eventually(let_go, "Secrets are held no more")

    async def is_guarded(self) -> bool:
        """Say whether the first Secret that is held can't be deleted."""
        try:
            await self.api.delete(SECRET.path(self.names[0], COPY), dryRun="All")
        except Refused as refused:
            return "held by the test" in str(refused)
        return False


async def test_copies_over_restarts(program: Stack) -> None:
    """C51, L2, L3: renewed in all; deletions cut short go on after a restart; a source that goes takes none along."""
    here = Copies(program)
    one, two = data(client_configuration_token__tok="T1", gridd__conf="G"), data(client_configuration_token__tok="T2")
    await program.api.create(SECRET.path(program.system), {"metadata": {"name": "lic"}, "data": one})
    await program.gpu_class("l40s-24c", L40S_24C, "VGPU", license={"secretName": "lic"})
    for name in here.names:
        await here.tenant(name)
    await here.hold(one, here.names)

    await program.api.patch(here.source, {"data": two | {CONF: None}})
    await here.hold(two, here.names)

    held = here.names[: COUNT // 2]
    await here.guard(held)
    try:
        await here.licence(None)
        await here.hold(two, held)
        await asyncio.to_thread(program.processes.children["gpubinder"].kill)
    finally:
        await here.unguard()
    assert sorted(await here.stand()) == sorted(held)
    await program.processes.revive("gpubinder")
    await here.hold(two, [])

    await program.ready()
    await here.licence({"secretName": "lic"})
    await here.hold(two, here.names)
    await program.api.delete(here.source)
    await here.missing("True")
    await here.restarted()
    late = f"{program.tenant}-late"
    await here.tenant(late)
    here.names.append(late)

    async def seen() -> bool:
        return late in (await program.told()).objects["namespaces"]

    await eventually(seen, "the log knows the namespace that came while the source was gone")
    await here.missing("True")
    await here.hold(two, here.names[:-1])
    await program.api.create(SECRET.path(program.system), {"metadata": {"name": "lic"}, "data": one})
    await here.missing("False")
    await here.hold(one, here.names)
    for name in here.names:
        await program.api.delete(NAMESPACE.path(name=name))
