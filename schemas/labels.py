"""Names as label values: one that is too long is cut, with a hash in place of the rest (C60)."""

import hashlib
from typing import Final

LABEL_LENGTH_MAX: Final = 63


def label_value(name: str) -> str:
    """Return an object's name as a label value: one too long is cut, with a hash in place of the rest."""
    if len(name) <= LABEL_LENGTH_MAX:
        return name
    tail = f"-{hashlib.sha256(name.encode()).hexdigest()[:10]}"
    return name[: LABEL_LENGTH_MAX - len(tail)].rstrip("-.") + tail
