"""Snapshots: whole or not there, the newest that fits, and never more than a few (T7)."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from binder.journal import BatchJournal, Message
from binder.memory_journal import MemoryJournal
from binder.snapshots import CHUNK_BYTES, KEPT, Manifest, newest_snapshot, put_snapshot
from binder.tip import Tip
from schemas.streams import SNAPSHOT_CHUNK, SNAPSHOT_MANIFEST, SNAPSHOTS

TIP = Tip("log", 1, 2, 9, bytes(range(32)), bytes(32), 77)


async def _put(journal: BatchJournal, body: bytes, *, tip: Tip = TIP, state: int = 1, rules: int = 1) -> int:
    return await put_snapshot(journal, body, tip=tip, state=state, rules=rules, program="0", about={"seen": "77"})


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 1])
async def test_a_snapshot_comes_back_whole(journal: BatchJournal, size: int) -> None:
    """What was put is what is read: body, tip and what was said about it, in as many chunks as it takes."""
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    await _put(journal, b"older")
    sequence = await _put(journal, body)

    found = await newest_snapshot(journal, state=1, rules=1)

    assert found is not None
    assert found.body == body
    assert (found.manifest.tip, found.manifest.about, found.manifest.size) == (TIP, {"seen": "77"}, size)
    assert sequence == 2 + found.manifest.chunks + 1


async def test_without_a_snapshot_there_is_none(journal: BatchJournal) -> None:
    """An empty stream, and one with snapshots of other schemas or rules only, have none to offer."""
    assert await newest_snapshot(journal, state=1, rules=1) is None
    await _put(journal, b"x", state=2)
    await _put(journal, b"x", rules=2)

    assert await newest_snapshot(journal, state=1, rules=1) is None


async def test_the_newest_that_fits_is_taken(journal: BatchJournal) -> None:
    """T7: a rollback passes over the snapshots of the newer version and finds its own."""
    await _put(journal, b"one")
    await _put(journal, b"two")
    await _put(journal, b"newer", state=2)

    found = await newest_snapshot(journal, state=1, rules=1)

    assert found is not None
    assert found.body == b"two"


async def test_only_a_few_are_kept(journal: BatchJournal) -> None:
    """Putting one removes those before the last few, chunks and all."""
    for number in range(KEPT + 3):
        await _put(journal, b"%d" % number * CHUNK_BYTES)

    info = await journal.info(SNAPSHOTS)

    assert (info.messages, info.last) == (2 * KEPT, 2 * (KEPT + 3))
    assert (await newest_snapshot(journal, state=1, rules=1)) is not None


async def test_snapshots_put_at_once_are_both_whole(journal: BatchJournal) -> None:
    """Two writers at the same time: the batches stand one after the other, and the later one is read."""
    bodies = [b"a" * (2 * CHUNK_BYTES + 5), b"b" * (2 * CHUNK_BYTES + 5)]
    first, second = await asyncio.gather(*(_put(journal, body) for body in bodies))

    found = await newest_snapshot(journal, state=1, rules=1)

    assert found is not None
    assert found.body == bodies[first < second]


def _changed(message: Message, body: bytes) -> Message:
    return msgspec.structs.replace(message, body=body)


DAMAGE: dict[str, Callable[[list[Message]], object]] = {
    "a chunk changed": lambda held: held.__setitem__(-2, _changed(held[-2], b"y")),
    "a chunk missing": lambda held: held.pop(-2),
    "a manifest of other chunks": lambda held: held.__setitem__(
        -1,
        _changed(
            held[-1],
            msgspec.json.encode(
                msgspec.structs.replace(msgspec.json.decode(held[-1].body, type=Manifest), sha256="0" * 64)
            ),
        ),
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
async def test_a_damaged_snapshot_is_passed_over(case: str) -> None:
    """A snapshot is a cache: one that does not match its digest is not used, the one before it is."""
    journal = MemoryJournal()
    await _put(journal, b"good")
    await _put(journal, b"x" * (CHUNK_BYTES + 1))

    DAMAGE[case](journal.streams[SNAPSHOTS].messages)

    found = await newest_snapshot(journal, state=1, rules=1)
    assert found is not None
    assert found.body == b"good"


async def test_a_manifest_that_cannot_be_read_ends_the_search() -> None:
    """Where the next snapshot ends is not known then: the log is read from its start."""
    journal = MemoryJournal()
    await _put(journal, b"good")
    await journal.append_batch(SNAPSHOTS, [(SNAPSHOT_CHUNK, b"x"), (SNAPSHOT_MANIFEST, b"{}")])

    assert await newest_snapshot(journal, state=1, rules=1) is None
