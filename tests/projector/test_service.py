"""The projector on the log: only the newest decision is written, then each as it is said, nothing twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from binder.follower import Follower
from binder.logbook import Draft, LogWriter
from binder.memory_journal import MemoryJournal
from binder.step import RULES_VERSION
from binder.tip import canonical
from projector.service import Projector
from schemas.chain import EventsDigest
from schemas.decisions import Decision, SetClosed, SetOpened, SetPlaced, SetReleased, SetWaits
from schemas.events import Tick, encode_event
from schemas.frames import Entry
from schemas.kinds import GPU_CLAIM, POD
from schemas.reasons import Release, Wait
from schemas.streams import EVENTS, EVENTS_TICK
from tests.binder.leading import begin
from tests.projector.faults import Life
from tests.projector.scene import NODE, Scene, gates


class Log:
    """A log whose leader is the test: it decides what it likes."""

    def __init__(self, journal: MemoryJournal, writer: LogWriter) -> None:
        self.journal = journal
        self._writer = writer

    @classmethod
    async def begun(cls, journal: MemoryJournal) -> "Log":
        """Start a log."""
        return cls(journal, await begin(journal))

    async def say(self, *decisions: Decision) -> int:
        """Decide this on a tick; the frame covers all that came before it, outcomes too. Return the cause."""
        body, first = encode_event(Tick()), self._writer.tip.covers_to + 1
        cause = (await self.journal.info(EVENTS)).last + 1
        await self.journal.append(EVENTS, EVENTS_TICK, body, message_id=f"tick-{cause}")
        digest = EventsDigest()
        for sequence in range(first, cause + 1):
            message = await self.journal.get(EVENTS, sequence)
            assert message is not None
            digest.add(canonical(message))
        entries = (Entry(cause, decisions),) if decisions else ()
        await self._writer.append(Draft(RULES_VERSION, "0", "settings", first, cause, digest.hex(), entries))
        return cause


@asynccontextmanager
async def running(scene: Scene) -> AsyncIterator[Life]:
    """A projector that follows the scene's journal."""
    life = Life(scene.kube, {})
    projector = Projector(life.kube, scene.journal, instance="test", clock=lambda: scene.clock)
    task = asyncio.create_task(projector.run(Follower(scene.journal)))
    try:
        yield life
        assert not task.done(), task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_only_the_newest_decision_is_written_at_a_start(model: Scene) -> None:
    """T22: a projector folds to the tail first; what was overtaken before its start leaves no trace."""
    vmi, pod = await model.vmi(), await model.launcher()
    log = await Log.begun(model.journal)
    await log.say(SetOpened(vmi, model.claims(vmi, [2])))
    await log.say(SetWaits(vmi, Wait.NO_ROOM, "no node has room"))
    newest = await log.say(SetPlaced(vmi, NODE, pod["metadata"]["name"], pod["metadata"]["uid"]))
    await log.say()

    async with running(model):
        assert await model.reported(newest) == 0

    assert [told.stamp.sequence for told in await model.outcomes()] == [newest]
    assert await model.events() == []
    assert (await model.claim(vmi))["status"]["nodeName"] == NODE
    assert gates(await model.get(POD, pod["metadata"]["name"])) == []


async def test_each_decision_is_written_as_it_is_said(model: Scene) -> None:
    """From opening to release the claims show what was said last; a closed set is written no more."""
    vmi, pod = await model.vmi(), await model.launcher()
    uid = pod["metadata"]["uid"]
    log = await Log.begun(model.journal)
    shown = []
    async with running(model):
        for decision in (
            SetOpened(vmi, model.claims(vmi, [2])),
            SetWaits(vmi, Wait.NO_ROOM, "no node has room"),
            SetPlaced(vmi, NODE, pod["metadata"]["name"], uid),
            SetReleased(vmi, NODE, Release.LAUNCHER_ENDED),
        ):
            assert await model.reported(await log.say(decision)) == 0
            status = (await model.claim(vmi)).get("status", {})
            shown.append((status.get("phase"), *(one["reason"] for one in status.get("conditions", ()))))
        await log.say(SetClosed(vmi))

    assert shown == [(None,), ("Pending", "NoRoom"), ("Bound", "Placed"), ("Pending", "LauncherEnded")]
    assert len(await model.events()) == 1


async def test_what_is_known_to_have_landed_is_not_written_again(model: Scene) -> None:
    """C59: after a restart a set whose newest decision was reported is left alone."""
    vmi = await model.vmi()
    log = await Log.begun(model.journal)
    await log.say(SetOpened(vmi, model.claims(vmi, [2])))
    told = await log.say(SetWaits(vmi, Wait.NO_ROOM, "no node has room"))
    async with running(model):
        assert await model.reported(told) == 0
    await log.say()
    other = await model.vmi("vm-b")
    last = await log.say(SetOpened(other, model.claims(other, [1])))

    async with running(model) as life:
        assert await model.reported(last) == 0

    assert life.writes == 1
    assert [claim["spec"]["count"] for claim in await model.all(GPU_CLAIM)] == [2, 1]
