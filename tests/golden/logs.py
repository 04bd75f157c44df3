"""Golden logs as files: every stored message of both streams, gzipped JSON lines, and beside it what they must tell."""

import gzip
import hashlib
from pathlib import Path

import msgspec

from binder.journal import Message
from binder.memory_journal import MemoryJournal
from binder.slices import Line, SliceJournal
from schemas.streams import DECISIONS, EVENTS

HERE = Path(__file__).parent / "logs"
_EPOCH_S = 0


class Told(msgspec.Struct, frozen=True):
    """What a golden log must tell. `rules`: the rules version that decided; `bytes`: SHA-256 of the unpacked file.

    `states`: the digest of the state at its end, by state schema.
    """

    rules: int
    inputs: int
    decisions: int
    bytes: str
    states: dict[str, str]


def write(name: str, journal: MemoryJournal) -> str:
    """Write a log's file; return the digest of its bytes."""
    lines = [_line(stream, one) for stream in (EVENTS, DECISIONS) for one in journal.streams[stream].messages]
    body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    HERE.mkdir(exist_ok=True)
    with (HERE / f"{name}.log.gz").open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=_EPOCH_S) as file:
        file.write(body)
    return hashlib.sha256(body).hexdigest()


def read(path: Path) -> tuple[SliceJournal, str]:
    """Return a log as a journal, and the digest of its bytes."""
    body = gzip.decompress(path.read_bytes())
    lines = [msgspec.json.decode(line, type=Line) for line in body.splitlines()]
    return SliceJournal(lines), hashlib.sha256(body).hexdigest()


def told_of(name: str) -> Path:
    """Return where it stands what a log must tell."""
    return HERE / f"{name}.json"


def _line(stream: str, message: Message) -> Line:
    body = message.body.decode()
    return Line(stream, message.sequence, message.stamp_ns, message.subject, dict(message.headers), body)
