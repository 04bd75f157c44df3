"""Alerts in real situations: a process is scraped, something is taken from it, and what it shows makes them fire."""

import asyncio
import sys
from pathlib import Path

import pytest

from deploy.child import Child, fetch
from deploy.local import LocalNats
from deploy.watching import deletions
from schemas.kinds import GPU_CLASS
from schemas.streams import DECISIONS, DECISIONS_FRAME
from tests.alerts import engine
from tests.alerts.recording import Recording
from tests.alerts.staged_process import PORT_FILE
from tests.deploy.scraping import Scrape
from tests.deploy.waiting import until
from tests.deploy.watched_stage import settled, stage
from tests.error_logs import ErrorLogs

pytestmark = pytest.mark.promql
USED_CLASS = "l40s-24c"


async def fired(record: Recording, *, minutes: float) -> set[str]:
    """Return which alerts fire where the last scrape goes on as it was for so long."""
    answer = await asyncio.to_thread(
        engine.ask, record.series(lasting=round(minutes * 60 / engine.INTERVAL_SECONDS)), minutes=minutes
    )
    return answer.fired()


async def test_a_process_that_does_its_work_raises_no_alert(nats: LocalNats, tmp_path: Path) -> None:
    """What a real process shows after its VMs were served is no trouble."""
    record = Recording()
    async with stage(nats, tmp_path) as here:
        record.add(await here.scraped(settled))

    assert await fired(record, minutes=20) == set()


async def test_nats_is_stopped(
    nats: LocalNats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_logs: ErrorLogs
) -> None:
    """F1: the alert on NATS fires, and the one on deletions where a class is deleted meanwhile; back, both end."""
    monkeypatch.setattr(deletions, "LOOK_SECONDS", 0.1)
    error_logs.allow("nats")
    away, back = Recording(), Recording()
    async with stage(nats, tmp_path) as here:
        away.add(await here.scraped(settled))
        await asyncio.to_thread(nats.server.kill)
        await here.cluster.api.delete(GPU_CLASS, "", USED_CLASS)
        away.add(
            await here.scraped(
                lambda one: (
                    one.value("gpubinder_nats_connected") == 0
                    and one.value("gpubinder_deletions_waiting", kind="gpuclasses") == 1
                )
            )
        )
        ready = await here.page("/readyz")
        await asyncio.to_thread(nats.server.spawn)
        back.add(
            await here.scraped(
                lambda one: (
                    one.value("gpubinder_nats_connected") == 1
                    and one.value("gpubinder_deletions_waiting") == 0
                    and one.value("gpubinder_append_waiting_seconds") == 0
                )
            )
        )

    # A role that was started again meanwhile has a line of its own.
    assert ready[0] == 503
    assert "nats: no connection" in ready[1].splitlines()
    assert {"GpubinderNatsDown", "GpubinderDeletionsWait"} <= await fired(away, minutes=10)
    assert not {"GpubinderNatsDown", "GpubinderDeletionsWait"} & await fired(back, minutes=10)


async def test_the_leader_is_killed(tmp_path: Path) -> None:
    """A process that is killed answers no scrape: nobody leads, and the alert says for each role that nobody does."""
    child = Child("staged", [sys.executable, "-m", "tests.alerts.staged_process", tmp_path], tmp_path / "log")
    child.spawn()
    record = Recording()
    try:

        async def told() -> str | None:
            assert child.running, child.failure("ended")
            return (tmp_path / PORT_FILE).read_text() if (tmp_path / PORT_FILE).exists() else None

        port = int(await until(told, seconds=240))
        alive = Scrape((await asyncio.to_thread(fetch, port, "/metrics", timeout=20))[1].decode())
    finally:
        child.kill()
    for _ in range(4):
        record.add(alive)
    record.add(None)

    assert alive.value("gpubinder_leading", role="binder") == 1
    with pytest.raises(ConnectionRefusedError):
        await asyncio.to_thread(fetch, port, "/metrics")
    answer = await asyncio.to_thread(engine.ask, record.series(lasting=30), minutes=15)
    assert {one.labels["role"] for one in answer.firing("GpubinderNoLeader")} == {"binder", "ingest", "projector"}
    assert answer.fired() == {"GpubinderNoLeader", "GpubinderNoWebhooks", "GpubinderNotScraped"}


async def test_a_broken_log_is_told_before_the_process_ends(nats: LocalNats, tmp_path: Path) -> None:
    """T1: a frame that no writer of ours wrote ends the process; a scrape sees why, and so does readiness."""
    record = Recording()
    async with stage(nats, tmp_path, tell_end_s=3600) as here:
        record.add(await here.scraped(settled))
        await here.place.journal.append(DECISIONS, DECISIONS_FRAME, b"{}", message_id="forged")
        ended = await here.scraped(lambda one: bool(one.all("gpubinder_stopped")))
        record.add(ended)
        ready = await here.page("/readyz")

    # Whoever reads it first: a webhook says that it can't be read, a follower that the log is broken.
    (told,) = ended.all("gpubinder_stopped")
    assert told.labels["why"] in {"BrokenLog", "UnreadableLog"}
    assert ready[0] == 503
    assert f"ends: {told.labels['why']}" in ready[1].splitlines()
    assert "GpubinderStopped" in await fired(record, minutes=2)
