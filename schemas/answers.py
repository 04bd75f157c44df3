"""Answers to admission requests: the decisions a webhook waits for, and their form over request/reply (T19)."""

from typing import Final

import msgspec

from schemas.decisions import Decision, PodAdmitted, Refused, SetBooked, VmiAdmitted, WritePassed

Answer = VmiAdmitted | PodAdmitted | WritePassed | Refused | SetBooked

_KINDS: Final = (VmiAdmitted, PodAdmitted, WritePassed, Refused, SetBooked)
_encoder = msgspec.json.Encoder(order="sorted")
_decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


def as_answer(decision: Decision) -> Answer | None:
    """Return the decision if it answers an admission request, else None."""
    return decision if isinstance(decision, _KINDS) else None


def encode_answer(answer: Answer) -> bytes:
    """Return the answer as a binder replies it to a dry run."""
    return _encoder.encode(answer)


def decode_answer(body: bytes) -> Answer:
    """Read a dry run's reply. Raises `msgspec.MsgspecError` where it is none, an empty body included."""
    return _decoder.decode(body)
