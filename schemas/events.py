"""What happened: the messages of the EVENTS stream, one input each (T1, T6, T11, T13, T23).

A chunk of changes is one input: folded whole, then decided once. Versions: every message carries
`version`; edges publish only the versions the current epoch announces (T6).
"""

import msgspec

from schemas import happening, start_requests, write_requests
from schemas.objects import AnyView, Gone, Stamp
from schemas.reasons import Order

FIRST_VERSION = happening.FIRST_VERSION

MESSAGE_VERSION = 1
"""The newest version of a message that this program reads."""

ANNOUNCED_VERSIONS = (1,)
"""What this program's epochs announce, and its edges may write: what the release before it reads as well (T6).

A release that brings a version reads it, and only the next one announces it. So a rollback by one release
reads all that was written.
"""

CHANGES_PER_CHUNK_MAX = 200
Event = happening.Event

Writable = write_requests.Writable
WriteRequest = write_requests.WriteRequest
OrderRequest = write_requests.OrderRequest
VmiRequest = start_requests.VmiRequest
PodRequest = start_requests.PodRequest
StartRequest = start_requests.StartRequest
StartWithdrawn = start_requests.StartWithdrawn


class SessionOpened(Event, frozen=True, tag="session.opened"):
    """Ingest starts to list a kind; the session's number is this message's own sequence (T11).

    `rewound`: the list was below the last known version, the API server came back from a backup (T12).
    `process`: the sequence at which the process that opens it announced itself, so that a message of one
    that is dead by now, landing late, opens nothing over its successor's session.
    """

    kind: str
    rewound: bool = False
    process: int = 0
    version: int = FIRST_VERSION


class Changes(Event, frozen=True, tag="changes"):
    """A chunk of one kind's changes, or of its list while the session is not yet synced (T13)."""

    kind: str
    session: int
    changes: tuple[AnyView | Gone, ...]
    version: int = FIRST_VERSION


class SessionSynced(Event, frozen=True, tag="session.synced"):
    """The list is complete at `rv`: what it did not name, and is not newer, is gone."""

    kind: str
    session: int
    rv: str
    version: int = FIRST_VERSION


class NotServed(Event, frozen=True, tag="session.not-served"):
    """The kind is not served now: what is known of it stays as it was (D12)."""

    kind: str
    session: int
    version: int = FIRST_VERSION


class Progress(Event, frozen=True, tag="progress"):
    """The watches named here have seen everything up to these versions: (kind, session, rv)."""

    marks: tuple[tuple[str, int, str], ...]
    version: int = FIRST_VERSION


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What became of one write: `code` 0 on success, else HTTP code, reason and field path (T16, T23).

    `action`: claim, status, pin, event, drop. `stamp`: the decision that was written.
    `settled`: the object already showed it, or can't show it any more (gone).
    """

    action: str
    namespace: str
    name: str
    vmi_uid: str
    stamp: Stamp
    code: int = 0
    reason: str = ""
    field: str = ""


class Outcomes(Event, frozen=True, tag="outcomes"):
    """What became of some writes."""

    outcomes: tuple[Outcome, ...]
    version: int = FIRST_VERSION


class Command(Event, frozen=True, tag="command"):
    """An operator's hand: what is to be done, who says so, and to which VM and node; an empty node means all."""

    order: Order
    who: str
    namespace: str = ""
    name: str = ""
    node: str = ""
    version: int = FIRST_VERSION


class Tick(Event, frozen=True, tag="tick"):
    """Time passed: the server's stamp of this message says how much (T9)."""

    version: int = FIRST_VERSION


class Continue(Event, frozen=True, tag="continue"):
    """Sets were left dirty by the bound of one input: go on (T5)."""

    version: int = FIRST_VERSION


AnyEvent = (
    SessionOpened
    | Changes
    | SessionSynced
    | NotServed
    | Progress
    | VmiRequest
    | PodRequest
    | WriteRequest
    | OrderRequest
    | StartRequest
    | StartWithdrawn
    | Outcomes
    | Command
    | Tick
    | Continue
)

TOO_DEEP = "nested deeper than any message of ours"

_encoder = msgspec.json.Encoder(order="sorted")
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_tags = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (
        SessionOpened,
        Changes,
        SessionSynced,
        NotServed,
        Progress,
        VmiRequest,
        PodRequest,
        WriteRequest,
        OrderRequest,
        StartRequest,
        StartWithdrawn,
        Outcomes,
        Command,
        Tick,
        Continue,
    )
)


class _Envelope(msgspec.Struct):
    type: str = ""
    version: int = FIRST_VERSION


class UnknownMessage(Exception):
    """A message of a kind or version this program does not know: stop, or void it by hand (T6).

    `sequence` is its place in EVENTS, 0 where that is not known.
    """

    def __init__(self, kind: str, version: int, sequence: int = 0) -> None:
        said = f"message kind {kind!r} version {version}"
        super().__init__(
            f"EVENTS message {sequence}: {said} is not known to this program: run the version that wrote it, "
            f"or skip it for good with `gpubinder void {sequence} --why TEXT`"
            if sequence
            else f"unknown {said}"
        )
        self.kind, self.version, self.sequence = kind, version, sequence


NEW_KINDS = frozenset[str]()
"""Kinds that this release is the first to read: the next one announces them, and may write them (T6)."""

MESSAGE_KINDS = tuple(sorted(_tags - NEW_KINDS))
"""Every kind of message that this program's epochs announce."""


def encode_event(event: AnyEvent) -> bytes:
    """Return the event's stored body."""
    return _encoder.encode(event)


def decode_event(body: bytes) -> AnyEvent:
    """Read a stored body.

    Raises `UnknownMessage` for a well-formed message of another version or kind,
    `msgspec.MsgspecError` for a malformed one, which is answered with `Rejected` (T6).
    """
    try:
        return _decode(body)
    except RecursionError:
        raise msgspec.DecodeError(TOO_DEEP) from None


def _decode(body: bytes) -> AnyEvent:
    try:
        event = _decoder.decode(body)
    except msgspec.ValidationError:
        envelope = msgspec.json.decode(body, type=_Envelope)
        if envelope.type and (envelope.type not in _tags or envelope.version > MESSAGE_VERSION):
            raise UnknownMessage(envelope.type, envelope.version) from None
        raise
    if event.version > MESSAGE_VERSION:
        raise UnknownMessage(str(event.__struct_config__.tag), event.version)
    return event
