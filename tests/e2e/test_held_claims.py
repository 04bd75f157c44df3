"""Claims that tenants hold: ordered, kept over stops, used by VMs that name them, and gone when nobody uses them."""

import asyncio

from schemas.kinds import GPU_CLAIM, VMI
from schemas.names import GATE
from tests.cluster.nodes import H100, L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import SECONDS, eventually
from tests.e2e.witness import gates, pinned_node


async def test_an_order_keeps_its_units_over_stops_of_its_vm(program: Stack) -> None:
    """C30, D6: bound on the fullest node with room, used, left alone, used again there; nobody takes it meanwhile."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.node("n2", {L40S: 2})
    await program.order("mine", "l40s")
    assert (await program.held("mine", "Bound"))["nodeName"] == "n1"

    await program.vm("vm", [], held=["mine"])
    assert await program.running("vm") == "n1"
    first = await program.vmi("vm")
    assert first is not None
    status = await program.held("mine", "Bound", "Placed", "vm")
    assert status["attachedTo"] == {"name": "vm", "uid": first["metadata"]["uid"]}
    gpus = first["spec"]["domain"]["devices"]["gpus"]
    assert [gpu["deviceName"] for gpu in gpus] == [L40S]

    await program.stop("vm")
    await program.held("mine", "Bound", vm="")
    await program.vm("other", [("l40s", 1)])
    assert await program.running("other") == "n2"
    await program.vm("greedy", [("l40s", 2)])
    await program.waiting("greedy", "NoRoom")

    await program.start("vm")
    assert await program.running("vm") == "n1"
    second = await program.vmi("vm")
    assert second is not None
    assert (await program.held("mine", "Bound", vm="vm"))["attachedTo"]["uid"] == second["metadata"]["uid"]
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    [uid] = [one["metadata"]["uid"] for one in await program.claims() if one["metadata"]["name"] == "mine"]
    assert program.witness.bookings[uid] == ["n1"]
    assert (await program.verified()).chain_only == 0


async def test_a_held_claim_and_class_entries_make_one_set(program: Stack) -> None:
    """D3, D10: the claim moves to the node that takes the whole set; the devices stand in the order of the entries."""
    await program.gpu_class("l40s", L40S)
    await program.gpu_class("h100", H100)
    await program.node("n1", {L40S: 1})
    await program.node("n2", {L40S: 2, H100: 1})
    await program.order("mine", "l40s")
    assert (await program.held("mine", "Bound"))["nodeName"] == "n1"

    await program.vm("vm", [("h100", 1)], held=["mine"])

    assert await program.running("vm") == "n2"
    assert (await program.held("mine", "Bound", vm="vm"))["nodeName"] == "n2"
    vmi = await program.vmi("vm")
    assert vmi is not None
    assert [gpu["deviceName"] for gpu in vmi["spec"]["domain"]["devices"]["gpus"]] == [H100, L40S]
    [pod] = await program.launchers("vm")
    assert pinned_node(pod) == "n2"


async def test_a_claim_in_use_is_not_shared(program: Stack) -> None:
    """One set at a time: another VM that names it waits with ClaimInUse and pulls on nothing; then it has its turn."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    await program.order("mine", "l40s")
    await program.vm("first", [], held=["mine"])
    assert await program.running("first") == "n1"
    await program.vm("second", [], held=["mine"])

    [event] = await eventually(lambda: program.events("ClaimInUse"), "the second VM is told that its claim is in use")
    assert event["regarding"]["name"] == "second"
    assert event["note"] == (
        "the held claim mine is for VM first, which uses it, or is older and names it too; to have it here, "
        "delete that VM or take it out of its template"
    )
    [pod] = await program.launchers("second")
    assert gates(pod) == [GATE]
    assert (await program.held("mine", "Bound"))["attachedTo"]["name"] == "first"

    await program.delete("first")
    assert await program.running("second") == "n1"
    await program.held("mine", "Bound", vm="second")


async def test_a_used_claim_is_deleted_when_its_vm_has_stopped(program: Stack) -> None:
    """F1, C23: its deletion waits for the VM that uses it; its units are free then, and not before."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.order("mine", "l40s")
    await program.vm("vm", [], held=["mine"])
    await program.running("vm")
    await program.vm("next", [("l40s", 1)])
    await program.waiting("next", "NoRoom")

    path = GPU_CLAIM.path(program.tenant, "mine")
    await program.api.delete(path)
    vmi = await program.vmi("vm")
    await program.held("mine", "Bound", vm="vm")
    assert vmi is not None
    assert vmi["status"]["phase"] == "Running"
    assert len(await program.gated("next")) == 1

    await program.stop("vm")
    await program.api.until(path, lambda claim: claim is None, SECONDS)
    assert await program.running("next") == "n1"


async def test_an_idle_claim_is_deleted_at_once(program: Stack) -> None:
    """F1: nobody uses it: it goes, with what it held; an order that waited for room is bound."""
    await program.unasked()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.order("mine", "l40s")
    await program.held("mine", "Bound")
    await program.order("late", "l40s")
    await program.held("late", "Pending", "NoRoom")
    [event] = await eventually(lambda: program.events("NoRoom"), "the order is told why it waits")
    assert (event["regarding"]["kind"], event["regarding"]["name"]) == ("GPUClaim", "late")

    path = GPU_CLAIM.path(program.tenant, "mine")
    await program.api.delete(path)
    await program.api.until(path, lambda claim: claim is None, SECONDS)

    assert (await program.held("late", "Bound", "Placed"))["nodeName"] == "n1"
    assert len(await program.events()) == 1


async def test_claims_go_on_over_a_crash_of_everything(program: Stack) -> None:
    """T14, T22: killed between orders and stops, our roles go on where the log is; no claim moves, none is lost."""
    await program.unasked()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    await program.node("n2", {L40S: 4})
    await program.order("a", "l40s", 2)
    await program.vm("vm", [], held=["a"])
    assert await program.running("vm") == "n1"
    orders = asyncio.gather(*(program.order(f"o{number}", "l40s") for number in range(3)))
    program.processes.children["gpubinder"].kill()
    await orders
    await program.stop("vm")
    await program.api.until(VMI.path(program.tenant, "vm"), lambda vmi: vmi is None, SECONDS)

    await program.processes.revive("gpubinder")
    await program.ready()

    bound = [await program.held(name, "Bound", "Placed", "") for name in ("a", "o0", "o1", "o2")]
    assert [status["nodeName"] for status in bound] == ["n1", "n2", "n2", "n2"]
    await program.start("vm")
    assert await program.running("vm") == "n1"
    assert (await program.verified()).chain_only == 0
