"""Usage on a real API server: each claim has its record while it stands, and a monitor's launchers have theirs."""

from schemas.kinds import GPU_CLAIM, WORKLOAD, WORKLOAD_MONITOR
from schemas.names import MONITOR_LABEL, REFERENCE_LABEL, REFERENCE_VALUE
from tests.cluster.api import Object
from tests.cluster.nodes import L40S
from tests.e2e.process import ALL
from tests.e2e.stack import Stack
from tests.e2e.tenant import SECONDS, eventually

UNITS = "gpus.cozystack.io/l40s"


async def saying(here: Stack, claim: str, units: str, node: str, vm: str) -> Object:
    """Wait until a claim's record says this; return it."""

    def says(found: Object | None) -> bool:
        notes = (found or {}).get("metadata", {}).get("annotations") or {}
        shown = (found or {}).get("status", {}).get("resources", {}).get(UNITS)
        return (shown, notes.get("cozystack.io/gpu-node"), notes.get("cozystack.io/gpu-vm")) == (units, node, vm)

    found = await here.api.until(WORKLOAD.path(here.tenant, f"gpuclaim-{claim}"), says, SECONDS)
    assert found is not None
    return found


async def records(here: Stack) -> list[str]:
    """Return the names of all records."""
    return [one["metadata"]["name"] for one in (await here.api.get(WORKLOAD.path(here.tenant)))["items"]]


async def test_claims_and_launchers_have_their_records(parts: Stack) -> None:
    """F2, F3, W1: records follow placing and stopping, accounting leaves the claims' alone, and all go in the end."""
    parts.processes.start("gpubinder", [*ALL, "accounting"])
    await parts.ready()
    await parts.gpu_class("l40s", L40S)
    await parts.node("n1", {L40S: 3})
    monitor = {"selector": {REFERENCE_LABEL: REFERENCE_VALUE}, "kind": "virtual-machine", "minReplicas": 1}
    body = {"apiVersion": WORKLOAD_MONITOR.api_version, "kind": WORKLOAD_MONITOR.kind, "metadata": {"name": "vms"}}
    await parts.api.create(WORKLOAD_MONITOR.path(parts.tenant), body | {"spec": monitor})
    await parts.order("mine", "l40s", 1)
    await parts.vm("vm", [("l40s", 2)])

    await parts.running("vm")
    [claim] = await parts.claims("vm")
    name = claim["metadata"]["name"]
    shown = await saying(parts, name, "2", "n1", "vm")
    assert MONITOR_LABEL not in shown["metadata"]["labels"]
    assert [owner["uid"] for owner in shown["metadata"]["ownerReferences"]] == [claim["metadata"]["uid"]]
    await saying(parts, "mine", "1", "n1", "")
    [pod] = await parts.launchers("vm")
    record = f"pod-{pod['metadata']['name']}"
    launcher = await parts.api.until(WORKLOAD.path(parts.tenant, record), lambda found: found is not None, SECONDS)
    assert launcher is not None
    assert launcher["status"]["kind"] == "virtual-machine"
    assert launcher["status"]["resources"][L40S] == "2"

    await parts.stop("vm")
    await parts.api.delete(GPU_CLAIM.path(parts.tenant, "mine"))
    await parts.api.until(GPU_CLAIM.path(parts.tenant, "mine"), lambda found: found is None, SECONDS)

    async def none_left() -> bool:
        return not await records(parts)

    await eventually(none_left, "every record is gone")
    monitored = WORKLOAD_MONITOR.path(parts.tenant, "vms")
    nobody = {"operational": False, "observedReplicas": 0, "availableReplicas": 0}
    await parts.api.until(monitored, lambda found: found is not None and found["status"] == nobody, SECONDS)
