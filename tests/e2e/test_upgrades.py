"""Upgraded and rolled back under load, between versions that write the log differently: nobody notices (T6, T7)."""

from pathlib import Path

import pytest

from schemas.frames import Epoch, Frame, Record, decode_record
from schemas.streams import DECISIONS, EVENTS
from tests.cluster.nodes import L40S
from tests.e2e.later import KIND, next_version, version_after
from tests.e2e.process import GPUBINDER
from tests.e2e.recovery import Took
from tests.e2e.rolling import CHURNED, Deployment, load
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.witness import gates

UNITS = 6


async def told(program: Stack) -> list[Record]:
    """Return the whole log."""
    last = (await program.journal.info(DECISIONS)).last
    runs = program.journal.read(DECISIONS, 1, until=last)
    return [decode_record(message.body) async for run in runs for message in run]


async def _kinds(program: Stack) -> set[bytes]:
    """Return which of the later kind and version stand in EVENTS."""
    marks = (f'"{KIND}"'.encode(), b'"version":2')
    last = (await program.journal.info(EVENTS)).last
    runs = program.journal.read(EVENTS, 1, until=last)
    return {mark async for run in runs for message in run for mark in marks if mark in message.body}


async def _begun(program: Stack) -> Deployment:
    """Run the present version; the node has room for all that churns and for one more."""
    deployment = Deployment(program)
    await deployment.start(GPUBINDER)
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: UNITS // 2})
    await program.node("n2", {L40S: UNITS // 2})
    await program.vm("before", [("l40s", 1)])
    await program.running("before")
    return deployment


async def _ends_well(program: Stack) -> None:
    """Judge: what runs is what is booked, `before` was never touched, the log is whole over all versions."""
    pods = [pod for pod in await program.launchers() if not gates(pod)]
    assert len(await program.quiet()) == len(pods) == len(CHURNED) + 1
    assert len(program.witness.vmis["before"]) == 1
    records = await told(program)
    report = await program.verified()
    assert {frame.rules for frame in records if isinstance(frame, Frame)} == {1, 2}
    assert report.chain_only > 0
    assert report.rederived > 0


async def test_an_upgrade_and_a_rollback_under_load(parts: Stack, took: Took, tmp_path: Path) -> None:
    """T6, T7: the next version decides by other rules and writes more; the present one reads it and goes on."""
    program = parts
    deployment = await _begun(program)
    later = next_version(tmp_path)

    async with load(program):
        await deployment.roll(later, took, "upgrade")
        await deployment.roll(GPUBINDER, took, "rollback")

    epochs = [record.program for record in await told(program) if isinstance(record, Epoch)]
    # Between them they may take turns, where a busy machine keeps a leader from renewing its lease.
    assert (epochs[0], set(epochs), epochs[-1]) == ("0.1.0", {"0.1.0", "0.2.0"}, "0.1.0")
    assert await _kinds(program) == set()
    await _ends_well(program)


@pytest.mark.soak
async def test_a_new_kind_is_written_by_the_second_release_that_reads_it(
    parts: Stack, took: Took, tmp_path: Path
) -> None:
    """T6: a rollback by one release reads what it never wrote; one by two stops, and says what to run instead."""
    program = parts
    deployment = await _begun(program)
    reads, writes = next_version(tmp_path), version_after(tmp_path)

    async with load(program):
        await deployment.roll(reads, took, "first upgrade")
        assert await _kinds(program) == set()
        await deployment.roll(writes, took, "second upgrade")

        async def written() -> bool:
            return len(await _kinds(program)) == 2

        await eventually(written, "the new kind and version are written")
        await deployment.roll(reads, took, "rollback by one")

    await _ends_well(program)
    too_old = program.processes.start("too-old", ["binder"])

    async def ended() -> bool:
        return not too_old.running

    await eventually(ended, "the version before both ends")
    assert too_old.code not in (0, -9)
    assert "is not known to this program: run the version that wrote it" in too_old.tail()
    del program.processes.children["too-old"]
