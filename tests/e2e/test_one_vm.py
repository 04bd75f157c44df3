"""The main path: VMs that ask for GPUs by class get a whole set on one node, or wait and are told why."""

import asyncio

from schemas.names import GATE
from tests.cluster.nodes import L40S, L40S_24C
from tests.e2e.stack import VMIS, Stack
from tests.e2e.witness import gates, pinned_node


async def test_sets_land_whole_and_the_next_waits_until_one_ends(program: Stack) -> None:
    """Two vGPU units and two cards land whole on a node each; a third VM waits with a reason, then gets the place."""
    await program.gpu_class("l40s-24c", L40S_24C, "VGPU", maxCount=2)
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S_24C: 2})
    await program.node("n2", {L40S: 2})
    await program.vm("vgpu", [("l40s-24c", 2)])
    await program.vm("cards", [("l40s", 2)])

    assert await program.running("vgpu") == "n1"
    assert await program.running("cards") == "n2"
    [claim] = await program.claims("vgpu")
    assert claim["status"]["phase"] == "Bound"
    assert claim["status"]["nodeName"] == "n1"

    await program.vm("late", [("l40s-24c", 1)])
    assert "no node has room" in await program.waiting("late", "NoRoom")
    assert len(await program.events()) == 1

    await program.stop("vgpu")
    assert await program.running("late") == "n1"
    report = await program.verified()
    assert report.rederived == report.rederived + report.chain_only


async def test_every_term_is_pinned(program: Stack) -> None:
    """A launcher with several required terms is pinned in each: they are ORed (C18 pins by the node's name)."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1.example.org", {L40S: 1}, labels={"kubernetes.io/hostname": "n1", "zone": "a"})
    await program.node("n1", {L40S: 1}, labels={"kubernetes.io/hostname": "n1.example.org", "zone": "c"})
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in ("a", "b")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    await program.vm("vm", [("l40s", 1)], affinity={"nodeAffinity": required})

    assert await program.running("vm") == "n1.example.org"
    [pod] = await program.launchers("vm")
    assert pinned_node(pod) == "n1.example.org"


async def test_a_volume_on_another_node_decides(program: Stack) -> None:
    """A set goes where its node-bound volume is; where that node has no GPU, it waits and says so (C42, D4)."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1}, labels={"zone": "a"})
    await program.node("n2", {L40S: 1}, labels={"zone": "b"})
    await program.node("n3", {}, labels={"zone": "c"})
    await _volume(program, "pz", "b")
    await _volume(program, "pc", "c")
    await program.vm("elsewhere", [("l40s", 1)], volumes=["pc"])
    assert "volume" in await program.waiting("elsewhere", "VolumeOnOtherNode")

    await program.vm("there", [("l40s", 1)], volumes=["pz"])
    assert await program.running("there") == "n2"
    [pod] = await program.launchers("elsewhere")
    assert gates(pod) == [GATE]


async def test_twenty_starts_for_nineteen_places(program: Stack) -> None:
    """Of twenty VMs at once exactly nineteen run and one waits, whatever the order (C21)."""
    await program.gpu_class("l40s", L40S)
    for number in range(5):
        await program.node(f"n{number}", {L40S: 4 if number else 3})
    await asyncio.gather(*(program.vm(f"vm{number}", [("l40s", 1)]) for number in range(20)))

    async with asyncio.timeout(60):
        while True:
            vmis = (await program.api.get(VMIS.format(program.tenant)))["items"]
            if [vmi.get("status", {}).get("phase") for vmi in vmis].count("Running") == 19:
                break
            await asyncio.sleep(0)
    assert await program.gated() == 1
    assert len(await program.events()) == 1
    await program.verified()


async def test_cpu_is_short_on_the_fullest_node(program: Stack) -> None:
    """The fullest node by GPUs is passed over where it lacks cpu for the launcher (C17's first half)."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1}, resources={"cpu": "100m"})
    await program.node("n2", {L40S: 4})
    domain = {"memory": {"guest": "1Gi"}, "devices": {}, "cpu": {"cores": 8}}
    await program.vm("vm", [("l40s", 1)], domain=domain)

    assert await program.running("vm") == "n2"


async def _volume(program: Stack, name: str, zone: str) -> None:
    """Create a PV that only nodes of a zone reach, and a PVC bound to it."""
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    capacity = {"storage": "1Gi"}
    volume = f"{program.tenant}-{name}"
    spec = {
        "capacity": capacity,
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": program.tenant, "name": name},
        "hostPath": {"path": "/tmp/nothing"},  # noqa: S108 - nobody mounts it
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    await program.api.create("/api/v1/persistentvolumes", {"metadata": {"name": volume}, "spec": spec})
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "volumeName": volume,
        "resources": {"requests": capacity},
    }
    path = f"/api/v1/namespaces/{program.tenant}/persistentvolumeclaims"
    await program.api.create(path, {"metadata": {"name": name}, "spec": claim})
    await program.api.until(f"{path}/{name}", lambda pvc: bool(pvc) and pvc["status"]["phase"] == "Bound")  # type: ignore[index]
