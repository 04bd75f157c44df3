"""Certificates made here, for installs without cert-manager: an authority, a serving pair, and their renewal.

`renewed` is one pure step from what is held to what should be held. Replaced authorities stay in the bundle for a
while, and a new one signs nothing before the webhook configurations name it: at every moment each certificate that
some replica serves is proven by the bundle that some API server still knows.
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

BACKDATE = timedelta(minutes=5)
"""Certificates begin in the past by this much: clocks differ."""

AUTHORITY_FILE, AUTHORITY_KEY_FILE = "ca.crt", "ca.key"
CERTIFICATE_FILE, KEY_FILE = "tls.crt", "tls.key"
SECRET_MODE, DIRECTORY_MODE = 0o600, 0o700


class Lives(msgspec.Struct, frozen=True):
    """How long certificates live, and how long before its end each is replaced.

    `overlap`: what is new and what is replaced stand side by side for so long. It covers the time in which every
    replica looks and every API server hears of a changed configuration.
    """

    authority: timedelta = timedelta(days=3650)
    authority_left: timedelta = timedelta(days=1200)
    serving: timedelta = timedelta(days=90)
    serving_left: timedelta = timedelta(days=30)
    overlap: timedelta = timedelta(minutes=15)


LIVES = Lives()


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its private key, PEM both."""

    certificate: bytes = b""
    key: bytes = b""

    @override
    def __repr__(self) -> str:
        """Keep the key out of logs and tracebacks."""
        return "Pair(certificate=..., key=...)"


class Held(msgspec.Struct, frozen=True):
    """All there is: trusted authorities, the newest first; its key; the pair that is served."""

    bundle: bytes = b""
    authority_key: bytes = b""
    serving: Pair = Pair()

    @override
    def __repr__(self) -> str:
        """Keep the keys out of logs and tracebacks."""
        return "Held(bundle=..., authority_key=..., serving=...)"


def new_authority(now: datetime, life: timedelta = LIVES.authority) -> Pair:
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
        _builder(name, name, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(_pem(certificate), _key_pem(key))


def serving_pair(authority: Pair, hosts: tuple[str, ...], now: datetime, life: timedelta = LIVES.serving) -> Pair:
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
        _builder(name, issuer.subject, key.public_key(), now, life)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return Pair(_pem(certificate), _key_pem(key))


def renewed(
    held: Held, hosts: tuple[str, ...], now: datetime, lives: Lives = LIVES, *, known_for: timedelta = timedelta()
) -> Held:
    """Return what is to be held instead, the same where all is well.

    `known_for`: since when the webhook configurations have named `held.bundle`. A serving pair that proves nothing
    (none, for other hosts, expired, of a strange authority) is replaced at once; one that still does waits until the
    newest authority was known for `lives.overlap`.
    """
    trusted = [one for one in _certificates(held.bundle) if one.not_valid_after_utc > now]
    serving = _certificate(held.serving)
    proves = serving is not None and serving.not_valid_after_utc > now and _names(serving) >= _all(hosts)
    signer = next((one for one in trusted if proves and serving is not None and _signed(serving, one)), None)
    authority = Pair(_pem(trusted[0]), held.authority_key) if trusted else Pair()
    newest = _certificate(authority)
    if newest is None or newest.not_valid_after_utc - now <= lives.authority_left:
        made = new_authority(now, lives.authority)
        held = Held(made.certificate + b"".join(map(_pem, trusted)), made.key, held.serving)
        return held if signer is not None else _served(held, hosts, now, lives)
    if signer is None or serving is None:
        return _served(held, hosts, now, lives)
    due = serving.not_valid_after_utc - now <= lives.serving_left or signer != newest
    if due and known_for >= lives.overlap:
        return _served(held, hosts, now, lives)
    if signer == newest and len(trusted) > 1 and now >= _made(serving) + lives.overlap:
        return Held(_pem(newest), held.authority_key, held.serving)
    return held


def write_files(directory: Path, held: Held) -> None:
    """Have the serving pair in files, where it changed: the key first, for the owner's eyes alone."""
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    for name, content in ((KEY_FILE, held.serving.key), (CERTIFICATE_FILE, held.serving.certificate)):
        path = directory / name
        if not path.exists() or path.read_bytes() != content:
            _write(path, content)


def expires(certificate: bytes) -> datetime:
    """Return when a PEM certificate (the first of several) ends. Raises `ValueError` for anything else."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + life)
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _served(held: Held, hosts: tuple[str, ...], now: datetime, lives: Lives) -> Held:
    authority = Pair(held.bundle, held.authority_key)
    return Held(held.bundle, held.authority_key, serving_pair(authority, hosts, now, lives.serving))


def _certificate(pair: Pair) -> x509.Certificate | None:
    """Return the certificate of a pair that belongs together, None for any other."""
    try:
        certificate, key = x509.load_pem_x509_certificate(pair.certificate), _load(pair.key)
    except ValueError:
        return None
    return certificate if certificate.public_key() == key.public_key() else None


def _certificates(bundle: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []


def _made(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + BACKDATE


def _names(certificate: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def _all(hosts: tuple[str, ...]) -> set[x509.GeneralName]:
    return {_alternative(host) for host in hosts}


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, InvalidSignature):
        return False
    return True


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


def _write(path: Path, content: bytes) -> None:
    """Replace the file whole: a reader sees the old content or the new, and a key is never readable by others."""
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    beside.replace(path)
