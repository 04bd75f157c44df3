"""A cluster whose log is lost altogether: taken over as it stands, nothing restarts, nobody gets a unit twice (T4)."""

import asyncio
import shutil

from deploy.child import Child
from deploy.local import LocalNats
from schemas.decisions import Adopted, SetAdopted
from schemas.frames import Frame, decode_record
from schemas.kinds import POD, WORKLOAD
from schemas.names import STAMP_ANNOTATION
from schemas.streams import DECISIONS
from tests.cluster.nodes import L40S
from tests.deploy.command import Ran, gpubinder
from tests.e2e.stack import Stack, all_roles
from tests.e2e.tenant import eventually
from tests.e2e.witness import pinned_node


async def adopt(program: Stack, *more: str) -> Ran:
    """Run `gpubinder adopt` as the installer."""
    assert isinstance(program.nats, LocalNats)
    where = ["--nats", program.nats.url, "--kubeconfig", str(program.plane.kubeconfig()), "--namespace", program.system]
    return await asyncio.to_thread(gpubinder, "adopt", *more, *where)


async def lose_the_log(program: Stack) -> None:
    """Kill every process of ours, and NATS with all that it stored."""
    assert isinstance(program.nats, LocalNats)
    for child in program.processes.children.values():
        child.kill()
    program.nats.server.kill()
    shutil.rmtree(program.nats.server.directory / "data")
    await program.nats.server.start()


async def started(program: Stack) -> dict[str, str]:
    """Return each VM's VMI by uid: it is another one once the VM was started again."""
    found = [await program.vmi(vm) for vm in ("own", "user", "late")]
    return {vmi["metadata"]["name"]: vmi["metadata"]["uid"] for vmi in found if vmi is not None}


async def raw_pod(program: Stack, name: str, node: str) -> None:
    """Run a pod that has a unit of its own, as a VM with plain `gpus` entries does."""
    limits = {"limits": {L40S: "1"}, "requests": {L40S: "1"}}
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "none", "resources": limits}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    await program.api.create(POD.path(program.tenant), body)


