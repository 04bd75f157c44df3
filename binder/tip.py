"""Where a verified log stands, and how one stored message moves it on (pure).

Reading and writing share this one step: whoever appends a frame reads it back through the same
checks that an auditor's reader applies (T1, T2).
"""

from itertools import pairwise

import msgspec

from binder.journal import Message
from schemas.chain import GENESIS_HASH, link, message_bytes
from schemas.frames import LOG_VERSION, Epoch, Frame, Genesis, Record, Void, decode_record
from schemas.streams import DECISIONS_EPOCH, DECISIONS_FRAME, DECISIONS_GENESIS, DECISIONS_VOID

_OPEN = -1


class BrokenLog(Exception):
    """The log contradicts itself at a DECISIONS sequence: it was changed, or written by no writer of ours."""

    def __init__(self, sequence: int, why: str) -> None:
        super().__init__(f"DECISIONS message {sequence}: {why}; stop, keep the streams, compare with the archive")
        self.sequence = sequence
        self.why = why


class Tip(msgspec.Struct, frozen=True):
    """A verified log up to `sequence`: who it is, its newest epoch, its chain hash, the inputs decided on.

    `before` is the hash before the last message, so that one read proves that the log still holds it.
    `covers_to` is the last EVENTS sequence decided on; -1 after a later generation's genesis that does not say
    where its inputs begin: its first frame begins where it must. `epoch` is 0 while nobody has led this generation.
    """

    log_id: str = ""
    generation: int = 0
    epoch: int = 0
    sequence: int = 0
    hash: bytes = GENESIS_HASH
    before: bytes = GENESIS_HASH
    covers_to: int = 0

    def holds(self, message: Message) -> bool:
        """Return whether this is the very message the tip stands on."""
        return message.sequence == self.sequence and link(self.before, canonical(message)) == self.hash


START = Tip()
"""Before the first message of a log."""


def canonical(message: Message) -> bytes:
    """Return the bytes of a stored message that are hashed."""
    return message_bytes(message.sequence, message.stamp_ns, message.subject, message.headers, message.body)


def advance(tip: Tip, message: Message) -> tuple[Tip, Record]:
    """Check the message that follows the tip; return the tip after it, and what it says.

    Raises `BrokenLog`, also for what this program can't read: a skipped decision would be another
    history (T6).
    """
    sequence = message.sequence
    if sequence != tip.sequence + 1:
        raise BrokenLog(sequence, f"it follows {tip.sequence}, messages are missing or repeated")
    try:
        record = decode_record(message.body)
    except msgspec.DecodeError as error:
        raise BrokenLog(sequence, f"unreadable to this program version ({error})") from None
    if record.version > LOG_VERSION:
        raise BrokenLog(sequence, f"of log version {record.version}, this program reads up to {LOG_VERSION}")
    if message.subject != _SUBJECTS[type(record)]:
        raise BrokenLog(sequence, f"a {type(record).__name__.lower()} on the subject {message.subject}")
    if isinstance(record, Genesis):
        moved = _begun(tip, sequence, record)
    elif (record.log_id, record.generation) != (tip.log_id, tip.generation):
        said, due = f"{record.log_id!r}/{record.generation}", f"{tip.log_id!r}/{tip.generation}"
        raise BrokenLog(sequence, f"of log and generation {said} where {due} stands")
    elif isinstance(record, Epoch):
        moved = msgspec.structs.replace(tip, epoch=sequence)
    elif isinstance(record, Frame):
        _check_frame(tip, sequence, record)
        moved = msgspec.structs.replace(tip, covers_to=record.covers_to)
    else:
        moved = tip
    after = link(tip.hash, canonical(message))
    return msgspec.structs.replace(moved, sequence=sequence, before=tip.hash, hash=after), record


_SUBJECTS: dict[type, str] = {
    Genesis: DECISIONS_GENESIS,
    Epoch: DECISIONS_EPOCH,
    Frame: DECISIONS_FRAME,
    Void: DECISIONS_VOID,
}


def _begun(tip: Tip, sequence: int, genesis: Genesis) -> Tip:
    """Return the tip of a generation that begins: the first of a log, or the next of the same log (T4)."""
    if not genesis.log_id:
        raise BrokenLog(sequence, "a genesis without a log id")
    if tip.sequence == 0:
        return Tip(log_id=genesis.log_id, generation=genesis.generation, covers_to=genesis.events_last)
    # Where a store came back from an older generation, objects and anchor show ones that this log knows nothing of.
    skips = genesis.adopts and genesis.generation > tip.generation
    if genesis.log_id != tip.log_id or not (skips or genesis.generation == tip.generation + 1):
        raise BrokenLog(
            sequence,
            f"a genesis of log {genesis.log_id!r}, generation {genesis.generation}, "
            f"where only {tip.log_id!r}, generation {tip.generation + 1} may begin",
        )
    # A log from before generations said where they begin: the first frame does.
    covers_to = genesis.events_last if genesis.adopts else _OPEN
    return msgspec.structs.replace(tip, generation=genesis.generation, epoch=0, covers_to=covers_to)


def _check_frame(tip: Tip, sequence: int, frame: Frame) -> None:
    if tip.epoch == 0 or frame.epoch != tip.epoch:
        raise BrokenLog(sequence, f"a frame of epoch {frame.epoch} where epoch {tip.epoch} is the newest")
    if frame.previous != tip.hash.hex():
        raise BrokenLog(sequence, "its `previous` is not the hash of what stands before it")
    if tip.covers_to != _OPEN and frame.covers_from != tip.covers_to + 1:
        raise BrokenLog(sequence, f"it covers EVENTS from {frame.covers_from}, due was {tip.covers_to + 1}")
    if frame.covers_to < frame.covers_from - 1:
        raise BrokenLog(sequence, f"it covers EVENTS {frame.covers_from} to {frame.covers_to}")
    causes = [entry.cause for entry in frame.entries]
    ordered = all(one < other for one, other in pairwise(causes))
    if causes and not (ordered and frame.covers_from <= causes[0] and causes[-1] <= frame.covers_to):
        raise BrokenLog(sequence, f"its entries answer {causes[0]} to {causes[-1]}, out of order or not covered")
