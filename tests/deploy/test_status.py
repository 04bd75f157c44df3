"""`gpubinder status`: what is told of an installation that does its work, and of each trouble."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from binder.access import Access
from binder.jetstream import connect
from binder.stream_journal import JetStreamJournal
from deploy.local import LocalNats
from deploy.role_names import Role
from deploy.standing import Standing, standing
from schemas.kinds import CONFIGMAP, LEASE
from schemas.names import ANCHOR_CONFIGMAP, LEASE_PREFIX
from schemas.streams import DECISIONS, EVENTS, EVENTS_TICK
from tests.deploy.watched_stage import NAMESPACE, Stage, settled, stage


@asynccontextmanager
async def reopened(nats: LocalNats) -> AsyncIterator[JetStreamJournal]:
    """The journal, once all roles have ended."""
    connection = await connect(Access((nats.url,)), lambda _why: None)
    yield JetStreamJournal(connection)
    await connection.close()


async def told(here: Stage) -> Standing:
    """Look once."""
    return await standing(here.place.journal, here.cluster.api, NAMESPACE)


async def test_an_installation_that_does_its_work(nats: LocalNats, tmp_path: Path) -> None:
    """Log, leader, leases and ends are those that are; nothing stands in the way."""
    async with stage(nats, tmp_path) as here:
        await here.scraped(settled)
        scrape, ends = await here.quiet()
        found = await told(here)

    assert found.troubles == ()
    assert found.log.log_id == scrape.all("gpubinder_log_info")[0].labels["log_id"]
    assert (found.log.leader, found.log.epoch) == (here.place.identity, scrape.value("gpubinder_log_epoch"))
    assert found.log.decided + found.log.waiting >= ends[EVENTS]
    assert {one.name: one.last for one in found.streams}[DECISIONS] >= ends[DECISIONS]
    assert found.leases == {str(role): here.place.identity for role in Role if role is not Role.WEBHOOKS}
    assert found.anchor is not None


async def test_troubles_are_named(nats: LocalNats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody leads, inputs wait, a stream is nearly full, an anchor is ahead, or gone: each in a sentence."""
    monkeypatch.setattr("deploy.standing.BEHIND_SECONDS", 0.0)
    async with stage(nats, tmp_path) as here:
        await here.scraped(settled)
        api = here.cluster.api
    config = msgspec.json.decode(await api.get(CONFIGMAP, NAMESPACE, ANCHOR_CONFIGMAP))
    config["data"]["sequence"] = "4711"
    await api.replace(CONFIGMAP, NAMESPACE, ANCHOR_CONFIGMAP, msgspec.json.encode(config))
    await api.delete(LEASE, NAMESPACE, f"{LEASE_PREFIX}{Role.BINDER}")
    async with reopened(nats) as journal:
        await journal.append(EVENTS, EVENTS_TICK, b'{"type":"tick"}', message_id="x")
        end = (await journal.info(EVENTS)).bytes + 1000
        described = await journal.manage(f"STREAM.INFO.{EVENTS}", {}, EVENTS)
        await journal.manage(f"STREAM.UPDATE.{EVENTS}", {**described.config, "max_bytes": end}, EVENTS)
        found = await standing(journal, api, NAMESPACE)
        await api.delete(CONFIGMAP, NAMESPACE, ANCHOR_CONFIGMAP)
        without = await standing(journal, api, NAMESPACE)

    sentences = "\n".join(found.troubles)
    for words in (
        "nobody leads as binder",
        "inputs wait for a decision",
        "the anchor names DECISIONS message 4711",
        "% full",
    ):
        assert words in sentences
    assert "no anchor stands" in "\n".join(without.troubles)
