"""Where the webhooks are reached: certificates given or made here, and the configuration that sends requests."""

import asyncio
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog

from binder.kube import ApiError, Kube
from deploy.standing_rules import put
from schemas.admission import CONFIGURATION, VALIDATING_CONFIGURATION
from webhooks.certificates import CERTIFICATE_FILE, KEY_FILE, rotate
from webhooks.configuration import Service, webhook_configuration
from webhooks.orders import order_webhook
from webhooks.starts import start_webhook
from webhooks.validating import validating_configuration
from webhooks.writes import write_webhooks

ROTATE_SECONDS = 3600.0

_log = structlog.get_logger(__name__)


class Door(msgspec.Struct, frozen=True):
    """How the webhooks are reached.

    Certificate files are given (`certificate`, `key`, and `authority` for the configuration), or made in
    `directory`. `at`: where the API server calls, '' where somebody else tells it.
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


def hosts(at: str) -> tuple[str, ...]:
    """Return the names a certificate of our own must carry."""
    if not at:
        return ("localhost", "127.0.0.1", socket.gethostname())
    found = address(at)
    if isinstance(found, str):
        return (urlsplit(found).hostname or "",)
    service = f"{found.name}.{found.namespace}.svc"
    return (service, f"{service}.cluster.local", f"{found.name}.{found.namespace}")


def prepare(door: Door) -> bytes:
    """Have certificate files in place and return the bundle that vouches for them."""
    if door.certificate is not None:
        return (door.authority or door.certificate).read_bytes()
    return rotate(door.directory, hosts(door.at), datetime.now(UTC))


async def register(kube: Kube, at: str, bundle: bytes, home: str) -> None:
    """Create or update the webhook configurations; `home`: our namespace. Raises `ApiError`, `ValueError`.

    The validating one first: no VMI is marked for a booking that nobody would make.
    """
    await put(kube, VALIDATING_CONFIGURATION, validating(address(at), bundle, home))
    await put(kube, CONFIGURATION, webhook_configuration(address(at), bundle))
    _log.info("webhooks registered", at=at)


def validating(at: Service | str, bundle: bytes, home: str) -> dict[str, Any]:
    """Return the configuration of all validating webhooks, ready to be applied."""
    entries = (start_webhook(at, bundle), *write_webhooks(at, bundle), order_webhook(at, bundle, home))
    return validating_configuration(entries)


async def keep(kube: Kube, door: Door, bundle: bytes, home: str) -> None:
    """Renew certificates of our own before they end, and tell the API server of a new authority; for ever."""
    while True:
        await asyncio.sleep(ROTATE_SECONDS)
        try:
            fresh = prepare(door)
            if fresh != bundle and door.at:
                await register(kube, door.at, fresh, home)
            bundle = fresh
        except (ApiError, OSError) as error:
            _log.warning("certificates not renewed, tried again in an hour", why=str(error))
