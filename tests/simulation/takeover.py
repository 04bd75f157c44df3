"""The log is lost, and somebody takes the cluster over as it stands: all processes stopped, `adopt`, all started."""

import asyncio
from collections.abc import Mapping

import msgspec

from binder.kube import ApiError
from binder.memory_journal import MemoryJournal
from deploy.adopt import adopt_fresh
from deploy.takeover import NotAdoptable, take_over
from deploy.world.manifests import dig
from deploy.world.store import Backup
from schemas.frames import Frame, Genesis, decode_record
from schemas.kinds import CONFIGMAP
from schemas.names import ANCHOR_CONFIGMAP
from schemas.streams import DECISIONS, EVENTS, SNAPSHOTS
from tests.simulation.labels import SYSTEM
from tests.simulation.processes import PROGRAM
from tests.simulation.world import World

ANCHOR = f"{SYSTEM}/{ANCHOR_CONFIGMAP}"
TRIES = 5
ALL, COVERED, FEWER = "all", "covered", "fewer"
AGAIN_S = 1.0
WHOLE = 1000


class Loss(msgspec.Struct, frozen=True):
    """What is left. `kept`: of a thousand parts of the anchored log so many, 0: nothing of either stream.

    `anchor`, `snapshots`: whether they outlast it. `events`: of the inputs all, those that were decided on, or FEWER.
    """

    kept: int = 0
    anchor: bool = True
    snapshots: bool = False
    events: str = COVERED


def lose(world: World, loss: Loss) -> None:
    """Let the log be lost, and have somebody take the cluster over; nothing while that goes on already."""
    if world.stopped:
        return
    _stop(world, _left(world, loss))
    if not loss.anchor and world.cluster.find(CONFIGMAP, ANCHOR) is not None:
        world.cluster.api.store.remove(CONFIGMAP, ANCHOR)
    _begin(world)


def go_back(world: World, backup: Backup, *, bump: int = 0) -> None:
    """Let the API server come back from a backup; one of another generation than the log's is taken over (T4, T12)."""
    before = _anchored(world, "generation")
    world.restored += 1
    world.cluster.kubevirt.start_anew()
    world.cluster.api.store.restore(backup, bump=bump)
    if before != _anchored(world, "generation") and not world.stopped:
        whole = world.journal.streams
        _stop(world, _copied(world, {name: stream.last for name, stream in whole.items()}))
        _begin(world)


def _anchored(world: World, field: str) -> str | None:
    found: str | None = dig(world.cluster.find(CONFIGMAP, ANCHOR) or {}, "data", field)
    return found


def _stop(world: World, journal: MemoryJournal) -> None:
    """Let every process be stopped, and this be the log from now on."""
    world.stopped = True
    for name in list(world.processes):
        world.kill(name)
    world.journal = journal
    for heard in world.on_new_log:
        heard(world.journal)


def _begin(world: World) -> None:
    """Let somebody take over."""
    world.do(_adopted(world)).add_done_callback(lambda _: None)


def _left(world: World, loss: Loss) -> MemoryJournal:
    """Return what stands after the loss: both streams cut where the log was at one moment, or empty."""
    old, anchored = world.journal, _anchored(world, "sequence")
    # What an anchor vouches for stands whole, or is a loss: shorter by one message at least.
    most = min(int(anchored or 1), old.streams[DECISIONS].last) - 1
    decisions = min(loss.kept * most // WHOLE + bool(loss.kept), most) if most > 0 else 0
    if loss.kept and loss.events == FEWER:
        # Decisions may stand whole then: they are lost with what they were decided on.
        decisions = old.streams[DECISIONS].last if loss.kept == WHOLE else decisions
    covered = 0
    for message in old.streams[DECISIONS].messages[:decisions]:
        record = decode_record(message.body)
        covered = record.covers_to if isinstance(record, Frame) else covered
        covered = record.events_last if isinstance(record, Genesis) else covered
    inputs = {ALL: old.streams[EVENTS].last, COVERED: covered, FEWER: covered * loss.kept // (2 * WHOLE)}
    ends = {DECISIONS: decisions, EVENTS: inputs[loss.events]}
    ends[SNAPSHOTS] = old.streams[SNAPSHOTS].last if loss.snapshots else 0
    return _copied(world, ends)


def _copied(world: World, ends: Mapping[str, int]) -> MemoryJournal:
    """Return the log as it stands up to these sequences: what those who were stopped still say is heard by nobody."""
    old, new = world.journal, MemoryJournal(clock=world.stamp, replicated=True)
    for name, stream in old.streams.items():
        last = min(ends.get(name, 0), stream.last)
        kept = new.streams[name]
        kept.messages = [message for message in stream.messages if message.sequence <= last]
        kept.ids = {known: place for known, place in stream.ids.items() if place[0] <= last}
        kept.last = last
    return new


async def _adopted(world: World) -> None:
    """Take over as the command does, again where the API server goes back meanwhile: its anchor went back, too."""
    for _ in range(TRIES):
        restored = world.restored
        try:
            await _adopt(world)
            if world.restored == restored:
                break
        except ApiError:
            await asyncio.sleep(AGAIN_S)
        except NotAdoptable as refused:
            # A server that goes back meanwhile has other leases, as if somebody wrote them.
            if not world.restored:
                world.failures.append(("adopt", refused))
                break
            await asyncio.sleep(AGAIN_S)
        except Exception as error:  # noqa: BLE001 - a law says that nobody fails of this
            world.failures.append(("adopt", error))
            break
    world.stopped = False
    for name in world.names():
        world.start(name)


async def _adopt(world: World) -> None:
    try:
        await take_over(world.cluster.api, world.journal, SYSTEM, PROGRAM)
    except NotAdoptable as nothing:
        if "--fresh" not in str(nothing):
            raise
        await adopt_fresh(world.cluster.api, world.journal, SYSTEM, PROGRAM)
