"""The newest frame and epoch of the log, looked for from its end: who leads, what they read, how far they decided.

Nothing is proven, and of each record only a few fields are read: one that a later version wrote tells them as well.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from binder.journal import Gap, Journal, Message, Unavailable, Unclear
from binder.logbook import DataLoss, prove
from binder.tip import Tip, canonical
from schemas.chain import EventsDigest
from schemas.streams import DECISIONS, EVENTS

EPOCH: Final = "epoch"
FRAME: Final = "frame"

_AGAIN_S = 0.5


class Head(msgspec.Struct, frozen=True):
    """What an epoch's record or a frame tells of itself, whichever it is; `type` '' where there is none."""

    type: str = ""
    log_id: str = ""
    generation: int = 0
    epoch: int = 0
    holder: str = ""
    program: str = ""
    rules: int = 0
    covers_from: int = 0
    covers_to: int = 0
    events_digest: str = ""
    message_versions: tuple[int, ...] = ()
    message_kinds: tuple[str, ...] = ()


class Newest(msgspec.Struct, frozen=True):
    """The newest frame, and the newest epoch's record: one that has written no frame yet counts."""

    frame: Head = Head()
    epoch: Head = Head()


_decoder = msgspec.json.Decoder(Head)


def head_of(message: Message) -> Head:
    """Return what a DECISIONS message tells of itself. Raises `msgspec.MsgspecError` where it is no record."""
    return _decoder.decode(message.body)


async def newest(journal: Journal, last: int, check: Callable[[Message], object] = head_of) -> Newest:
    """Look from DECISIONS sequence `last` back to a frame; most often that is the first one looked at.

    `check` is shown each message, and stops the search by what it raises. Raises what `Journal.get` does.
    """
    epoch = Head()
    for sequence in range(last, 0, -1):
        head = await _at(journal, sequence, check)
        if head.type == EPOCH and not epoch.type:
            epoch = head
        if head.type == FRAME:
            return Newest(head, epoch if epoch.type else await _at(journal, head.epoch, check))
    return Newest(epoch=epoch)


async def _at(journal: Journal, sequence: int, check: Callable[[Message], object]) -> Head:
    message = await journal.get(DECISIONS, sequence)
    if message is None:
        return Head()
    check(message)
    return head_of(message)


async def prove_inputs(journal: Journal, tip_of: Callable[[], Tip], confirm_seconds: float) -> None:
    """Wait until both streams hold what the state was folded from. Raises `DataLoss` when they go on not to.

    A start from a snapshot reads neither: it would take what comes next in EVENTS for decided. `tip_of`: how far the
    log is folded.
    """
    await prove(journal, tip_of(), confirm_seconds)
    loop = asyncio.get_running_loop()
    since = loop.time()
    while True:
        tip = tip_of()
        try:
            if await inputs_stand(journal, tip):
                return
        except (Unavailable, Unclear):
            # No answer is no proof of a loss.
            since = loop.time()
        if loop.time() - since >= confirm_seconds:
            raise DataLoss(
                f"EVENTS does not hold the inputs up to {tip.covers_to} that the log decided on: the server lost "
                f"acknowledged messages; restore the store from the archive, or `gpubinder adopt` a new generation"
            )
        await asyncio.sleep(min(_AGAIN_S, confirm_seconds / 4))


async def inputs_stand(journal: Journal, tip: Tip) -> bool:
    """Say whether EVENTS holds what was decided on last: where decisions outlasted that, nobody can follow them.

    Others may have published since where inputs were lost. All that comes after a loss is other than it was, the
    inputs of the newest frame above all. Raises what the journal does, `LookupError` where there is no EVENTS.
    """
    if (await journal.info(EVENTS)).last < tip.covers_to:
        return False
    frame = (await newest(journal, tip.sequence)).frame
    if frame.generation != tip.generation or frame.covers_to < frame.covers_from:
        return True
    digest = EventsDigest()
    try:
        async for run in journal.read(EVENTS, frame.covers_from, until=frame.covers_to):
            for message in run:
                digest.add(canonical(message))
    except Gap:
        return False
    return digest.hex() == frame.events_digest
