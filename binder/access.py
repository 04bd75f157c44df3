"""How to reach NATS: server URLs, credentials and TLS files, checked before anything is tried (T4)."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

_SCHEMES = ("nats", "tls", "ws", "wss")
_CREDENTIALS = b"-----BEGIN NATS USER JWT-----"


class Access(msgspec.Struct, frozen=True):
    """How to reach NATS (T4): server URLs, a credentials file, TLS files (CA, certificate, key)."""

    urls: tuple[str, ...]
    creds: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def servers(self) -> str:
        """Return the servers for a message to people: host and port, no user, password or token."""
        return ", ".join("{}:{}".format(*_place(url)) for url in self.urls)

    def check(self) -> None:
        """Raise `Unusable` unless each URL names a server and the credentials file holds credentials."""
        for number, url in enumerate(self.urls, 1):
            try:
                host, scheme = _place(url)[0], urlsplit(_whole(url)).scheme
            except ValueError:
                host, scheme = "", ""
            if not host or scheme not in _SCHEMES:
                # Not quoted: it may hold a password.
                raise Unusable(
                    f"NATS server URL {number} of {len(self.urls)} is none: write {_SCHEMES[0]}://HOST:PORT, "
                    f"or {_SCHEMES[1]}://HOST:PORT"
                )
        if self.creds is None:
            return
        try:
            # The library would try a missing file, or nonsense, as if it were a server that is down.
            found = self.creds.read_bytes()
        except OSError as error:
            raise Unusable(f"{self.creds}: no NATS credentials ({error.strerror})") from None
        if _CREDENTIALS not in found:
            raise Unusable(f"{self.creds}: no NATS credentials; give a .creds file, as `nsc generate creds` writes it")

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context where any TLS file is given. Raises `Unusable`, which names the file."""
        if not (self.ca or self.cert):
            return None
        file = self.ca
        try:
            context = ssl.create_default_context(cafile=str(self.ca) if self.ca else None)
            if self.cert:
                file = self.cert
                context.load_cert_chain(self.cert, self.key)
        except (OSError, ValueError) as error:
            beside = f" with key {self.key}" if file is self.cert and self.key else ""
            raise Unusable(f"{file}{beside}: no PEM file that serves for NATS ({error})") from None
        return context

    def renew(self, context: ssl.SSLContext) -> str:
        """Read the files again for handshakes to come; who was trusted stays so. Return the kind of error, or ''."""
        try:
            if self.ca:
                context.load_verify_locations(self.ca)
            if self.cert:
                context.load_cert_chain(self.cert, self.key)
        except OSError as error:
            return type(error).__name__
        return ""


class Unusable(Exception):
    """NATS can't be reached as it is configured: says which URL or file, and what it must be."""


def _whole(url: str) -> str:
    return url if "//" in url else f"{_SCHEMES[0]}://{url}"


def _place(url: str) -> tuple[str, int]:
    """Return host and port of a URL. Raises `ValueError` for a port that is none."""
    parts = urlsplit(_whole(url.strip()))
    return parts.hostname or "", parts.port or 4222
