"""A certificate authority of the test's own: for the API server, and for webhooks that it is to trust."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = dt.timedelta(days=2)
_SKEW = dt.timedelta(hours=1)
# One certificate serves on either side: NATS asks its clients for theirs.
_USES = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


def private_key() -> ec.EllipticCurvePrivateKey:
    """A fresh P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as unencrypted PEM, in the form that the API server's key files take."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


@dataclass(frozen=True)
class Authority:
    """Signs serving certificates for loopback; `pem` is the bundle that clients trust."""

    _key: ec.EllipticCurvePrivateKey
    _certificate: x509.Certificate

    @classmethod
    def new(cls) -> Self:
        """Make an authority that is valid for two days."""
        key = private_key()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpubinder test authority")])
        builder = (
            _builder(name, name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(key, builder.sign(key, hashes.SHA256()))

    @property
    def pem(self) -> bytes:
        """The authority's certificate: the CA of a kubeconfig, the caBundle of a webhook."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, *names: str) -> tuple[bytes, bytes]:
        """Return (certificate, key) as PEM for 127.0.0.1, localhost and further DNS names."""
        key = private_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        alternatives = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        hosts = [x509.DNSName(name) for name in ("localhost", *names)]
        builder = (
            _builder(subject, self._certificate.subject, key)
            .add_extension(x509.SubjectAlternativeName([*alternatives, *hosts]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(_USES), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), key_pem(key)

    def issue_files(self, directory: Path, *names: str) -> tuple[Path, Path]:
        """Write tls.crt and tls.key, as a certificate Secret mounts them, and return both paths."""
        certificate, key = self.issue(*names)
        directory.mkdir(parents=True, exist_ok=True)
        paths = directory / "tls.crt", directory / "tls.key"
        paths[0].write_bytes(certificate)
        paths[1].write_bytes(key)
        return paths


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFE)
    )
