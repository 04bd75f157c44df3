"""A stamp as an annotation says it, on objects whose status is not ours to stamp (T22)."""

from schemas.objects import Stamp

_PARTS = 3
_DIGITS = 19


def stamp_text(stamp: Stamp) -> str:
    """Return the stamp as an annotation's value: generation, sequence and entry."""
    return f"{stamp.generation}.{stamp.sequence}.{stamp.entry}"


def read_stamp(text: str) -> Stamp | None:
    """Return the stamp that an annotation says, None where it is no stamp."""
    parts = text.split(".")
    if len(parts) != _PARTS or not all(part.isascii() and part.isdigit() and len(part) <= _DIGITS for part in parts):
        return None
    return Stamp(*map(int, parts))
