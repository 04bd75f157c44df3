"""How an installation stands, at one look from outside: who leads, how far it decided, what its streams hold.

Nothing is proven here, the ends of the streams and the leases are read: `gpubinder verify` proves.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from binder.anchor import Anchor, NotOurs
from binder.election import holder_of
from binder.journal import BatchJournal, Message, StreamInfo
from binder.kube import Kube
from binder.newest import newest
from deploy.role_names import ELECTED, ESSENTIAL, Role
from deploy.watching.tails import snapshot_in
from schemas.names import LEASE_PREFIX
from schemas.streams import DECISIONS, EVENTS, SNAPSHOT_MANIFEST, SNAPSHOTS

BEHIND_SECONDS = 30.0
FULL = 0.8


class StreamEnd(msgspec.Struct, frozen=True):
    """Where a stream ends, and how much it holds; `bytes_max` 0 where the store alone limits it."""

    name: str
    last: int
    bytes: int
    bytes_max: int


class Log(msgspec.Struct, frozen=True):
    """What the newest frame and its epoch's record say: the log, who leads it, with which program and rules.

    `decided`: the last EVENTS message that was decided on; `waiting_seconds`: how long the next one waits.
    """

    log_id: str = ""
    generation: int = 0
    epoch: int = 0
    leader: str = ""
    program: str = ""
    rules: int = 0
    decided: int = 0
    waiting: int = 0
    waiting_seconds: float = 0.0


class Standing(msgspec.Struct, frozen=True):
    """All of it. `leases`: who holds each role's, '' for nobody; None where the cluster was not asked."""

    log: Log
    streams: tuple[StreamEnd, ...]
    snapshot_inputs: int | None
    leases: dict[str, str] | None
    anchor: int | None
    troubles: tuple[str, ...]


async def standing(journal: BatchJournal, kube: Kube | None, namespace: str) -> Standing:
    """Look once. Raises what the journal and the API server do; without `kube` leases and anchor are left out."""
    infos = {name: await journal.info(name) for name in (EVENTS, DECISIONS, SNAPSHOTS)}
    log = await _log(journal, infos)
    manifest = await journal.last(SNAPSHOTS, SNAPSHOT_MANIFEST)
    snapshot = snapshot_in(manifest) if manifest is not None else None
    leases = {str(role): await _holder(kube, namespace, role) for role in ELECTED} if kube else None
    anchor, problem = await _anchor(kube, namespace) if kube else (None, "")
    streams = tuple(StreamEnd(name, one.last, one.bytes, one.bytes_max) for name, one in infos.items())
    found = (*_of_log(log, anchor, infos[DECISIONS].last), *_of_leases(leases), *_of_streams(streams))
    troubles = (problem, *found) if problem else found
    covered = infos[EVENTS].last - snapshot.covered if snapshot is not None else None
    return Standing(log, streams, covered, leases, anchor, tuple(troubles))


async def _log(journal: BatchJournal, infos: dict[str, StreamInfo]) -> Log:
    found = await newest(journal, infos[DECISIONS].last)
    frame = found.frame
    if not frame.type:
        return Log()
    waiting = max(infos[EVENTS].last - frame.covers_to, 0)
    undecided = await journal.get(EVENTS, frame.covers_to + 1) if waiting else None
    return Log(
        frame.log_id,
        frame.generation,
        frame.epoch,
        found.epoch.holder,
        frame.program,
        frame.rules,
        frame.covers_to,
        waiting,
        _age(undecided) if undecided is not None else 0.0,
    )


def _age(message: Message) -> float:
    return max(datetime.now(UTC).timestamp() - message.stamp_ns / 1e9, 0.0)


async def _holder(kube: Kube, namespace: str, role: Role) -> str:
    return (await holder_of(kube, namespace, f"{LEASE_PREFIX}{role}"))[0]


async def _anchor(kube: Kube, namespace: str) -> tuple[int | None, str]:
    try:
        found = await Anchor(kube, namespace).read()
    except NotOurs as error:
        return None, str(error)
    return (found.sequence, "") if found is not None else (None, f"no anchor stands in namespace {namespace}")


def _of_log(log: Log, anchor: int | None, last: int) -> Iterable[str]:
    if not log.log_id:
        yield "the log holds no frame: nobody has led it yet"
    if log.waiting_seconds > BEHIND_SECONDS:
        yield f"{log.waiting} inputs wait for a decision, the first of them for {log.waiting_seconds:.0f} s"
    if anchor is not None and anchor > last:
        yield (
            f"the anchor names DECISIONS message {anchor}, the log ends at {last}: messages were lost; "
            f"restore the streams, or `gpubinder adopt` a new generation"
        )


def _of_leases(leases: dict[str, str] | None) -> Iterable[str]:
    for role in ESSENTIAL:
        if leases is not None and not leases[role]:
            yield f"nobody leads as {role}"


def _of_streams(streams: Iterable[StreamEnd]) -> Iterable[str]:
    for one in streams:
        if one.bytes_max and one.bytes > FULL * one.bytes_max:
            yield f"{one.name} is {one.bytes / one.bytes_max:.0%} full: raise its max_bytes, or archive and begin anew"
