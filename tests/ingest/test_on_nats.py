"""Ingest on a real nats-server that is killed and comes back: nothing is lost, doubled or out of order."""

import asyncio

import pytest

from binder.access import Access
from binder.jetstream import connect
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.local import LocalNats
from deploy.world.apiserver import ApiServer
from ingest.service import Ingest
from schemas import kinds
from schemas.events import Changes
from tests.error_logs import ErrorLogs
from tests.ingest.following import SETTINGS_NAMESPACE, Leader, settled, until
from tests.ingest.given import put

PODS = 1200


async def test_t13_ingest_goes_on_where_a_killed_nats_server_left_it(nats: LocalNats, error_logs: ErrorLogs) -> None:
    """Killed in the middle of a list and again while watching: the fold is the world, each object listed once (T3)."""
    error_logs.allow("nats")
    server = ApiServer()
    for number in range(PODS):
        put(server, kinds.POD, "launcher", f"pod-{number:04}")
    connection = await connect(Access((nats.url,)), pytest.fail)
    journal = JetStreamJournal(connection)
    await create_streams(journal, replicas=1)
    leader = Leader(journal)
    await leader.begin()
    server.writes.seed_namespace(SETTINGS_NAMESPACE)
    ingest = Ingest(server, journal, SETTINGS_NAMESPACE, in_flight=2)
    tasks = [asyncio.create_task(leader.run()), asyncio.create_task(ingest.run())]
    await until(lambda: len(_listed(leader)) >= 400, "a part of the list")
    await nats.server.restart()
    await settled(server, leader, ingest)
    listed = _listed(leader)
    await nats.server.restart()
    put(server, kinds.POD, "launcher", "pod-0000", status__phase="Running")
    server.store.remove(kinds.POD, "tenant-a/pod-0001")
    await settled(server, leader, ingest)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await connection.close()
    assert [task.exception() for task in tasks if not task.cancelled()] == []
    assert listed == [f"pod-{number:04}" for number in range(PODS)]


def _listed(leader: Leader) -> list[str]:
    chunks = [event for event in leader.published(Changes) if event.kind == "pods"]
    return [view.name for chunk in chunks for view in chunk.changes]
