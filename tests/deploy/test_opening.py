"""The embedded NATS of the command line: one server over one store, whoever comes first runs it."""

import asyncio
from pathlib import Path

import pytest

from binder.stream_setup import StreamsDiffer, create_streams
from deploy.commands.opening import LOCK_FILE, URL_FILE, open_begun, open_nats
from deploy.commands.options import NatsOptions
from deploy.local import LocalNats
from schemas.streams import DECISIONS
from tests.deploy.command import gpubinder
from tests.deploy.logs import Kept

pytestmark = pytest.mark.nats


async def test_a_second_process_uses_the_first_ones_server(demo_log: Kept, tmp_path: Path) -> None:
    """While one process runs a server over a store, another command works through it."""
    data = demo_log.copy(tmp_path / "log")
    async with open_nats(NatsOptions(data=data)) as held:
        url = (data / URL_FILE).read_text()

        ran = await asyncio.to_thread(gpubinder, "replay", "--json", "--data", data)

        assert ran.code == 0, ran.err
        assert ran.json["digest"] == demo_log.told.json["state"]["live"]
        assert (data / URL_FILE).read_text() == url
        assert (await held.journal.info(DECISIONS)).last == ran.json["decisions"]
    assert not (data / URL_FILE).exists()


async def test_two_that_start_at_once_share_one_server(tmp_path: Path) -> None:
    """Of two openings of one store at the same moment one runs the server, and both see what is written."""
    options = NatsOptions(data=tmp_path / "new")
    async with open_nats(options, make=True) as one, open_nats(options, make=True) as other:
        await create_streams(one.journal, replicas=1)
        assert (await other.journal.info(DECISIONS)).last == 0


async def test_what_a_dead_process_left_is_in_nobodys_way(demo_log: Kept, tmp_path: Path) -> None:
    """A URL and a lock file of a process that was killed: a new server is started over the store."""
    data = demo_log.copy(tmp_path / "log")
    (data / URL_FILE).write_text("nats://127.0.0.1:1")
    (data / LOCK_FILE).write_text("")

    async with open_nats(NatsOptions(data=data)) as opened:
        assert (await opened.journal.info(DECISIONS)).last == demo_log.told.json["log"]["log_through"]


async def test_a_pod_waits_for_the_log_to_be_begun(nats: LocalNats) -> None:
    """Where a process may wait, streams that come later are enough; where it may not, it says what is missing."""
    options = NatsOptions(nats.url)
    with pytest.raises(StreamsDiffer, match="gpubinder adopt"):
        async with open_begun(options, 0.0):
            pass

    async def opened() -> str:
        async with open_begun(options, 60.0) as found:
            return (await found.journal.info(DECISIONS)).created

    waiting = asyncio.create_task(opened())
    async with open_nats(options) as installer:
        await create_streams(installer.journal, replicas=1)
        assert await waiting == (await installer.journal.info(DECISIONS)).created
