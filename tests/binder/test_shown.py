"""What objects show of the log, held against the log before anybody leads it (T4, T22)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from binder.anchor import Anchor, NotOurs
from binder.kube import PatchKind
from binder.memory_journal import MemoryJournal
from binder.service import Binder
from binder.shown import in_status
from binder.snapshots import StateSnapshots
from deploy.world.apiserver import ApiServer
from schemas.events import Tick, encode_event
from schemas.kinds import GPU_CLASS
from schemas.streams import EVENTS, EVENTS_TICK
from tests.binder.leading import log
from tests.binder.test_service import HOME, a_binder, ended
from tests.binder.waiting import eventually, true


async def show(api: ApiServer, generation: int, sequence: int) -> None:
    """Have a class show a decision."""
    body = {"apiVersion": GPU_CLASS.api_version, "kind": GPU_CLASS.kind, "metadata": {"name": "a"}}
    spec = {"spec": {"resourceName": "gpu/a", "mode": "Passthrough"}}
    await api.create(GPU_CLASS, "", msgspec.json.encode(body | spec))
    status = {"status": {"stamp": {"generation": generation, "sequence": sequence, "entry": 0}}}
    await api.patch(GPU_CLASS, "", "a", msgspec.json.encode(status), kind=PatchKind.MERGE, subresource="status")


@asynccontextmanager
async def another(journal: MemoryJournal, api: ApiServer) -> AsyncIterator[Binder]:
    """Run a process that starts now, on the log as it stands; it asks what objects show."""
    shown = lambda: in_status(api)  # noqa: E731 - as a place gives it
    anchor = Anchor(api, HOME)
    binder = Binder(journal, anchor, StateSnapshots(journal, "0"), identity="b", program="0", shown=shown)
    following = asyncio.create_task(binder.run())
    await eventually(lambda: true(binder.follower is not None and binder.follower.tip.sequence >= 1), "the standby")
    try:
        yield binder
    finally:
        await ended(following)


async def test_nobody_leads_where_an_object_shows_more_than_the_log_decided() -> None:
    """T4: less than a second of the tail is lost, so that the anchor stands; the stamps of objects tell."""
    journal = MemoryJournal()
    async with a_binder(journal) as (binder, api):
        leading = asyncio.create_task(binder.lead())
        await eventually(lambda: true(binder.leading), "a leader")
        await ended(leading)
        decided = (await log(journal))[-1].tip
        await show(api, decided.generation, decided.covers_to + 1)

        async with another(journal, api) as late:
            with pytest.raises(NotOurs, match=r"GPUClass a shows .* acknowledged decisions are lost.*gpubinder adopt"):
                await late.lead()
    assert (await log(journal))[-1].tip == decided, "and nothing was appended"


async def test_a_log_that_decided_what_objects_show_is_led() -> None:
    """T4: what is shown stands in the log, be it by a leader that went a moment ago."""
    journal = MemoryJournal()
    async with a_binder(journal) as (binder, api):
        leading = asyncio.create_task(binder.lead())
        await eventually(lambda: true(binder.leading), "a leader")
        await journal.append(EVENTS, EVENTS_TICK, encode_event(Tick()), message_id="t1")
        await eventually(lambda: _decided(journal), "a frame")
        await ended(leading)
        await show(api, 1, 1)

        async with another(journal, api) as late:
            again = asyncio.create_task(late.lead())
            await eventually(lambda: true(late.leading), "the next leader")
            await ended(again)


async def _decided(journal: MemoryJournal) -> bool:
    return (await log(journal))[-1].tip.covers_to >= 1
