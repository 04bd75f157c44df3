"""The key that values of Secrets are digested with: a Secret of the deployment, made where there is none (T16)."""

import asyncio
import secrets
from base64 import b64decode, b64encode

import msgspec
import structlog

from binder.kube import ApiError, Kube, find
from ingest.backoff import Backoff
from schemas.kinds import SECRET
from schemas.licences import KEY_BYTES
from schemas.names import DIGEST_KEY, DIGEST_KEY_SECRET, FIELD_MANAGER, MANAGED_BY_LABEL

_CONFLICT = 409

log = structlog.get_logger()


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class DigestKey:
    """The key in one namespace. `value` is there once it was obtained."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube, self._namespace = kube, namespace
        self._obtaining = asyncio.Lock()
        self.value = b""

    async def obtain(self) -> None:
        """Read the key, or make it; for as long as it takes, telling once per change what is in the way."""
        backoff, complaint = Backoff(), ""
        async with self._obtaining:
            while not self.value:
                try:
                    self.value = await self._read() or await self._make()
                except (ApiError, msgspec.MsgspecError, ValueError) as error:
                    # What an error says of a Secret could quote it: code and kind of error are enough.
                    why = f"{error.code} {error.reason}" if isinstance(error, ApiError) else type(error).__name__
                    if why != complaint:
                        complaint = why
                        log.warning("no key for digests of licences yet; they wait", secret=self._name, why=why)
                    await asyncio.sleep(backoff.next())

    @property
    def _name(self) -> str:
        return f"{self._namespace}/{DIGEST_KEY_SECRET}"

    async def _read(self) -> bytes:
        """Return the key, nothing where there is no such Secret."""
        body = await find(self._kube, SECRET, self._namespace, DIGEST_KEY_SECRET)
        if body is None:
            return b""
        found = b64decode((msgspec.json.decode(body, type=_Secret).data or {}).get(DIGEST_KEY, ""), validate=True)
        if len(found) < KEY_BYTES:
            raise ValueError(DIGEST_KEY)
        return found

    async def _make(self) -> bytes:
        """Make the key and read it back: another process may have been first."""
        value = b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        metadata = {"name": DIGEST_KEY_SECRET, "labels": {MANAGED_BY_LABEL: FIELD_MANAGER}}
        head = {"apiVersion": SECRET.api_version, "kind": SECRET.kind}
        body = msgspec.json.encode(head | {"metadata": metadata, "data": {DIGEST_KEY: value}})
        try:
            await self._kube.create(SECRET, self._namespace, body)
        except ApiError as error:
            if error.code != _CONFLICT:
                raise
        return await self._read()
