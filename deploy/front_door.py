"""Where the webhooks are reached: certificates given or made here, and the configurations that send requests."""

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import structlog

from binder.kube import ApiError, Kube, PatchKind, find
from deploy.kept_certificates import LOOK_SECONDS, KeptCertificates
from deploy.standing_rules import put
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME, VALIDATING_CONFIGURATION
from schemas.kinds import Resource
from webhooks.certificates import CERTIFICATE_FILE, KEY_FILE, LIVES, Lives
from webhooks.configuration import Service
from webhooks.registration import configurations

INJECTED_ANNOTATIONS: Final = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret")
"""Where cert-manager's injector writes the bundle: it and we would undo one another's writes."""
_FORBIDDEN: Final = 403

_log = structlog.get_logger(__name__)


class Door(msgspec.Struct, frozen=True):
    """How the webhooks are reached.

    Certificate files are given (`certificate`, `key`, and `authority` for the configuration), or made, held in a
    Secret and copied into `directory`. `at`: where the API server calls, '' where somebody else tells it.
    `client_ca`: who signs for the API server, which then has to show a certificate.
    """

    directory: Path
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None
    at: str = ""
    client_ca: Path | None = None

    @property
    def files(self) -> tuple[Path, Path]:
        """Return the files to serve with: certificate and key."""
        if self.certificate is not None and self.key is not None:
            return self.certificate, self.key
        return self.directory / CERTIFICATE_FILE, self.directory / KEY_FILE


class _Client(msgspec.Struct, frozen=True):
    url: str = ""
    service: Service | None = None
    bundle: str = msgspec.field(name="caBundle", default="")


class _Webhook(msgspec.Struct, frozen=True):
    name: str
    client: _Client = msgspec.field(name="clientConfig", default=_Client())


class _Meta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class _Configuration(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    webhooks: tuple[_Webhook, ...] = ()


def address(at: str) -> Service | str:
    """Return where the API server calls: an https URL, or NAMESPACE/SERVICE with an optional :PORT.

    Raises `ValueError`.
    """
    if at.startswith("https://"):
        return at
    namespace, slash, rest = at.partition("/")
    name, _, port = rest.partition(":")
    if not (namespace and slash and name) or "/" in name or (port and not port.isdigit()):
        raise ValueError(f"{at}: write https://HOST:PORT, or NAMESPACE/SERVICE with an optional :PORT")
    return Service(namespace, name, int(port)) if port else Service(namespace, name)


def hosts(at: Service | str) -> tuple[str, ...]:
    """Return the names that a certificate of our own must carry to be called there."""
    if isinstance(at, str):
        return (urlsplit(at).hostname or "",)
    service = f"{at.name}.{at.namespace}.svc"
    return (service, f"{service}.cluster.local", f"{at.name}.{at.namespace}")


class FrontDoor:
    """One process's part in having the API server reach us: `begin` before listening, `tell` after, then `keep`.

    `lives`, `look_s`: of certificates that are made, and how often they, and given ones, are looked after.
    """

    def __init__(
        self, kube: Kube, namespace: str, door: Door, *, lives: Lives = LIVES, look_s: float = LOOK_SECONDS
    ) -> None:
        self._kube, self._home, self._door, self._look_s = kube, namespace, door, look_s
        self._made: KeptCertificates | None = None
        if door.certificate is None:
            self._made = KeptCertificates(
                kube, namespace, door.directory, self._hosts, self._trusted, lives=lives, look_s=look_s
            )

    async def begin(self) -> None:
        """Have certificate files to serve with. Raises `ApiError` where they can't be had from their Secret."""
        if self._made is not None:
            await self._made.begin()

    async def tell(self) -> None:
        """Have the API server call us and trust what we serve. Raises `ApiError`, `OSError`, `ValueError`."""
        if self._made is not None:
            await self._made.look()
        elif self._door.at:
            await self._trusted(self._given())

    async def keep(self) -> None:
        """Renew what was made, and tell of a given authority that was replaced; for ever."""
        if self._made is not None:
            await self._made.keep()
        while True:
            await asyncio.sleep(self._look_s)
            try:
                await self.tell()
            except (ApiError, OSError) as error:
                _log.warning("webhooks not registered anew, tried again", seconds=self._look_s, why=str(error))

    def _given(self) -> bytes:
        return (self._door.authority or self._door.files[0]).read_bytes()

    async def _trusted(self, bundle: bytes) -> None:
        if self._door.at:
            await register(self._kube, self._door.at, bundle, self._home)
        else:
            await vouch(self._kube, bundle)

    async def _hosts(self) -> tuple[str, ...]:
        if self._door.at:
            return hosts(address(self._door.at))
        found = [hosts(webhook.client.service or webhook.client.url) for webhook in await _registered(self._kube)]
        return tuple(dict.fromkeys(("localhost", "127.0.0.1", *(name for names in found for name in names if name))))


async def register(kube: Kube, at: str, bundle: bytes, home: str) -> None:
    """Create or update the webhook configurations, where they are not as they should be; `home`: our namespace.

    Raises `ApiError`, `ValueError`.
    """
    for resource, body in configurations(address(at), bundle, home):
        found = await _find(kube, resource)
        if found is None or not _within(body, found):
            await put(kube, resource, body)
            _log.info("webhooks registered", kind=resource.kind, at=at)


async def vouch(kube: Kube, bundle: bytes) -> None:
    """Have configurations that somebody else made trust the bundle. Raises `ApiError`."""
    text = b64encode(bundle).decode()
    for resource in (CONFIGURATION, VALIDATING_CONFIGURATION):
        found = await _stored(kube, resource)
        if found is None or any(key in (found.metadata.annotations or {}) for key in INJECTED_ANNOTATIONS):
            continue
        # Each place is tested by its webhook's name: who changes the list in between is not written over.
        ops = [
            op
            for place, webhook in enumerate(found.webhooks)
            if webhook.client.bundle != text
            for op in (
                {"op": "test", "path": f"/webhooks/{place}/name", "value": webhook.name},
                {"op": "add", "path": f"/webhooks/{place}/clientConfig/caBundle", "value": text},
            )
        ]
        if ops:
            await kube.patch(resource, "", CONFIGURATION_NAME, msgspec.json.encode(ops), kind=PatchKind.JSON)
            _log.info("webhooks vouched for", kind=resource.kind)


async def _registered(kube: Kube) -> list[_Webhook]:
    found = [await _stored(kube, resource) for resource in (CONFIGURATION, VALIDATING_CONFIGURATION)]
    return [webhook for one in found if one is not None for webhook in one.webhooks]


async def _stored(kube: Kube, resource: Resource) -> _Configuration | None:
    """Return what somebody else made, None also where we may not look: then they see to its bundle too."""
    try:
        body = await find(kube, resource, "", CONFIGURATION_NAME)
    except ApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None
    return msgspec.json.decode(body, type=_Configuration) if body is not None else None


async def _find(kube: Kube, resource: Resource) -> Any:  # noqa: ANN401 - any JSON
    body = await find(kube, resource, "", CONFIGURATION_NAME)
    return json.loads(body) if body is not None else None


def _within(wanted: Any, found: Any) -> bool:  # noqa: ANN401 - any JSON
    """Say whether what is wanted stands in what was found, beside the defaults that the API server fills in."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and _within(wanted[key], found[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list)
            and len(wanted) == len(found)
            and all(_within(one, other) for one, other in zip(wanted, found, strict=True))
        )
    return bool(wanted == found)
