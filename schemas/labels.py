"""Names as label values: one that is too long is cut, with a hash in place of the rest (C60)."""

import hashlib
from typing import Final

LABEL_LENGTH_MAX: Final = 63


def label_value(name: str, most: int = LABEL_LENGTH_MAX) -> str:
    """Return an object's name as a label value: one too long is cut, with a hash in place of the rest."""
    if len(name) <= most:
        return name
    tail = f"-{hashlib.sha256(name.encode()).hexdigest()[:10]}"
    return name[: most - len(tail)].rstrip("-.") + tail
