"""The main path: VMs that ask for GPUs by class get a whole set on one node, or wait and are told why."""

from schemas.kinds import VMI
from schemas.names import GATE
from tests.cluster.nodes import H100, L40S, L40S_24C
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.volumes import bound_volume
from tests.e2e.witness import gates, pinned_node


async def test_sets_land_whole_and_the_next_waits_until_one_ends(program: Stack) -> None:
    """Two vGPU units and two cards land whole on a node each; a third VM waits with a reason, then gets the place."""
    await program.entitle()
    await program.gpu_class("l40s-24c", L40S_24C, "VGPU", maxCount=2)
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S_24C: 2})
    await program.node("n2", {L40S: 2})
    await program.nodes_known()
    await program.vm("vgpu", [("l40s-24c", 2)])
    await program.vm("cards", [("l40s", 2)])

    assert await program.running("vgpu") == "n1"
    assert await program.running("cards") == "n2"
    [claim] = await program.claims("vgpu")
    assert claim["status"]["phase"] == "Bound"
    assert claim["status"]["nodeName"] == "n1"

    await program.vm("late", [("l40s-24c", 1)])
    assert "no node has room" in await program.waiting("late", "NoRoom")
    await program.warned(1)

    await program.stop("vgpu")
    assert await program.running("late") == "n1"
    report = await program.verified()
    assert report.rederived > 0
    assert report.chain_only == 0


async def test_every_term_is_pinned_by_the_node_s_name(program: Stack) -> None:
    """A launcher with several required terms is pinned in each, they are ORed; the pin is a name, no label (C18)."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1.example.org", {L40S: 1}, labels={"kubernetes.io/hostname": "n1", "zone": "a"})
    await program.node("n1", {L40S: 1}, labels={"kubernetes.io/hostname": "n1.example.org", "zone": "c"})
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in ("a", "b")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    await program.vm("vm", [("l40s", 1)], affinity={"nodeAffinity": required})

    assert await program.running("vm") == "n1.example.org"
    [pod] = await program.launchers("vm")
    assert pinned_node(pod) == "n1.example.org"
    assert pod["spec"]["nodeName"] == "n1.example.org"


async def test_a_volume_by_hostname_label_is_no_node_name(program: Stack) -> None:
    """C18: a volume that names the label of one node, which is the name of another, is reached from the first."""
    await program.gpu_class("l40s", L40S)
    await program.node("ip-10-0-1-5.internal", {L40S: 2}, labels={"kubernetes.io/hostname": "ip-10-0-1-5"})
    await program.node("worker-b", {L40S: 2}, labels={"kubernetes.io/hostname": "ip-10-0-1-5.internal"})
    await bound_volume(program, "p1", {"kubernetes.io/hostname": "ip-10-0-1-5"})
    await program.vm("vm", [("l40s", 1)], volumes=["p1"])

    assert await program.running("vm") == "ip-10-0-1-5.internal"
    assert await program.bound("vm") == ["ip-10-0-1-5.internal"]


async def test_a_volume_on_another_node_decides(program: Stack) -> None:
    """A set goes where its node-bound volume is; where that node has no GPU, it waits and says so (C42, D4)."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1}, labels={"zone": "a"})
    await program.node("n2", {L40S: 1}, labels={"zone": "b"})
    await program.node("n3", {}, labels={"zone": "c"})
    await bound_volume(program, "pz", {"zone": "b"})
    await bound_volume(program, "pc", {"zone": "c"})
    await program.vm("elsewhere", [("l40s", 1)], volumes=["pc"])
    assert "volume" in await program.waiting("elsewhere", "VolumeOnOtherNode")

    await program.vm("there", [("l40s", 1)], volumes=["pz"])
    assert await program.running("there") == "n2"
    [pod] = await program.launchers("elsewhere")
    assert gates(pod) == [GATE]


async def test_cpu_is_short_on_the_fullest_node(program: Stack) -> None:
    """The fullest node by GPUs is passed over where it lacks cpu for the launcher (C17's first half)."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1}, resources={"cpu": "100m"})
    await program.node("n2", {L40S: 4})
    domain = {"memory": {"guest": "1Gi"}, "devices": {}, "cpu": {"cores": 8}}
    await program.vm("vm", [("l40s", 1)], domain=domain)

    assert await program.running("vm") == "n2"


async def test_two_classes_whole_or_not_at_all(program: Stack) -> None:
    """C36: of two sets of two classes one lands whole; the other holds no unit that a third VM could use."""
    await program.gpu_class("l40s", L40S)
    await program.gpu_class("h100", H100)
    await program.node("n1", {L40S: 1, H100: 1})
    await program.node("n2", {L40S: 1})
    await program.node("n3", {H100: 1})
    both = [("l40s", 1), ("h100", 1)]
    await program.vm("vm1", both)
    assert await program.running("vm1") == "n1"
    await program.vm("vm2", both)
    await program.waiting("vm2", "NoRoom")
    await program.vm("vm3", [("l40s", 1)])

    assert await program.running("vm3") == "n2"
    assert await program.bound("vm1") == ["n1", "n1"]
    assert [claim["status"].get("nodeName") for claim in await program.claims("vm2")] == [None, None]
    assert set((await program.quiet()).values()) == {"n1", "n2"}

    await program.stop("vm1")
    assert await program.running("vm2") == "n1"
    assert await program.bound("vm2") == ["n1", "n1"]


async def test_a_vm_started_again_is_another_one(program: Stack) -> None:
    """N3: the same name comes back as another VMI with claims of its own; the old ones go, none is taken over."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.vm("vm", [("l40s", 1)])
    await program.running("vm")
    [old] = await program.claims("vm")

    await program.stop("vm")
    await program.api.until(VMI.path(program.tenant, "vm"), lambda vmi: vmi is None)
    await program.start("vm")
    await program.running("vm")

    async def one_left() -> bool:
        return len(await program.claims("vm")) == 1

    await eventually(one_left, "the old claim is gone")
    [new] = await program.claims("vm")
    assert new["metadata"]["name"] != old["metadata"]["name"]
    vmi = await program.vmi("vm")
    assert vmi is not None
    assert [owner["uid"] for owner in new["metadata"]["ownerReferences"]] == [vmi["metadata"]["uid"]]
    assert await program.bound("vm") == ["n1"]
    assert len(program.witness.vmis["vm"]) == 2
