"""Certificates of our own, held in a Secret: replicas agree on them, and the API server is told before they change.

Whichever replica looks first renews what is due; a write that another one overtook is made anew from what that one
wrote. Every replica copies the serving pair into files of its own, which the server reloads.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import structlog

from binder.kube import ApiError, Kube, find
from schemas.kinds import SECRET
from schemas.names import FIELD_MANAGER, MANAGED_BY_LABEL, WEBHOOK_TLS_SECRET
from webhooks.certificates import (
    AUTHORITY_FILE,
    AUTHORITY_KEY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    LIVES,
    Held,
    Lives,
    Pair,
    expires,
    renewed,
    write_files,
)

LOOK_SECONDS: Final = 30.0
FIRST_LOOK_SECONDS: Final = 1.0
_TRIES: Final = 10
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409

_log = structlog.get_logger(__name__)

Tell = Callable[[bytes], Awaitable[None]]
"""Has the API server trust a bundle."""


class _Meta(msgspec.Struct, frozen=True):
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    data: dict[str, str] | None = None


class KeptCertificates:
    """Looks after the Secret of one deployment. `hosts`: what the certificate must be for, as it is wanted now."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        directory: Path,
        hosts: Callable[[], Awaitable[tuple[str, ...]]],
        tell: Tell,
        *,
        lives: Lives = LIVES,
        look_s: float = LOOK_SECONDS,
    ) -> None:
        self._kube, self._namespace, self._directory = kube, namespace, directory
        self._hosts, self._tell, self._lives, self._look_s = hosts, tell, lives, look_s
        self._known, self._since = b"", 0.0

    async def begin(self) -> None:
        """Have a pair in the files that can be served. Raises `ApiError` where the Secret can't be had."""
        await self._settle(tell=False)

    async def look(self) -> None:
        """Renew what is due and tell the API server. Raises `ApiError`."""
        await self._settle(tell=True)

    async def keep(self) -> None:
        """Look again and again, for ever; what fails is tried again at the next look.

        Often at first: the configurations may be made a moment after us, and say by which names we are called.
        """
        pause = min(FIRST_LOOK_SECONDS, self._look_s)
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._look_s)
            try:
                await self.look()
            except (ApiError, OSError) as error:
                _log.warning("certificates not looked after, tried again", seconds=self._look_s, why=str(error))

    async def _settle(self, *, tell: bool) -> None:
        """Go step by step until nothing is due: each step is told, and stored, before the next is taken."""
        hosts = await self._hosts()
        version, held = await self._read()
        for _ in range(_TRIES):
            known_for = await self._told(held.bundle) if tell else timedelta()
            fresh = renewed(held, hosts, datetime.now(UTC), self._lives, known_for=known_for)
            if fresh != held:
                version, held = await self._store(version, fresh)
                continue
            # What was told may be old by now: another replica was quicker.
            stands, stored = await self._read()
            if stands == version:
                break
            version, held = stands, stored
        write_files(self._directory, held)

    async def _told(self, bundle: bytes) -> timedelta:
        """Have the API server trust a bundle; return for how long it has, as far as we have seen it."""
        loop = asyncio.get_running_loop()
        if bundle:
            await self._tell(bundle)
        if bundle != self._known:
            self._known, self._since = bundle, loop.time()
        return timedelta(seconds=loop.time() - self._since)

    async def _read(self) -> tuple[str, Held]:
        """Return resourceVersion and content, '' and nothing where there is none."""
        body = await find(self._kube, SECRET, self._namespace, WEBHOOK_TLS_SECRET)
        if body is None:
            return "", Held()
        secret = msgspec.json.decode(body, type=_Secret)
        return secret.metadata.resource_version, _held(secret.data or {})

    async def _store(self, version: str, held: Held) -> tuple[str, Held]:
        """Write what is held over `version`; return what stands then, which may be another replica's."""
        body = _body(version, held)
        try:
            if version:
                stored = await self._kube.replace(SECRET, self._namespace, WEBHOOK_TLS_SECRET, body)
            else:
                stored = await self._kube.create(SECRET, self._namespace, body)
        except ApiError as error:
            # Another replica was quicker, or the Secret was deleted; a namespace that is missing is an error.
            if error.code != _CONFLICT and not (version and error.code == _NOT_FOUND):
                raise
            return await self._read()
        ends = expires(held.serving.certificate).isoformat()
        _log.info("certificates renewed", secret=f"{self._namespace}/{WEBHOOK_TLS_SECRET}", expires=ends)
        return msgspec.json.decode(stored, type=_Secret).metadata.resource_version, held


def _held(data: dict[str, str]) -> Held:
    """Read what stands in the Secret; what can't be read is renewed like what is missing."""

    def part(name: str) -> bytes:
        try:
            return b64decode(data.get(name, ""), validate=True)
        except ValueError:
            return b""

    return Held(part(AUTHORITY_FILE), part(AUTHORITY_KEY_FILE), Pair(part(CERTIFICATE_FILE), part(KEY_FILE)))


def _body(version: str, held: Held) -> bytes:
    parts = {
        AUTHORITY_FILE: held.bundle,
        AUTHORITY_KEY_FILE: held.authority_key,
        CERTIFICATE_FILE: held.serving.certificate,
        KEY_FILE: held.serving.key,
    }
    metadata = {"name": WEBHOOK_TLS_SECRET, "labels": {MANAGED_BY_LABEL: FIELD_MANAGER}}
    return msgspec.json.encode(
        {
            "apiVersion": SECRET.api_version,
            "kind": SECRET.kind,
            "metadata": metadata | ({"resourceVersion": version} if version else {}),
            "data": {name: b64encode(content).decode() for name, content in parts.items()},
        }
    )