async def busy(program: Stack) -> None:
    """Have two VMs run, one with a held claim, a raw pod beside them; an idle claim is held, and a VM waits."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    await program.node("n2", {L40S: 3})
    await program.order("mine", "l40s")
    await program.order("idle", "l40s")
    await program.held("mine", "Bound", node="n1")
    await program.held("idle", "Bound", node="n1")
    await program.vm("own", [("l40s", 1)])
    await program.vm("user", [], held=["mine"])
    assert (await program.running("own"), await program.running("user")) == ("n2", "n1")
    await raw_pod(program, "raw", "n2")
    await program.vm("late", [("l40s", 2)])
    await program.waiting("late", "NoRoom")


async def test_a_cluster_is_taken_over_after_the_log_was_lost(program: Stack) -> None:
    """T4, T22: VMs run on, a gated one waits on, held claims stay; then VMs stop and start as ever."""
    await busy(program)
    before, kept = await started(program), await records(program)

    await lose_the_log(program)
    refused = program.processes.start("gpubinder", ["binder"])
    await eventually(lambda: ended(refused), "a binder over an empty NATS ends")
    looked = await adopt(program, "--dry-run", "--json")
    assert looked.code == 0, looked.err
    listed = looked.json
    assert listed["generation"] == 2
    assert len(listed["booked"]) == 4, listed
    assert any(f"{program.tenant}/own is on n2" in line for line in listed["booked"])
    assert any(f"{program.tenant}/raw on n2" in line for line in listed["counted"])
    done = await adopt(program)
    assert done.code == 0, done.err
    assert "  pod " in done.out.partition("counted by itself")[2], done.out
    assert f"generation 2 of log {listed['log']} begins" in done.out, done.out

    await all_roles(program)
    await shown_anew(program)
    assert await started(program) == before
    await eventually(lambda: recorded_anew(program, kept), "records go on under the new generation")
    state = await program.told()
    assert (state.generation, state.adopting) == (2, False)
    assert {f"{one.claim.name} {one.node}" for one in state.holdings.values()} == {"mine n1", "idle n1"}
    pods = [*await program.launchers("own"), *await program.launchers("user")]
    booked = {one.pod_uid: one.node for one in state.sets.values() if one.node}
    assert booked == {pod["metadata"]["uid"]: pinned_node(pod) for pod in pods}

    await program.stop("own")
    assert await program.running("late") == "n2"
    await program.stop("user")
    await program.held("mine", "Bound", vm="", node="n1")
    await program.start("user")
    assert await program.running("user") == "n1"
    assert (await started(program))["late"] == before["late"]
    await adopted_once(program)
    assert (await program.verified()).chain_only == 0


async def test_a_store_restored_from_an_older_backup_is_taken_over(program: Stack) -> None:
    """T3, T4, T22: the tail is lost: nobody leads on what is left; taken over in the standing streams, all go on."""
    assert isinstance(program.nats, LocalNats)
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 3})
    await program.order("mine", "l40s")
    await program.held("mine", "Bound", node="n1")
    await program.vm("own", [("l40s", 1)])
    assert await program.running("own") == "n1"
    store = program.nats.server.directory / "data"
    backup = store.with_name("backup")
    program.nats.server.kill()
    shutil.copytree(store, backup)
    await program.nats.server.start()
    await program.ready()
    await program.vm("user", [("l40s", 1)])
    assert await program.running("user") == "n1"
    await program.vm("late", [("l40s", 1)])
    await program.waiting("late", "NoRoom")
    before, kept = await started(program), await records(program)

    for child in program.processes.children.values():
        child.kill()
    program.nats.server.kill()
    shutil.rmtree(store)
    shutil.copytree(backup, store)
    await program.nats.server.start()
    refused = program.processes.start("gpubinder", ["binder"])
    await eventually(lambda: ended(refused), "a binder over a log without its tail ends")
    said = " ".join(refused.tail().split())
    assert "acknowledged decisions are lost" in said, said
    assert "gpubinder adopt" in said, said
    done = await adopt(program)
    assert done.code == 0, done.err
    assert f"{program.tenant}/user is on n1" in done.out, done.out

    # Launchers are created while the cluster is taken over.
    await program.vm("fresh", [("l40s", 1)])
    await all_roles(program)
    await program.waiting("fresh", "NoRoom")
    await shown_anew(program)
    assert await started(program) == before
    await eventually(lambda: recorded_anew(program, kept), "records go on under the new generation")
    await program.stop("user")
    # The wait of who waited before begins anew with the generation: who is first is not told by the old log.
    winner = await eventually(lambda: placed(program, "late", "fresh"), "one of those who wait has its place")
    assert await program.running(winner) == "n1"
    state = await program.told()
    assert (state.generation, len([one for one in state.sets.values() if one.node])) == (2, 2)
    await program.verified()


async def placed(program: Stack, *vms: str) -> str:
    """Return the first of these VMs whose claims are Bound, '' while there is none."""
    for vm in vms:
        shown = [(claim.get("status") or {}).get("phase") for claim in await program.claims(vm)]
        if shown and all(phase == "Bound" for phase in shown):
            return vm
    return ""


async def records(program: Stack) -> dict[str, str]:
    """Return the usage records by name, each with its uid: one that was made anew is another one."""
    listed = await program.api.get(WORKLOAD.path(program.tenant))
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in listed["items"]}


async def recorded_anew(program: Stack, kept: dict[str, str]) -> bool:
    """Say whether all these records stand, and show decisions of the new generation."""
    listed = (await program.api.get(WORKLOAD.path(program.tenant)))["items"]
    stamps = {one["metadata"]["uid"]: one["metadata"]["annotations"][STAMP_ANNOTATION] for one in listed}
    return all(stamps.get(uid, "").startswith("2.") for uid in kept.values())


async def ended(child: Child) -> bool:
    """Say whether a process has ended by itself."""
    return not child.running


async def shown_anew(program: Stack) -> None:
    """Wait until every claim shows a decision of the new generation (T22)."""

    async def anew() -> bool:
        shown = [(claim.get("status") or {}).get("stamp") or {} for claim in await program.claims()]
        return bool(shown) and all(stamp.get("generation") == 2 for stamp in shown)

    await eventually(anew, "claims show the new generation")


async def adopted_once(program: Stack) -> None:
    """Hold the log to one adoption, of two VMs."""
    said = []
    async with asyncio.timeout(120):
        last = (await program.journal.info(DECISIONS)).last
        async for run in program.journal.read(DECISIONS, 1, until=last):
            for message in run:
                record = decode_record(message.body)
                said += (
                    [one for entry in record.entries for one in entry.decisions] if isinstance(record, Frame) else []
                )
    assert sorted(one.vmi.name for one in said if isinstance(one, SetAdopted)) == ["own", "user"]
    assert [one.sets for one in said if isinstance(one, Adopted)] == [2]
