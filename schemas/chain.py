"""The hash chain over DECISIONS and the digest over EVENTS: what exactly is hashed (T1).

Every stored message is hashed as sequence, server stamp, subject, headers and body, each with its
length before it, so that no two messages share an encoding. Headers are taken in the order they
were stored. The hash of message n covers the hash of message n-1; frame n carries the hash of n-1.
"""

import hashlib
from collections.abc import Mapping

GENESIS_HASH = bytes(32)


def message_bytes(sequence: int, stamp_ns: int, subject: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the canonical encoding of one stored message."""
    head = "".join(f"{key}: {value}\r\n" for key, value in headers.items()).encode()
    subject_bytes = subject.encode()
    return b"".join(
        (
            sequence.to_bytes(8, "big"),
            stamp_ns.to_bytes(8, "big"),
            len(subject_bytes).to_bytes(4, "big"),
            subject_bytes,
            len(head).to_bytes(4, "big"),
            head,
            len(body).to_bytes(8, "big"),
            body,
        )
    )


def link(previous: bytes, message: bytes) -> bytes:
    """Return the chain hash of a DECISIONS message after `previous`."""
    return hashlib.sha256(previous + message).digest()


class EventsDigest:
    """The running digest over the EVENTS messages between two frames."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, message: bytes) -> None:
        """Take in one message's canonical bytes."""
        self._hash.update(hashlib.sha256(message).digest())

    def hex(self) -> str:
        """Return the digest of what was taken in so far; of nothing at all, SHA-256 of the empty string."""
        return self._hash.hexdigest()
