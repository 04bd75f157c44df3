"""Certificates of a test's own in a directory: made, and renewed when the test says that time has passed."""

from datetime import datetime
from pathlib import Path

from webhooks.certificates import (
    AUTHORITY_FILE,
    AUTHORITY_KEY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    LIVES,
    Held,
    Pair,
    renewed,
    write_files,
)


def rotate(directory: Path, hosts: tuple[str, ...], now: datetime) -> bytes:
    """Renew what is due as often as something is, for a server whose callers know everything; return the bundle."""
    held = _read(directory)
    while (fresh := renewed(held, hosts, now, known_for=LIVES.overlap)) != held:
        held = fresh
    write_files(directory, held)
    (directory / AUTHORITY_FILE).write_bytes(held.bundle)
    (directory / AUTHORITY_KEY_FILE).write_bytes(held.authority_key)
    return held.bundle


def _read(directory: Path) -> Held:
    found = {path.name: path.read_bytes() for path in directory.iterdir()} if directory.exists() else {}
    serving = Pair(found.get(CERTIFICATE_FILE, b""), found.get(KEY_FILE, b""))
    return Held(found.get(AUTHORITY_FILE, b""), found.get(AUTHORITY_KEY_FILE, b""), serving)
