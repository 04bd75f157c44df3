"""Certificates made here, for the demo, tests, and installs without cert-manager: an authority and a serving pair.

`rotate` keeps a directory in order: it renews what is about to expire and returns the bundle that the
webhook configuration must name. While an authority is replaced, the bundle holds the old one too.
"""

import os
import secrets
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from typing_extensions import override

AUTHORITY_DAYS = 3650
SERVING_DAYS = 90
BACKDATE = timedelta(minutes=5)
"""Certificates begin in the past by this much: clocks differ."""

AUTHORITY_FILE, AUTHORITY_KEY_FILE = "ca.crt", "ca.key"
CERTIFICATE_FILE, KEY_FILE = "tls.crt", "tls.key"
SECRET_MODE = 0o600


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its private key, PEM both."""

    certificate: bytes
    key: bytes

    @override
    def __repr__(self) -> str:
        """Keep the key out of logs and tracebacks."""
        return "Pair(certificate=..., key=...)"


def new_authority(now: datetime, days: int = AUTHORITY_DAYS) -> Pair:
    """Return a self-signed authority that may sign serving certificates and nothing below them.

    Its name is its own: two authorities in one bundle must not be taken for each other.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"gpubinder webhooks {secrets.token_hex(8)}")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key.public_key(), now, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(_pem(certificate), _key_pem(key))


def serving_pair(authority: Pair, hosts: tuple[str, ...], now: datetime, days: int = SERVING_DAYS) -> Pair:
    """Return a serving certificate for these DNS names and addresses, signed by the authority.

    Raises `ValueError` without a host, or where the authority's key is of another kind than ours.
    """
    if not hosts:
        raise ValueError("a serving certificate needs at least one host name or address")
    issuer, issuer_key = x509.load_pem_x509_certificate(authority.certificate), _load(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    # Common names have 64 characters at most, and nobody reads them: the alternative names count.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    certificate = (
        _builder(name, issuer.subject, key.public_key(), now, days)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return Pair(_pem(certificate), _key_pem(key))


def rotate(directory: Path, hosts: tuple[str, ...], now: datetime) -> bytes:
    """Renew what is missing, unreadable, for other hosts, or in the last third of its life; return the CA bundle.

    A serving pair outlives the authority that signed it in the bundle, so that the configuration can be
    updated after the files and before anybody notices.
    """
    directory.mkdir(parents=True, exist_ok=True)
    bundle = _read(directory / AUTHORITY_FILE)
    authority = Pair(bundle, _read(directory / AUTHORITY_KEY_FILE))
    if not _lasts(authority, now):
        fresh = new_authority(now)
        still = _valid(bundle, now)
        authority = Pair(fresh.certificate + still, fresh.key)
        _write(directory / AUTHORITY_KEY_FILE, authority.key)
        _write(directory / AUTHORITY_FILE, authority.certificate)
    serving = Pair(_read(directory / CERTIFICATE_FILE), _read(directory / KEY_FILE))
    if not _lasts(serving, now) or not _serves(serving, hosts, authority.certificate):
        serving = serving_pair(authority, hosts, now)
        _write(directory / KEY_FILE, serving.key)
        _write(directory / CERTIFICATE_FILE, serving.certificate)
    return authority.certificate


def expires(certificate: bytes) -> datetime:
    """Return when a PEM certificate (the first of several) ends. Raises `ValueError` for anything else."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + timedelta(days=days))
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _lasts(pair: Pair, now: datetime) -> bool:
    """Say whether the pair belongs together and has more than a third of its life before it."""
    try:
        certificate, key = x509.load_pem_x509_certificate(pair.certificate), _load(pair.key)
    except ValueError:
        return False
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return certificate.public_key() == key.public_key() and begins <= now < ends - (ends - begins) / 3


def _serves(pair: Pair, hosts: tuple[str, ...], bundle: bytes) -> bool:
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    known = any(_signed(certificate, authority) for authority in x509.load_pem_x509_certificates(bundle))
    return known and {_alternative(host) for host in hosts} <= set(named)


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, InvalidSignature):
        return False
    return True


def _valid(bundle: bytes, now: datetime) -> bytes:
    try:
        found = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return b""
    return b"".join(_pem(certificate) for certificate in found if now < certificate.not_valid_after_utc)


def _load(key: bytes) -> ec.EllipticCurvePrivateKey:
    loaded = load_pem_private_key(key, password=None)
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise ValueError("the private key is no elliptic curve key")  # noqa: TRY004 - callers expect one kind of error
    return loaded


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _write(path: Path, content: bytes) -> None:
    """Replace the file whole: a reader sees the old content or the new, and a key is never readable by others."""
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    beside.replace(path)
