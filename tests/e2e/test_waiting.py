"""VMs that wait: behind a foreign gate, for room, for a volume; patiently, and told once."""

import asyncio
from pathlib import Path
from typing import Any

from schemas.kinds import NODE, POD, VMI
from schemas.names import GATE
from tests.cluster.api import JSON_PATCH
from tests.cluster.nodes import H100, L40S
from tests.cluster.webhooks import Served, patching, serving
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.volumes import bound_volume
from tests.e2e.witness import gates, pinned_node

FOREIGN = "kueue.x-k8s.io/admission"
Object = dict[str, Any]


async def test_a_foreign_gate_is_left_alone_until_it_goes(program: Stack, tmp_path: Path) -> None:
    """C56: a launcher behind another's gate books nothing; that gate stays, and once it goes the set is placed."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    add = [{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": FOREIGN}]}]
    # It sorts before ours, so that the launcher comes to our webhook with a gate already.
    hook = Served("a-foreign-gate", patching(add), [(POD, ["CREATE"])], mutating=True, namespace=program.tenant)
    look: Object = {"metadata": {"name": "look"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}

    async def answering() -> bool:
        made = await program.api.create(POD.path(program.tenant), look, dryRun="All")
        return bool(made["spec"].get("schedulingGates") == [{"name": FOREIGN}])

    async with serving(program.api, tmp_path / "gate", [hook], answering):
        await program.vm("first", [("l40s", 1)])
        await program.waiting("first", "ForeignGate")
    [pod] = await program.launchers("first")
    assert gates(pod) == [FOREIGN, GATE]

    await program.vm("second", [("l40s", 1)])
    assert await program.running("second") == "n1"
    [pod] = await program.launchers("first")
    assert gates(pod) == [FOREIGN, GATE]
    assert not pinned_node(pod)
    await program.delete("second")
    [claim] = await program.claims("first")
    assert claim["status"]["phase"] == "Pending"

    taken = [
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": FOREIGN},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]
    await program.api.patch(POD.path(program.tenant, pod["metadata"]["name"]), taken, content=JSON_PATCH)
    assert await program.running("first") == "n1"
    [after] = await program.launchers("first")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_who_waits_is_not_refused_and_starts_when_room_comes(program: Stack) -> None:
    """C57: no room is no refusal: the same VMI and the same pod stand there until the first ends, then run."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.vm("vm1", [("l40s", 1)])
    await program.running("vm1")
    await program.vm("vm2", [("l40s", 1)])
    await program.waiting("vm2", "NoRoom")
    vmi = await program.vmi("vm2")
    [pod] = await program.launchers("vm2")
    assert vmi is not None
    assert vmi["status"]["phase"] == "Scheduling"
    assert gates(pod) == [GATE]
    await _in_line(program, 1)

    await program.stop("vm1")
    assert await program.running("vm2") == "n1"
    [after] = await program.launchers("vm2")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert program.witness.vmis["vm2"] == [vmi["metadata"]["uid"]]
    assert program.witness.launchers[vmi["metadata"]["uid"]] == [pod["metadata"]["uid"]]


async def test_a_reason_is_told_once_and_no_write_comes_without_a_change(program: Stack) -> None:
    """C59: one Warning a VM, one more for each change of reason; heartbeats, restarts and passes write nothing."""
    waiting = [f"vm{number}" for number in range(8)]
    await program.gpu_class("l40s", L40S)
    await program.gpu_class("h100", H100)
    await program.node("n1", {L40S: 1}, labels={"zone": "a"})
    await program.node("n2", {H100: 4})
    await program.node("n3", {}, labels={"zone": "b"})
    await program.vm("holder", [("l40s", 1)])
    await program.running("holder")
    for name in waiting:
        await program.vm(name, [("l40s", 1)])
    await asyncio.gather(*(program.waiting(name, "NoRoom") for name in waiting))
    await _told(program, 1, waiting)
    await _in_line(program, len(waiting))
    before = await _versions(program, waiting)

    await _heartbeats(program)
    await _passed(program, "sentinel1")
    child = program.processes.children["gpubinder"]
    child.kill()
    await program.processes.revive("gpubinder")
    await program.ready()
    await _passed(program, "sentinel2")
    assert await _versions(program, waiting) == before
    await _told(program, 1, waiting)

    # Nobody tolerates this taint: another reason for all who wait; then the old one again.
    await program.nodes.taint("n1", [{"key": "own", "value": "1", "effect": "NoSchedule"}])
    await asyncio.gather(*(program.waiting(name, "TaintNotTolerated") for name in waiting))
    await _told(program, 2, waiting)
    await program.nodes.taint("n1", [])
    await asyncio.gather(*(program.waiting(name, "NoRoom") for name in waiting))
    await _told(program, 3, waiting)


async def _in_line(program: Stack, count: int) -> None:
    """See that the claims that wait, so many, show their places in line."""

    async def shown() -> bool:
        places = [claim["status"].get("queuePosition", 0) for claim in await program.claims()]
        return sorted(filter(None, places)) == list(range(1, count + 1))

    await eventually(shown, "the places in line")


async def _heartbeats(program: Stack) -> None:
    """Report what kubelets report every few seconds: the time, and nothing new."""
    for beat in range(10):
        for name in ("n1", "n2", "n3"):
            found = await program.api.get(NODE.path(name=name))
            [condition] = found["status"]["conditions"]
            condition["lastHeartbeatTime"] = f"2026-05-03T10:00:{beat:02}Z"
            await program.api.patch(f"{NODE.path(name=name)}/status", {"status": {"conditions": [condition]}})


async def _passed(program: Stack, name: str) -> None:
    """See a VM run that came later than what should change nothing: all before it was folded and written."""
    await program.vm(name, [("h100", 1)])
    await program.running(name)


async def _told(program: Stack, times: int, names: list[str]) -> None:
    """Wait until each VM was warned so often, and nobody more often."""

    async def counts() -> list[int]:
        events = [event["regarding"]["name"] for event in await program.events()]
        return [events.count(name) for name in names]

    async def enough() -> bool:
        return min(await counts()) >= times

    await eventually(enough, f"each VM is warned {times} times")
    assert await counts() == [times] * len(names)


async def _versions(program: Stack, names: list[str]) -> dict[str, str]:
    """Return claim name -> resourceVersion of these VMs' claims."""
    claims = [claim for name in names for claim in await program.claims(name)]
    return {claim["metadata"]["name"]: claim["metadata"]["resourceVersion"] for claim in claims}


async def test_a_vm_that_waits_for_its_volume_s_node_keeps_its_vmi(program: Stack) -> None:
    """D4, C57: a volume where no GPU is makes a VM wait, not fail; a GPU that comes to that node ends it."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1}, labels={"zone": "a"})
    await program.node("n2", {}, labels={"zone": "b"})
    await bound_volume(program, "disk", {"zone": "b"})
    await program.vm("vm", [("l40s", 1)], volumes=["disk"])
    await program.waiting("vm", "VolumeOnOtherNode")

    program.offers["n2"] = {L40S: 1}
    await program.nodes.allocatable("n2", {L40S: "1"})
    assert await program.running("vm") == "n2"
    assert len(program.witness.vmis["vm"]) == 1
    assert (await program.api.get(VMI.path(program.tenant, "vm")))["status"]["phase"] == "Running"
