"""Snapshots of the folded state: chunks and a manifest in one atomic batch, so none is ever torn.

A snapshot is a cache: whatever does not match is passed over, and a replay from the log's start
takes its place. Its manifest carries the log's tip, which a reader proves before it goes on from there.
"""

import asyncio
import hashlib
import zlib
from collections.abc import Mapping

import msgspec
import structlog

from binder.journal import BatchJournal, Gap, Message, Unavailable, Unclear
from binder.snapshot import decode_state, encode_state
from binder.state import STATE_SCHEMA, State
from binder.step import RULES_VERSION
from binder.tip import Tip
from schemas.streams import SNAPSHOT_CHUNK, SNAPSHOT_MANIFEST, SNAPSHOTS

_log = structlog.get_logger(__name__)

CHUNK_BYTES = 512 * 1024
KEPT = 3
"""How many snapshots stay; older ones are removed when a new one was put."""


SnapshotStore = BatchJournal
"""Where snapshots are kept: any journal that stores batches, all or none."""


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last message of a snapshot. `chunks` messages stand right before it.

    `tip` is the log that the state was folded from, `state` the schema version of the folded state
    and `rules` the rules version: another one is no use (T7). `about` is the state's own, in JSON.
    """

    tip: Tip
    state: int
    rules: int
    program: str
    chunks: int
    size: int
    sha256: str
    about: Mapping[str, str] = {}


class Snapshot(msgspec.Struct, frozen=True):
    """A whole snapshot: what the manifest says, and the state's bytes."""

    manifest: Manifest
    body: bytes


async def put_snapshot(
    store: SnapshotStore,
    body: bytes,
    *,
    tip: Tip,
    state: int,
    rules: int,
    program: str,
    about: Mapping[str, str] | None = None,
) -> int:
    """Store a snapshot and return its manifest's sequence; older ones than the last few are removed.

    Raises as `Journal.append` does; nothing is stored then, or all of it (`Unclear`).
    """
    pieces = [body[at : at + CHUNK_BYTES] for at in range(0, len(body), CHUNK_BYTES)]
    manifest = Manifest(
        tip=tip,
        state=state,
        rules=rules,
        program=program,
        chunks=len(pieces),
        size=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        about=about or {},
    )
    parts = [(SNAPSHOT_CHUNK, piece) for piece in pieces]
    sequence = await store.append_batch(SNAPSHOTS, [*parts, (SNAPSHOT_MANIFEST, msgspec.json.encode(manifest))])
    await _prune(store, sequence)
    return sequence


async def newest_snapshot(store: SnapshotStore, *, state: int, rules: int) -> Snapshot | None:
    """Return the newest whole snapshot of this state schema and these rules, None where there is none, or no stream.

    A log that was restored from a backup comes without this stream, and answers all the same.
    """
    try:
        message = await store.last(SNAPSHOTS, SNAPSHOT_MANIFEST)
    except LookupError:
        return None
    for _ in range(KEPT + 1):
        manifest = _manifest(message)
        if message is None or manifest is None:
            return None
        if (manifest.state, manifest.rules) == (state, rules):
            body = await _body(store, message.sequence, manifest)
            if body is not None:
                return Snapshot(manifest, body)
        message = await _at(store, message.sequence - manifest.chunks - 1)
    return None


async def forget_snapshots(store: SnapshotStore) -> None:
    """Remove every snapshot, before a log begins or a lost one goes on: none tells of what stands from then on (T4)."""
    held = await store.info(SNAPSHOTS)
    await store.purge_below(SNAPSHOTS, held.last + 1)


async def _at(store: SnapshotStore, sequence: int) -> Message | None:
    return await store.get(SNAPSHOTS, sequence) if sequence > 0 else None


def _manifest(message: Message | None) -> Manifest | None:
    if message is None or message.subject != SNAPSHOT_MANIFEST:
        return None
    try:
        return msgspec.json.decode(message.body, type=Manifest)
    except msgspec.DecodeError:
        return None


async def _body(store: SnapshotStore, sequence: int, manifest: Manifest) -> bytes | None:
    pieces: list[bytes] = []
    if manifest.chunks:
        try:
            async for run in store.read(SNAPSHOTS, sequence - manifest.chunks, until=sequence - 1):
                pieces += [message.body for message in run if message.subject == SNAPSHOT_CHUNK]
        except Gap:
            return None
    body = b"".join(pieces)
    return body if hashlib.sha256(body).hexdigest() == manifest.sha256 else None


async def _prune(store: SnapshotStore, sequence: int) -> None:
    """Remove what stands before the oldest snapshot that is kept."""
    first = sequence
    for _ in range(KEPT):
        manifest = _manifest(await _at(store, sequence))
        if manifest is None:
            break
        first = sequence - manifest.chunks
        sequence = first - 1
    await store.purge_below(SNAPSHOTS, first)


class StateSnapshots:
    """The binder's snapshots: its state, compressed, with the place in the log it was folded to."""

    def __init__(self, store: SnapshotStore, program: str) -> None:
        self._store = store
        self._program = program

    async def newest(self) -> tuple[State, Tip] | None:
        """Return the newest usable state and its tip; None sends the reader to the log's start."""
        found = await newest_snapshot(self._store, state=STATE_SCHEMA, rules=RULES_VERSION)
        if found is None:
            return None
        try:
            body = await asyncio.to_thread(zlib.decompress, found.body)
            return decode_state(body), found.manifest.tip
        except (zlib.error, msgspec.MsgspecError) as damage:
            _log.warning("snapshot passed over", why=str(damage))
            return None

    async def keep(self, state: State, tip: Tip) -> None:
        """Store a state folded to `tip`. A failure costs the next start some time, and nothing else."""
        body = encode_state(state)
        try:
            stored = await asyncio.to_thread(zlib.compress, body, 1)
            await put_snapshot(
                self._store, stored, tip=tip, state=STATE_SCHEMA, rules=RULES_VERSION, program=self._program
            )
        except (Unclear, Unavailable) as trouble:
            _log.warning("snapshot not kept", why=str(trouble))
