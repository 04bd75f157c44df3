"""What the watches missed: deletions while the API server was away, and kinds that come late."""

from tests.cluster.nodes import L40S
from tests.e2e.stack import Stack


async def test_a_deletion_that_no_watch_saw_frees_its_units(parts: Stack) -> None:
    """C22: a VM goes while ingest's watches are cut, and the server forgets it: listed anew, the next one lands."""
    program = parts
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.vm("gone", [("l40s", 1)])
    await program.running("gone")
    await program.vm("next", [("l40s", 1)])
    await program.waiting("next", "NoRoom")
    ingest = program.processes.children["ingest"]

    # Frozen, so that it does not watch again; and cut first, or what is sent to it waits in its sockets.
    ingest.pause()
    await program.plane.restart("kube-apiserver")
    await program.delete("gone")
    await program.plane.forget()
    ingest.resume()

    assert await program.running("next") == "n1"
    assert all(child.running for child in program.processes.children.values())
    assert "listing anew" in ingest.log.read_text()
    await program.verified()


async def test_an_api_server_that_is_killed_costs_time_alone(program: Stack) -> None:
    """C22: the API server dies with a VM half-way and comes back; our processes go on by themselves."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    await program.vm("before", [("l40s", 1)])
    await program.running("before")
    await program.vm("during", [("l40s", 1)])
    await program.plane.restart("kube-apiserver")

    assert await program.running("during") == "n1"
    assert program.processes.children["gpubinder"].running
    assert len(program.witness.vmis["during"]) == 1
    assert len(await program.quiet()) == 2
    await program.verified()
