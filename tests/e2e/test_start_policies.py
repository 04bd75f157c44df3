"""Policies Refuse and Schedule on a running cluster: what a start is told, where its launcher goes, what it leaves."""

from deploy.local import LocalNats
from schemas.decisions import SetBooked
from schemas.kinds import VM, VMI
from schemas.names import GATE, POLICY_ANNOTATION
from tests.cluster.api import Refused
from tests.cluster.nodes import L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.test_refusals import refusal, vmi
from tests.e2e.witness import gates, pinned_node

ONE = '[{"className":"l40s"}]'


async def failing(program: Stack, vm: str, why: str) -> None:
    """Wait until the VM's condition says that its start failed, and why: the first try may not be answered in time."""

    async def told() -> bool:
        listed = await program.api.get(VM.path(program.tenant, vm))
        conditions = (listed.get("status") or {}).get("conditions") or ()
        return any(why in one.get("message", "") for one in conditions if one["type"] == "Failure")

    await eventually(told, f"VM {vm} says why it does not start: {why}")


async def test_a_start_is_booked_and_pinned_or_refused_with_the_numbers(program: Stack) -> None:
    """A12, P1: the last unit is booked at admission and the launcher pinned at creation; the next start is refused.

    C57: the refused VM says it in its condition, where the tenant reads; no trace is left, and with room it starts.
    """
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.policy("Refuse")
    await program.vm("first", [("l40s", 1)])

    assert await program.running("first") == "n1"
    [pod] = await program.launchers("first")
    assert (gates(pod), pinned_node(pod)) == ([], "n1")
    assert await program.bound("first") == ["n1"]
    assert (await program.logged(SetBooked, "first")).node == "n1"

    by_hand = await refusal(program, vmi(ONE, "by-hand"))
    sentence = f"VMI {program.tenant}/by-hand can't start now: no node has room for the whole set"
    assert sentence in str(by_hand.status["message"])
    assert "l40s x1 of 1 asked, offered by 1 node, at most 0 free on one" in str(by_hand.status["message"])
    await program.vm("second", [("l40s", 1)])
    await failing(program, "second", f"VMI {program.tenant}/second can't start now: no node has room")
    assert await program.vmi("second") is None
    assert await program.claims("second") == []
    assert await program.events() == []

    await program.stop("first")
    assert await program.running("second", 300) == "n1"
    report = await program.verified()
    assert report.chain_only == 0


async def test_running_vms_keep_their_policy_when_it_is_switched(program: Stack) -> None:
    """A11: Wait, Refuse and Schedule in turn, each with a VM that goes on running, and with its launcher as it was."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 3})
    for policy in ("Wait", "Refuse", "Schedule"):
        await program.policy(policy)
        await program.vm(policy.lower(), [("l40s", 1)])
        assert await program.running(policy.lower()) == "n1"
    [scheduled] = await program.launchers("schedule")
    assert (gates(scheduled), pinned_node(scheduled)) == ([], "")
    assert await program.claims("schedule") == []

    # The third unit is the scheduler's own doing, and counts all the same.
    await program.policy("Refuse")
    with_all = await refusal(program, vmi(ONE, "no-room"))
    assert "no node has room" in str(with_all.status["message"])
    await program.policy("Schedule")
    await program.vm("short", [("l40s", 1)])
    await eventually(lambda: program.launchers("short"), "the launcher under Schedule is there")
    await program.policy("Wait")
    await program.vm("late", [("l40s", 1)])
    await program.waiting("late", "NoRoom")
    await program.stop("refuse")
    served = await eventually(lambda: either(program, "short", "late"), "whoever is first has the unit")

    assert served in {"short", "late"}
    for policy in ("Wait", "Schedule"):
        found = await program.vmi(policy.lower())
        assert found is not None
        assert found["metadata"]["annotations"][POLICY_ANNOTATION] == policy
        assert found["status"]["phase"] == "Running"


async def either(program: Stack, *vms: str) -> str:
    """Return the VM that runs of these, '' while none does."""
    for name in vms:
        found = await program.vmi(name)
        if found is not None and (found.get("status") or {}).get("phase") == "Running":
            return name
    return ""


async def test_a_vm_restarts_on_the_last_unit(program: Stack) -> None:
    """T18, A12: the units of a VM's former run are what its next one needs: it waits for them, and is not refused."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.policy("Refuse")
    await program.vm("vm", [("l40s", 1)])
    assert await program.running("vm") == "n1"
    before = await program.vmi("vm")
    assert before is not None
    await program.api.delete(VMI.path(program.tenant, "vm"))

    async def again() -> bool:
        found = await program.vmi("vm")
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    await eventually(again, "the VM has another VMI", 300)
    assert await program.running("vm") == "n1"
    assert await program.bound("vm") == ["n1"]
    assert len(program.witness.vmis["vm"]) == 2


async def test_without_binder_or_nats_a_start_is_refused_and_says_so(parts: Stack) -> None:
    """T18, I2: nobody can book: refused in time with the reason, nothing is stored; when they are back, it starts."""
    program = parts
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.policy("Refuse")
    program.processes.children["binder"].kill()
    without_binder = await refused(program, "one")
    await program.processes.revive("binder")
    assert "the binder gave no answer in time; nothing was booked, try again" in without_binder
    assert isinstance(program.nats, LocalNats)
    program.nats.server.kill()
    without_nats = await refused(program, "two")
    await program.nats.server.start()
    assert "NATS did not take the request in time; nothing was booked, try again" in without_nats

    await program.vm("vm", [("l40s", 1)])
    assert await program.running("vm", 300) == "n1"
    assert GATE not in [gate for pod in await program.launchers("vm") for gate in gates(pod)]


async def refused(program: Stack, name: str) -> str:
    """Return how a VMI created by hand is refused by us."""

    async def told() -> str:
        try:
            await program.api.create(VMI.path(program.tenant), vmi(ONE, name))
        except Refused as no:
            # On a busy machine the API server may give up two seconds after our own refusal was due.
            said = str(no.status["message"])
            return "" if "failed calling webhook" in said else said
        raise AssertionError(f"VMI {name} was not refused")

    return await eventually(told, f"VMI {name} is refused in a sentence of ours")
