"""Whatever is lost of the log and what speaks of it: who may lead, and the one command that leads back (T3, T4).

Real streams on a real server, put together from copies of its store of two moments; the cluster is the model's.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import product
from pathlib import Path

import msgspec
import pytest

from binder.anchor import Anchor
from binder.follower import Follower
from binder.kube import PatchKind
from binder.newest import newest
from binder.service import Binder
from binder.shown import in_status
from binder.snapshots import StateSnapshots
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import check_streams, create_streams
from binder.tip import Tip
from deploy.adopt import adopt_fresh, check_fresh, last_of, tip_of
from deploy.cluster_in_memory import Cluster
from deploy.commands.endings import sentence
from deploy.commands.opening import open_nats
from deploy.commands.options import NatsOptions
from deploy.takeover import NotAdoptable, Stands, beginning, mended, take_over
from deploy.world.apiserver import ApiServer
from schemas.events import Tick, encode_event
from schemas.kinds import GPU_CLAIM
from schemas.streams import DECISIONS, EVENTS, EVENTS_TICK, SNAPSHOTS
from tests.binder.waiting import eventually, true

HOME = "gpubinder"
KEPT, OLDER, GROWN, LOST = "kept", "older", "grown", "lost"
INPUTS = 4
"""How many inputs each of the two moments has more than what was before it."""
DEADLINE_S = 120


class Combination(msgspec.Struct, frozen=True):
    """What is left of each part. `events` GROWN: older, and others have published since; `stamps`: of the newest."""

    events: str
    decisions: str
    snapshots: str
    anchor: str
    stamps: str

    def outcome(self) -> str:
        """Return what holds, as docs/operating/backup.md says it."""
        if self.decisions == LOST:
            nothing = (self.events, self.anchor, self.stamps) == (LOST, LOST, LOST)
            return "fresh" if nothing else "adopt"
        if LOST in {self.events, self.anchor}:
            return "adopt"
        if self.decisions == KEPT and self.events != KEPT:
            return "adopt"
        if self.decisions == OLDER and KEPT in {self.snapshots, self.anchor, self.stamps}:
            return "adopt"
        return "mend" if self.snapshots == LOST else "leads"


EVERY = [Combination(*parts) for parts in product((KEPT, OLDER, GROWN, LOST), *[(KEPT, OLDER, LOST)] * 3, (KEPT, LOST))]


class Copies(msgspec.Struct, frozen=True):
    """The store's directories by what is left of them, and the log's tips of both moments."""

    stores: dict[str, Path]
    tips: dict[str, Tip]

    def lay_out(self, into: Path, left: Combination) -> None:
        """Put a server's store together."""
        for stream, what in ((EVENTS, left.events), (DECISIONS, left.decisions), (SNAPSHOTS, left.snapshots)):
            if what != LOST:
                shutil.copytree(_streams(self.stores[what]) / stream, _streams(into) / stream)


def _streams(directory: Path) -> Path:
    return directory / "data" / "jetstream" / "$G" / "streams"


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """A log that was led twice, copied after each time, and EVENTS as it is when others went on after a loss."""
    return asyncio.run(_copies(tmp_path_factory.mktemp("log")))


async def _copies(directory: Path) -> Copies:
    here, api = NatsOptions(data=directory / "here"), Cluster(()).api
    api.writes.seed_namespace(HOME)
    tips: dict[str, Tip] = {}
    for moment in (OLDER, KEPT):
        async with open_nats(here, make=True) as opened:
            if moment == OLDER:
                await create_streams(opened.journal, replicas=1)
                await adopt_fresh(api, opened.journal, HOME, "test")
            for _ in range(INPUTS):
                follower = await _led(opened.journal, api)
            await StateSnapshots(opened.journal, "test").keep(follower.book.state, follower.tip)
            tips[moment] = follower.tip
        shutil.copytree(here.data, directory / moment)
    shutil.copytree(directory / OLDER, directory / GROWN)
    async with open_nats(NatsOptions(data=directory / GROWN)) as opened:
        while await last_of(opened.journal, EVENTS) <= tips[KEPT].covers_to:
            await _publish(opened.journal)
    await api.close()
    return Copies({moment: directory / moment for moment in (OLDER, KEPT, GROWN)}, tips)


async def _publish(journal: JetStreamJournal) -> int:
    return await journal.append(EVENTS, EVENTS_TICK, encode_event(Tick()), message_id=os.urandom(8).hex())


async def _covers(journal: JetStreamJournal, sequence: int) -> bool:
    return (await newest(journal, await last_of(journal, DECISIONS))).frame.covers_to >= sequence


