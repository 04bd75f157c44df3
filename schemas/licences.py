"""Licence copies: how they are named, what they hold, and the digest that tells two contents apart (L1, T16).

Values of Secrets never travel: a keyed digest does. Without the key, which is a Secret of the deployment, nobody
can try out which token it was made from.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

import msgspec

from schemas import names
from schemas.kinds import SECRET
from schemas.labels import label_value
from schemas.objects import ClassView

SOURCES: Final = "licencesources"
COPIES: Final = "licencecopies"
"""How messages name the two kinds of Secrets that are watched."""

COPY: Final = msgspec.structs.replace(SECRET, labelled=names.CLASS_LABEL)
"""Secrets with our label: of others, which hold what is none of our business, nothing is listed or watched."""

KEYS: Final = (names.LICENCE_TOKEN_KEY, names.LICENCE_CONF_KEY)
KEY_BYTES: Final = 32
_MODE_VGPU: Final = "VGPU"


def copy_name(class_name: str) -> str:
    """Return the name of a class's copy, the same in every namespace; a long class's is cut and hashed (C60)."""
    return names.LICENCE_PREFIX + label_value(class_name)


def is_licensed(view: ClassView) -> bool:
    """Say whether guests of the class need a licence: it is of vGPUs, and names a Secret (L1)."""
    return view.mode == _MODE_VGPU and bool(view.licence_secret)


def licence_of(data: Mapping[str, str]) -> dict[str, str]:
    """Return what of a source is copied: its token and, where there is one, its configuration."""
    return {key: data[key] for key in KEYS if key in data}


def digest_of(key: bytes, data: Mapping[str, str]) -> str:
    """Return the keyed digest of a Secret's data, which is in base64 as the API server gives it out."""
    parts = [part for name in sorted(data) for part in (name, data[name])]
    message = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    return hmac.new(key, message, hashlib.sha256).hexdigest()
