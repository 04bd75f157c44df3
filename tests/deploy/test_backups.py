"""A copy of the log's store answers questions about the past, and none of it can be gone on from."""

import asyncio
import shutil
from pathlib import Path

from binder.access import Access
from binder.jetstream import connect
from binder.stream_api import API
from deploy.local import LocalNats
from schemas.streams import DECISIONS, SNAPSHOTS
from tests.deploy.command import gpubinder
from tests.deploy.watched_stage import settled, stage


async def test_a_copied_store_verifies_replays_and_explains(nats: LocalNats, tmp_path: Path) -> None:
    """What docs/operating/backup.md says of a copied directory: whole, who had what, and why somebody waited."""
    async with stage(nats, tmp_path) as here:
        await here.scraped(settled)
        ends = await here.ends()
    await nats.server.stop()
    shutil.copytree(nats.server.directory, tmp_path / "copy")

    words = ("--data", str(tmp_path / "copy"))
    verified = await asyncio.to_thread(gpubinder, "verify", "--no-anchor", "--json", *words)
    replayed = await asyncio.to_thread(gpubinder, "replay", "--json", *words)
    stands = await asyncio.to_thread(gpubinder, "status", "--no-cluster", "--json", *words)
    explained = await asyncio.to_thread(gpubinder, "explain", "tenant-umbra/archive", *words)

    assert verified.code == 0, verified.err
    assert verified.json["whole"]
    assert verified.json["log_through"] >= ends[DECISIONS]
    # Inputs of the last moment are undecided in the copy, and by now nobody may have led for long.
    troubles = [one for one in stands.json["troubles"] if "wait for a decision" not in one]
    assert stands.json["log"]["log_id"]
    assert troubles == []
    assert replayed.code == 0, replayed.err
    assert "VolumeOnOtherNode" in explained.out


async def test_a_log_without_its_snapshots_answers_the_same(nats: LocalNats, tmp_path: Path) -> None:
    """What docs/operating/backup.md says of restored streams: EVENTS and DECISIONS alone prove, replay and explain."""
    async with stage(nats, tmp_path) as here:
        await here.scraped(settled)
    connection = await connect(Access((nats.url,)), lambda _why: None)
    await connection.call(f"{API}.STREAM.DELETE.{SNAPSHOTS}", b"")
    await connection.close()

    words = ("--nats", nats.url)
    verified = await asyncio.to_thread(gpubinder, "verify", "--no-anchor", "--json", *words)
    replayed = await asyncio.to_thread(gpubinder, "replay", "--json", *words)
    explained = await asyncio.to_thread(gpubinder, "explain", "tenant-umbra/archive", *words)

    assert (verified.code, verified.json["whole"]) == (0, True), verified.err
    assert replayed.code == 0, replayed.err
    assert "VolumeOnOtherNode" in explained.out, explained.err
