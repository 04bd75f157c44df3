"""State to bytes and back: the same state gives the same bytes in every process (T10).

Bytes are JSON with sorted keys. A digest names the state's schema, so that digests of two schemas
never meet (T7).
"""

import hashlib

import msgspec

from binder.state import KNOWN_KINDS, State

_encoder = msgspec.json.Encoder(order="deterministic")
_state_decoder = msgspec.json.Decoder(State)


def encode_state(state: State) -> bytes:
    """Return the state's canonical bytes."""
    return _encoder.encode(state)


def decode_state(body: bytes) -> State:
    """Return the state of `encode_state` bytes. Raises `msgspec.MsgspecError`."""
    state = _state_decoder.decode(body)
    for kind in KNOWN_KINDS:
        state.objects.setdefault(kind, {})
    return state


def state_digest(state: State) -> str:
    """Return `<schema>:<hex SHA-256>` over the canonical bytes."""
    return f"{state.schema}:{hashlib.sha256(encode_state(state)).hexdigest()}"
