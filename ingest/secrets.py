"""Secrets of licences, from bytes to views: key names and a keyed digest get out, never a value (T16)."""

import msgspec

from ingest.digest_key import DigestKey
from ingest.metadata import Metadata, head
from schemas import names
from schemas.licences import digest_of, licence_of
from schemas.objects import SecretView, Stamp
from schemas.stamping import read_stamp


class _Secret(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, str] | None = None


_secret = msgspec.json.Decoder(_Secret)


class SecretReader:
    """Reads Secrets under one key, which must have been obtained."""

    def __init__(self, key: DigestKey) -> None:
        self._key = key

    def source(self, raw: msgspec.Raw | bytes) -> SecretView:
        """Read what may be a licence's source: its digest is of what a copy of it holds."""
        found = _secret.decode(raw)
        data = licence_of(found.data or {})
        return SecretView(
            **head(found.metadata),
            keys=tuple(sorted(key for key, value in data.items() if value)),
            digest=digest_of(self._key.value, data) if data else "",
        )

    def copy(self, raw: msgspec.Raw | bytes) -> SecretView:
        """Read a Secret with our label. It is intact if we wrote it, and what it holds is what we wrote."""
        found = _secret.decode(raw)
        data, metadata = found.data or {}, found.metadata
        digest = digest_of(self._key.value, data)
        stamp = read_stamp(metadata.annotation(names.STAMP_ANNOTATION))
        return SecretView(
            **head(metadata),
            keys=tuple(sorted(data)),
            digest=digest,
            gpu_class=metadata.label(names.CLASS_LABEL),
            intact=stamp is not None and metadata.annotation(names.LICENCE_DIGEST_ANNOTATION) == digest,
            stamp=stamp or Stamp(),
        )