async def _led(journal: JetStreamJournal, api: ApiServer) -> Follower:
    """Start as `gpubinder run` does, until an input that came since is decided on. Raises what ends a process."""
    await check_streams(journal)
    shown = partial(in_status, api)
    binder = Binder(
        journal, Anchor(api, HOME), StateSnapshots(journal, "test"), identity="a", program="test", shown=shown
    )
    following = asyncio.create_task(binder.run())
    parts = [following]

    async def ended_or(holds: Callable[[], Awaitable[bool]]) -> bool:
        for part in parts:
            if part.done():
                part.result()
        return await holds()

    try:
        await eventually(lambda: ended_or(lambda: true(binder.follower is not None)), "a standby", DEADLINE_S)
        parts.append(asyncio.create_task(binder.lead()))
        await eventually(lambda: ended_or(lambda: true(binder.leading)), "a leader", DEADLINE_S)
        asked = await _publish(journal)
        await eventually(lambda: ended_or(lambda: _covers(journal, asked)), "a frame", DEADLINE_S)
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
    follower = Follower(journal)
    await follower.start()
    await follower.close()
    return follower


@pytest.mark.nats
@pytest.mark.parametrize("left", EVERY, ids=["-".join(msgspec.structs.astuple(one)) for one in EVERY])
async def test_every_combination_of_what_is_left_has_one_way_on(
    left: Combination, copies: Copies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T3, T4: it is led as it stands, or what ends `run` names the command that helps, which then does."""
    # A loss is real here or there is none: how long it must last only costs time.
    monkeypatch.setattr("binder.service.Follower", partial(Follower, confirm_seconds=0.2))
    monkeypatch.setattr("binder.service.CONFIRM_SECONDS", 0.2)
    api = await _cluster(left, copies)
    copies.lay_out(tmp_path, left)
    async with open_nats(NatsOptions(data=tmp_path), make=True) as opened:
        before = await last_of(opened.journal, DECISIONS)
        came = await _gone_on(opened.journal, api)
        after = await last_of(opened.journal, DECISIONS)
    await api.close()

    assert came == left.outcome()
    assert after > before


async def _cluster(left: Combination, copies: Copies) -> ApiServer:
    """Return the cluster with the anchor of that moment, and a claim that shows the newest decision."""
    api = Cluster(()).api
    for namespace in (HOME, "t"):
        api.writes.seed_namespace(namespace)
    if left.anchor != LOST:
        await Anchor(api, HOME).create(copies.tips[left.anchor])
    if left.stamps != LOST:
        head = {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind, "metadata": {"name": "mine"}}
        await api.create(GPU_CLAIM, "t", msgspec.json.encode(head | {"spec": {"className": "a", "count": 1}}))
        newest_tip = copies.tips[KEPT]
        stamp = {"generation": newest_tip.generation, "sequence": newest_tip.covers_to, "entry": 0}
        body = msgspec.json.encode({"status": {"phase": "Pending", "stamp": stamp}})
        await api.patch(GPU_CLAIM, "t", "mine", body, kind=PatchKind.MERGE, subresource="status")
    return api


async def _gone_on(journal: JetStreamJournal, api: ApiServer) -> str:
    """Do what the messages say until the log is led, and return what that was."""
    ended = await _end(journal, api)
    if ended is None:
        return "leads"
    told = sentence(ended)
    assert told is not None, repr(ended)
    assert "`gpubinder adopt`" in told[0], told
    generation = (await _tip(journal)).generation
    came = await _adopted(journal, api)
    await _led(journal, api)
    assert ((await _tip(journal)).generation == generation) == (came == "mend")
    return came


async def _end(journal: JetStreamJournal, api: ApiServer) -> Exception | None:
    """Lead, and return what ends the process."""
    try:
        await _led(journal, api)
    except Exception as error:  # noqa: BLE001 - any may; the caller asks what the command line says of it
        return error
    return None


async def _adopted(journal: JetStreamJournal, api: ApiServer) -> str:
    """Do as `gpubinder adopt` does, with --fresh where it says so."""
    try:
        await beginning(api, journal, HOME)
    except Stands:
        assert await mended(journal, partial(create_streams, replicas=1))
        return "mend"
    except NotAdoptable as error:
        if "say --fresh" not in str(error):
            raise
        await check_fresh(api, journal, HOME)
        await create_streams(journal, replicas=1)
        await adopt_fresh(api, journal, HOME, "test")
        return "fresh"
    await create_streams(journal, replicas=1)
    await take_over(api, journal, HOME, "test")
    return "adopt"


async def _tip(journal: JetStreamJournal) -> Tip:
    return await tip_of(journal, await last_of(journal, DECISIONS))
