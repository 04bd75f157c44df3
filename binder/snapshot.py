"""State to bytes and back, with the place in the log it belongs to: a quick start, thrown away on any doubt.

Bytes are JSON with sorted keys, compressed: the same state gives the same bytes in every process (T10).
The digest names the schema, so that digests of two schemas never meet (T7).
"""

import hashlib
import zlib

import msgspec

from binder.state import NEEDED_KINDS, STATE_SCHEMA, State
from binder.tip import Tip

_encoder = msgspec.json.Encoder(order="deterministic")
_state_decoder = msgspec.json.Decoder(State)


class Snapshot(msgspec.Struct, frozen=True):
    """A state and the log's tip it was folded to; `digest` is `state_digest` of it."""

    schema: int
    rules: int
    tip: Tip
    digest: str
    state: msgspec.Raw


class UnusableSnapshot(Exception):
    """Another schema or rules version, or damaged: drop it and replay the log."""


def encode_state(state: State) -> bytes:
    """Return the state's canonical bytes."""
    return _encoder.encode(state)


def decode_state(body: bytes) -> State:
    """Return the state of `encode_state` bytes. Raises `msgspec.MsgspecError`."""
    state = _state_decoder.decode(body)
    for kind in NEEDED_KINDS:
        state.objects.setdefault(kind, {})
    return state


def state_digest(state: State) -> str:
    """Return `<schema>:<hex SHA-256>` over the canonical bytes."""
    return digest_of(state.schema, encode_state(state))


def digest_of(schema: int, body: bytes) -> str:
    """Return the digest of canonical state bytes."""
    return f"{schema}:{hashlib.sha256(body).hexdigest()}"


def encode_snapshot(state: State, tip: Tip, rules: int) -> bytes:
    """Return the stored form of a state folded to `tip`."""
    body = encode_state(state)
    snapshot = Snapshot(STATE_SCHEMA, rules, tip, digest_of(STATE_SCHEMA, body), msgspec.Raw(body))
    return zlib.compress(_encoder.encode(snapshot), level=1)


def decode_snapshot(stored: bytes, rules: int | None) -> tuple[State, Tip]:
    """Read a stored snapshot; `rules` None accepts any rules version (an audit only applies).

    Raises `UnusableSnapshot`.
    """
    try:
        snapshot = msgspec.json.decode(zlib.decompress(stored), type=Snapshot)
        body = bytes(snapshot.state)
        if snapshot.schema != STATE_SCHEMA or (rules is not None and snapshot.rules != rules):
            raise UnusableSnapshot(f"schema {snapshot.schema}, rules {snapshot.rules}")
        if digest_of(snapshot.schema, body) != snapshot.digest:
            raise UnusableSnapshot("its digest does not match")
        return decode_state(body), snapshot.tip
    except (zlib.error, msgspec.MsgspecError) as error:
        raise UnusableSnapshot(str(error)) from None
