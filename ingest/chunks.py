"""Changes in messages of bounded size: so many changes, so many bytes, in order (T5, T13)."""

from collections.abc import Iterator, Sequence
from typing import Final

from schemas.events import CHANGES_PER_CHUNK_MAX, Changes, encode_event
from schemas.objects import AnyView, Gone

CHUNK_BYTES_MAX: Final = 1_000_000
"""A chunk of more than one change stays below this: an admission request waits while one is folded."""


def chunks(kind: str, session: int, changes: Sequence[AnyView | Gone]) -> Iterator[bytes]:
    """Yield the bodies of messages that carry the changes in order.

    A single change may be larger than a chunk should be: `ingest.sources` bounds objects to what a message holds.
    """
    for start in range(0, len(changes), CHANGES_PER_CHUNK_MAX):
        yield from _fitting(kind, session, tuple(changes[start : start + CHANGES_PER_CHUNK_MAX]))


def _fitting(kind: str, session: int, changes: tuple[AnyView | Gone, ...]) -> Iterator[bytes]:
    body = encode_event(Changes(kind, session, changes))
    if len(body) <= CHUNK_BYTES_MAX or len(changes) == 1:
        yield body
        return
    middle = len(changes) // 2
    yield from _fitting(kind, session, changes[:middle])
    yield from _fitting(kind, session, changes[middle:])
