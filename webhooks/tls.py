"""The serving certificate, reloaded when its files change: new connections get the new one, none is dropped."""

import asyncio
import hashlib
import ssl
from datetime import UTC, datetime
from pathlib import Path

import structlog

from webhooks.certificates import expires

_log = structlog.get_logger()


class UnusableCertificate(Exception):
    """The files hold no certificate and key that can be served; the message names them and the trouble."""

    def __init__(self, certificate: Path, key: Path, problem: str) -> None:
        super().__init__(f"{certificate} and {key} can't be served: {problem}")
        self.problem = problem


class ServingCertificate:
    """Holds the pair that is served now. `context` is for the listener and stays the same for its life.

    Files are compared by content: a mounted Secret changes behind a symbolic link, and times tell little.
    A pair that can't be loaded (files are replaced one after the other) leaves the former one in place.
    `client_ca`: who signs for clients. Then each is asked for a certificate, and one that shows a bad one is not
    let in; one that shows none is, as probes have none: who serves a request looks whether there was one.
    """

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        self._files = certificate, key
        self._client_ca = client_ca
        self._digest = b""
        self._expires = datetime.min.replace(tzinfo=UTC)
        self.trouble = ""
        self._current = self._load()
        self.context = self._fresh()
        self.context.sni_callback = self._choose

    def refresh(self) -> bool:
        """Load the files if they changed; say whether another pair is served from now on."""
        try:
            if self._read_digest() == self._digest:
                self.trouble = ""
                return False
            self._current = self._load()
        except UnusableCertificate as error:
            if error.problem != self.trouble:
                _log.warning("certificate.unusable", error=str(error))
            self.trouble = error.problem
            return False
        self.trouble = ""
        _log.info("certificate.reloaded", expires=self._expires.isoformat())
        return True

    def expired(self, now: datetime) -> str:
        """Return since when the certificate that is served is no longer valid, '' while it is."""
        return f"expired at {self._expires.isoformat()}" if now >= self._expires else ""

    async def watch(self, every_s: float) -> None:
        """Look at the files again and again, for ever."""
        while True:
            await asyncio.sleep(every_s)
            self.refresh()

    def _choose(self, connection: ssl.SSLObject, _host: str | None, _context: ssl.SSLContext) -> None:
        # Called in each handshake, with or without a server name: the whole pair is exchanged at once.
        connection.context = self._current

    def _read_digest(self) -> bytes:
        try:
            watched = (*self._files, self._client_ca) if self._client_ca is not None else self._files
            return hashlib.sha256(b"\0".join(path.read_bytes() for path in watched)).digest()
        except OSError as error:
            raise UnusableCertificate(*self._files, f"{error.strerror}: {error.filename}") from None

    def _load(self) -> ssl.SSLContext:
        digest, context = self._read_digest(), self._fresh()
        try:
            context.load_cert_chain(*self._files)
            ends = expires(self._files[0].read_bytes())
        except (OSError, ValueError) as error:
            raise UnusableCertificate(*self._files, str(error) or type(error).__name__) from None
        self._digest, self._expires = digest, ends
        return context

    def _fresh(self) -> ssl.SSLContext:
        """Return a context without a certificate. Whether clients are asked is settled before the pair is chosen."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self._client_ca is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            try:
                context.load_verify_locations(self._client_ca)
            except (OSError, ValueError) as error:
                problem = f"{self._client_ca} names nobody who signs for clients ({error})"
                raise UnusableCertificate(*self._files, problem) from None
        return context
