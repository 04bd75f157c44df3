"""The messages of the DECISIONS stream: genesis, epoch, frame, void (T1, T2, T4, T6).

An epoch is named by the DECISIONS sequence of its own record: unique and growing without agreement.
Bodies are JSON with sorted keys, so that an auditor can read them without this program.
"""

from typing import Annotated

import msgspec

from schemas.decisions import Decision
from schemas.events import TOO_DEEP

FIRST_LOG_VERSION = 1
"""What a record is of that names no version; whoever writes a later format says so."""

LOG_VERSION = 1
"""The newest version of the log's own format that this program reads: framing, chain, message envelopes.

A release that brings a version, or a kind of decision, only reads it; the next one writes it. Then a rollback by one
release reads all that was written. A new field with a default needs no version: who does not know it passes it over.
"""


class Genesis(msgspec.Struct, frozen=True, tag="genesis", omit_defaults=True):
    """The first record of a generation: the log's identity and the cluster it belongs to (T4).

    A later generation knows nothing of what was decided before it. `adopts`: it begins by booking what the cluster
    shows; `events_last`: the last EVENTS message that is not of it.
    """

    log_id: str
    generation: int
    cluster: str
    program: str
    version: int = FIRST_LOG_VERSION
    adopts: bool = False
    events_last: int = 0


class Epoch(msgspec.Struct, frozen=True, tag="epoch", omit_defaults=True):
    """A new leader speaks: appended without an expected sequence (T2). `nonce` tells two holders apart.

    `message_versions` and `message_kinds` are what edges may publish to EVENTS in this epoch (T6): a version
    that adds a kind is told by it alone, so that a rollback can read everything.
    `events_last` is the EVENTS tail the leader saw: it places only after progress beyond it (T11).
    """

    log_id: str
    generation: int
    holder: str
    nonce: str
    program: str
    rules: int
    events_last: int
    message_versions: tuple[int, ...]
    version: int = FIRST_LOG_VERSION
    message_kinds: tuple[str, ...] = ()


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that one input decided: `cause` is the input's EVENTS sequence."""

    cause: int
    decisions: tuple[Decision, ...]


class Frame(msgspec.Struct, frozen=True, tag="frame", omit_defaults=True):
    """Entries of a few waiting inputs in one message: all land or none.

    covers_from..covers_to: the EVENTS sequences decided on, those that led to nothing included;
    an empty heartbeat has covers_to = covers_from - 1 when no input came.
    `events_digest`: hex digest over those messages. `previous`: hex chain hash before this message.
    `settings`: hex digest of the settings folded at covers_to. `rules`: the rules version (T7).
    """

    log_id: str
    generation: int
    epoch: int
    rules: int
    program: str
    settings: str
    covers_from: int
    covers_to: int
    events_digest: str
    previous: str
    entries: tuple[Entry, ...] = ()
    version: int = FIRST_LOG_VERSION


class Void(msgspec.Struct, frozen=True, tag="void", omit_defaults=True):
    """An operator's skip of one EVENTS message that no fold may read (T6): who and why."""

    log_id: str
    generation: int
    sequence: int
    who: str
    why: str
    version: int = FIRST_LOG_VERSION


Record = Annotated[Genesis | Epoch | Frame | Void, "one DECISIONS message"]

_encoder = msgspec.json.Encoder(order="sorted")
_decoder: msgspec.json.Decoder[Genesis | Epoch | Frame | Void] = msgspec.json.Decoder(Genesis | Epoch | Frame | Void)


def encode_record(record: Record) -> bytes:
    """Return the record's stored body."""
    return _encoder.encode(record)


def entry_bytes(entry: Entry) -> int:
    """Return how many bytes an entry takes of a frame's body."""
    return len(_encoder.encode(entry))


def decode_record(body: bytes) -> Record:
    """Read a stored body. Raises `msgspec.DecodeError`, also on an unknown tag: stop, never skip (T6)."""
    try:
        return _decoder.decode(body)
    except RecursionError:
        raise msgspec.DecodeError(TOO_DEEP) from None
