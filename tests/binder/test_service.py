"""The binder as a process: what cuts a takeover short, what ends a leader, how long a frame may grow."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from typing_extensions import override

from binder.anchor import Anchor, NotOurs
from binder.journal import Denied
from binder.kube import PatchKind
from binder.logbook import append_genesis
from binder.memory_journal import MemoryJournal
from binder.pace import Pace
from binder.service import Binder
from binder.snapshots import StateSnapshots
from binder.tip import START, advance
from deploy.world.apiserver import ApiServer
from deploy.world.clock import WallClock
from schemas.events import Tick, encode_event
from schemas.frames import Epoch, Frame, decode_record
from schemas.kinds import CONFIGMAP, NAMESPACE
from schemas.names import ANCHOR_CONFIGMAP, SETTING_PAUSED
from schemas.objects import ClaimView, NodeSelectorTerm, NodeView, Requirement, SettingsView
from schemas.streams import DECISIONS, DECISIONS_EPOCH, EVENTS, EVENTS_TICK, EVENTS_WATCH, MESSAGE_BYTES_MAX
from tests.binder.leading import GENESIS
from tests.binder.scene import Scene, launcher
from tests.binder.test_heart_bounds import RESOURCE, a_scene, a_vmi
from tests.binder.waiting import SECONDS, eventually, true

HOME = "gpubinder"
SLOW_S = 0.05


class HeldEpochs(MemoryJournal):
    """Stores an epoch's record late and unacknowledged while `held`; refuses what is for the subject `denied`."""

    held = False
    denied = ""
    late = 0

    @override
    async def append(
        self,
        stream: str,
        subject: str,
        body: bytes,
        *,
        message_id: str,
        expected_last: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Store one message, if its subject is not denied."""
        if subject == self.denied:
            raise Denied(f"these credentials may not publish {subject}")
        if self.held and subject == DECISIONS_EPOCH:
            self.late += 1
            # As a server does that is slow: the record arrives after its sender was cancelled.
            asyncio.get_running_loop().call_later(SLOW_S, self._land, subject, body, message_id)
            await asyncio.Event().wait()
        return await super().append(
            stream, subject, body, message_id=message_id, expected_last=expected_last, headers=headers
        )

    def _land(self, subject: str, body: bytes, message_id: str) -> None:
        landing = MemoryJournal.append(self, DECISIONS, subject, body, message_id=message_id)
        self.landed = asyncio.ensure_future(landing)


@asynccontextmanager
async def a_binder(journal: MemoryJournal) -> AsyncIterator[tuple[Binder, ApiServer]]:
    """Run a standby on an adopted log; the block leads as it likes."""
    api = ApiServer(clock=WallClock())
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    await api.create(NAMESPACE, "", msgspec.json.encode(home))
    await append_genesis(journal, GENESIS)
    stored = await journal.get(DECISIONS, 1)
    assert stored is not None
    anchor = Anchor(api, HOME)
    await anchor.create(advance(START, stored)[0])
    binder = Binder(journal, anchor, StateSnapshots(journal, "0"), identity="a", program="0")
    following = asyncio.create_task(binder.run())
    await eventually(lambda: true(binder.follower is not None and binder.follower.tip.sequence >= 1), "the standby")
    try:
        yield binder, api
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def ended(task: asyncio.Task[None]) -> None:
    """Cancel a leader, as its lost lease does."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def epochs(journal: MemoryJournal) -> int:
    """Count the epochs of the log."""
    return sum(isinstance(decode_record(one.body), Epoch) for one in journal.streams[DECISIONS].messages)


async def test_a_lease_lost_while_an_epoch_is_opened_leaves_the_standby_at_work() -> None:
    """T2: whoever loses the lease before its epoch's late record lands follows on, and leads when it has it again."""
    journal = HeldEpochs()
    async with a_binder(journal) as (binder, _):
        journal.held = True
        leading = asyncio.create_task(binder.lead())
        await eventually(lambda: true(journal.late > 0), "an epoch on its way")
        await ended(leading)
        journal.held = False
        await eventually(lambda: _counted(journal, 1), "the late record")

        again = asyncio.create_task(binder.lead())
        await journal.append(EVENTS, EVENTS_TICK, encode_event(Tick()), message_id="t1")
        await eventually(lambda: _covers(journal, 1), "a frame of the second try")
        await ended(again)


async def _counted(journal: MemoryJournal, count: int) -> bool:
    return await epochs(journal) >= count


async def _covers(journal: MemoryJournal, sequence: int) -> bool:
    frames = [decode_record(one.body) for one in journal.streams[DECISIONS].messages]
    return any(isinstance(frame, Frame) and frame.covers_to >= sequence for frame in frames)


async def spoil_anchor(api: ApiServer, _journal: HeldEpochs) -> None:
    """Have somebody write nonsense into the anchor."""
    patch = b'{"data":{"sequence":"many"}}'
    await api.patch(CONFIGMAP, HOME, ANCHOR_CONFIGMAP, patch, kind=PatchKind.MERGE)


async def deny_ticks(_api: ApiServer, journal: HeldEpochs) -> None:
    """Have the server refuse what tells the time."""
    journal.denied = EVENTS_TICK


@pytest.mark.parametrize(("harm", "error"), [(spoil_anchor, NotOurs), (deny_ticks, Denied)])
async def test_a_leader_without_anchor_or_time_stops_and_says_so(
    harm: Callable[[ApiServer, HeldEpochs], Awaitable[None]],
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T4, T9: what a leader does beside its frames never ends in silence while the frames go on."""
    monkeypatch.setattr("binder.service.TICK_SECONDS", 0.01)
    journal = HeldEpochs()
    async with a_binder(journal) as (binder, api):
        leading = asyncio.create_task(binder.lead())
        await eventually(lambda: true(binder.leading), "a leader")
        await harm(api, journal)
        for number, (_, _, body, _) in enumerate(a_waiting_vm().log):
            await journal.append(EVENTS, f"{EVENTS_WATCH}.any", body, message_id=f"e{number}")
        with pytest.raises(error):
            await asyncio.wait_for(leading, SECONDS)


class Gate(Pace):
    """A pace that the test sets: each frame takes one of `leave`."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.leave = asyncio.Semaphore(0)

    @override
    async def begin(self) -> None:
        """Wait for leave."""
        await self.leave.acquire()


async def test_what_comes_between_two_frames_shares_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """T5: frames begin at a pace, so that one write and one fsync are for all that came since; in order, none lost."""
    gate, journal = Gate(), MemoryJournal()
    monkeypatch.setattr("binder.company.Pace", lambda _every_s: gate)
    async with a_binder(journal) as (binder, _):
        leading = asyncio.create_task(binder.lead())
        for first, last in ((1, 1), (2, 4)):
            for number in range(first, last + 1):
                await journal.append(EVENTS, EVENTS_TICK, encode_event(Tick()), message_id=f"t{number}")
            gate.leave.release()
            await eventually(partial(_covers, journal, last), "a frame of it")
        await ended(leading)

    frames = [decode_record(one.body) for one in journal.streams[DECISIONS].messages]
    assert [(one.covers_from, one.covers_to) for one in frames if isinstance(one, Frame)] == [(1, 1), (2, 4)]


def a_waiting_vm() -> Scene:
    """Return a scene in which a set waits, so that time matters."""
    scene = a_scene(units=0)
    vmi = a_vmi(scene, "vm")
    scene.admit(vmi, "r")
    scene.show(launcher(vmi, "p", "r", {RESOURCE: 1}))
    scene.show(replace(vmi, active_pods={"uid-p": ""}))
    return scene


async def test_time_is_told_while_a_claim_has_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """T9, C16: a node that fails a claim nobody runs on is left in time, though nothing else happens in the cluster."""
    monkeypatch.setattr("binder.service.TICK_SECONDS", 0.01)
    scene = a_scene()
    journal = MemoryJournal()
    async with a_binder(journal) as (binder, _):
        leading = asyncio.create_task(binder.lead())
        await eventually(lambda: true(binder.leading), "a leader")
        await _hear(journal, scene)
        quiet = len(_ticks(journal))
        scene.log.clear()
        [class_name] = scene.objects["gpuclasses"]
        scene.show(ClaimView("mine", "", "", "t", class_name=class_name))
        await _hear(journal, scene)
        await eventually(lambda: true(len(_ticks(journal)) > 2), "ticks")
        await ended(leading)
    assert quiet == 0


async def _hear(journal: MemoryJournal, scene: Scene) -> None:
    last = (await journal.info(EVENTS)).last
    for number, (_, _, body, _) in enumerate(scene.log, 1):
        await journal.append(EVENTS, f"{EVENTS_WATCH}.any", body, message_id=f"heard{last + number}")
    await eventually(partial(_covers, journal, last + len(scene.log)), "a frame over all of it")


def _ticks(journal: MemoryJournal) -> list[str]:
    return [one.subject for one in journal.streams[EVENTS].messages if one.subject == EVENTS_TICK]


async def test_a_setting_that_cant_be_read_is_named_once() -> None:
    """T7: an operator who writes `paused: yes` hears that placing goes on, and not again with every frame."""
    scene = a_scene()
    scene.show(SettingsView("gpubinder-settings", "", "", "gpubinder", data={SETTING_PAUSED: "yes"}))
    scene.show(NodeView("n2", "", ""))
    journal = MemoryJournal()
    async with a_binder(journal) as (binder, _):
        with capture_logs() as logs:
            leading = asyncio.create_task(binder.lead())
            await eventually(lambda: true(binder.leading), "a leader")
            for number, (_, _, body, _) in enumerate(scene.log):
                await journal.append(EVENTS, f"{EVENTS_WATCH}.any", body, message_id=f"e{number}")
                await eventually(partial(_covers, journal, number + 1), "a frame")
            await ended(leading)
    said = [log["problem"] for log in logs if log["log_level"] == "warning"]
    assert said == [f"{SETTING_PAUSED}: must be true or false"]


async def test_frames_stay_below_a_message_however_long_the_affinities_of_waiting_inputs_are() -> None:
    """T5: a tenant's pods with affinities of a megabyte each can't make a frame that no server takes."""
    scene = a_scene()
    long = Requirement("zone", "NotIn", tuple(f"{number:060}" for number in range(14_000)))
    for number in range(6):
        vmi = a_vmi(scene, f"vm{number}")
        scene.admit(vmi, f"r{number}")
        pod = launcher(vmi, f"p{number}", f"r{number}", {RESOURCE: 1})
        scene.show(replace(pod, terms=(NodeSelectorTerm((long,)),)))
        scene.show(replace(vmi, active_pods={f"uid-p{number}": ""}))
    journal = MemoryJournal()
    async with a_binder(journal) as (binder, _):
        leading = asyncio.create_task(binder.lead())
        await eventually(lambda: true(binder.leading), "a leader")
        # All of them wait when the leader looks: a new leader places on what came after it alone.
        for number, (_, _, body, _) in enumerate(scene.log):
            await journal.append(EVENTS, f"{EVENTS_WATCH}.any", body, message_id=f"e{number}")
        await eventually(lambda: _done_or_covers(leading, journal, len(scene.log)), "frames over all inputs")
        assert not leading.done(), leading.exception()
        await ended(leading)
    sizes = [len(one.body) for one in journal.streams[DECISIONS].messages]
    assert sum(sizes) > MESSAGE_BYTES_MAX > max(sizes)


async def _done_or_covers(leading: asyncio.Task[None], journal: MemoryJournal, sequence: int) -> bool:
    return leading.done() or await _covers(journal, sequence)
