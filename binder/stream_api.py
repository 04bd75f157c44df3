"""What JetStream answers, decoded: acknowledgements, refusals, stored messages, streams (pure).

A stored message comes to us in two ways, delivered by a consumer and fetched by sequence; both are
read here into the same `Message`, so that a hash over it does not depend on the way (T1).
"""

import re
from calendar import timegm
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from binder.journal import Full, Message, Unavailable, Unclear, WrongLastSequence

API = "$JS.API"
ACK_PREFIX = "$JS.ACK."

NOT_FOUND = 10037
STREAM_NOT_FOUND = 10059
_WRONG_LAST = frozenset({10071, 10164})
_OTHER_STREAM = 10060
_ID_IN_FLIGHT = 10158
_TOO_BIG = 10054
_NO_ROOM = frozenset({10002, 10023, 10028, 10047})
"""The server's storage, or the account's share of it, is used up."""
_STORE_FAILED = 10077
_PASSING = frozenset({408, 429, 500, 503})


class Delivery(Protocol):
    """One message as the client library hands it out."""

    subject: str
    reply: str
    data: bytes
    headers: dict[str, str] | None


class ApiError(msgspec.Struct, frozen=True):
    """The error part of an answer: HTTP-like code, the server's own code, a sentence."""

    code: int
    err_code: int = 0
    description: str = ""


class Ack(msgspec.Struct, frozen=True):
    """The answer to a publish."""

    seq: int = 0
    duplicate: bool = False
    error: ApiError | None = None


class _Stored(msgspec.Struct, frozen=True):
    subject: str
    seq: int
    time: str
    data: bytes = b""
    hdrs: bytes = b""


class Fetched(msgspec.Struct, frozen=True):
    """The answer to a read by sequence or by subject; bodies and headers come in base64."""

    message: _Stored | None = None
    error: ApiError | None = None


class Bounds(msgspec.Struct, frozen=True):
    """The state part of a stream's description."""

    first_seq: int = 0
    last_seq: int = 0
    messages: int = 0
    bytes: int = 0


class Group(msgspec.Struct, frozen=True):
    """Who keeps a replicated stream: `leader` is empty where the member that answers knows of none."""

    leader: str = ""


class Described(msgspec.Struct, frozen=True):
    """The answer to a stream's info, create or update; also good for any answer that may be an error."""

    config: dict[str, Any] = {}
    state: Bounds = Bounds()
    created: str = ""
    cluster: Group | None = None
    error: ApiError | None = None

    @property
    def hearsay(self) -> bool:
        """Say whether a member tells of its own copy, which may be old: it hears of no leader (C62)."""
        return self.cluster is not None and not self.cluster.leader


def refusal(error: ApiError, stream: str) -> Exception:
    """Return the exception that an error answer stands for; the caller raises it."""
    told = f"stream {stream}: {error.description or 'refused'} ({error.code}/{error.err_code})"
    if error.err_code in _WRONG_LAST:
        number = re.search(r"(\d+)\s*$", error.description)
        return WrongLastSequence(int(number[1]) if number else -1)
    if error.err_code == STREAM_NOT_FOUND:
        return LookupError(f"{told}; `gpubinder adopt` creates the streams, and a mistyped URL shows none")
    if error.err_code == _OTHER_STREAM:
        return LookupError(f"{told}: another stream takes this subject")
    if error.err_code == _ID_IN_FLIGHT:
        return Unclear(f"{told}: the first publish of this message is still under way")
    if error.err_code == _TOO_BIG:
        return ValueError(f"{told}: the stream's max_msg_size is smaller than the message")
    at_limit = error.err_code == _STORE_FAILED and error.description.startswith("maximum")
    if error.err_code in _NO_ROOM or at_limit:
        return Full(f"{told}; give the stream or its storage more room")
    if error.code in _PASSING:
        return Unavailable(told)
    return RuntimeError(told)


def delivered(delivery: Delivery) -> Message:
    """Read a message that a consumer delivered: its place is told by the reply subject."""
    tokens = delivery.reply.split(".")
    # $JS.ACK.stream.consumer.delivered.sequence.consumer-sequence.stamp.pending, or the longer form with
    # domain and account before the stream.
    at = 5 if len(tokens) == 9 else 7
    return Message(int(tokens[at]), int(tokens[at + 2]), delivery.subject, delivery.headers or {}, delivery.data)


def fetched(stored: _Stored) -> Message:
    """Read a message that was fetched by its sequence."""
    return Message(stored.seq, stamp_ns(stored.time), stored.subject, parse_headers(stored.hdrs), stored.data)


def parse_headers(raw: bytes) -> dict[str, str]:
    """Read stored header lines in their order, exactly as the client library reads delivered ones."""
    headers: dict[str, str] = {}
    for line in raw.split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon and (key := name.strip().decode("ascii", "ignore")):
            headers[key] = value.strip().decode("utf-8", "replace")
    return headers


def stamp_ns(text: str) -> int:
    """Return RFC 3339 in UTC ("2026-01-02T03:04:05.6Z") as integer nanoseconds since 1970."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    date, clock = whole.split("T")
    parts = [int(part) for part in (*date.split("-"), *clock.split(":"))]
    return timegm((*parts, 0, 0, 0)) * 1_000_000_000 + int(fraction.ljust(9, "0") or 0)


def status_of(headers: Mapping[str, str] | None) -> tuple[int, str]:
    """Return the status line of a control message as (code, description), (0, "") where there is none."""
    told = (headers or {}).get("Status", "")
    return (int(told), (headers or {}).get("Description", "")) if told.isdigit() else (0, "")
