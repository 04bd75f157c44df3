"""NATS identities for tests: an operator, one account, and credentials files of its users."""

import base64
import json
import os
from binascii import crc_hqx
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nkeys  # type: ignore[import-untyped]  # it comes without types

from deploy.nats_rights import ANSWERS_SECONDS, PERMISSIONS

_OPERATOR, _ACCOUNT, _USER = 14 << 3, 0, 20 << 3
_SEED = 18 << 3
_UNLIMITED = dict.fromkeys(
    ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage", "streams"), -1
)


def _checked(raw: bytes) -> str:
    return base64.b32encode(raw + crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


class _Key:
    """One key pair; the public part names its owner, the seed signs."""

    def __init__(self, kind: int) -> None:
        seed = os.urandom(32)
        self.seed = _checked(bytes([_SEED | kind >> 5, (kind & 31) << 3]) + seed)
        self.pair = nkeys.from_seed(bytearray(self.seed.encode()))
        self.public = self.pair.public_key.decode()


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _token(issuer: _Key, subject: _Key, kind: str, claims: Mapping[str, Any]) -> str:
    """Return a signed token by which `issuer` says who `subject` is."""
    body = {
        "jti": subject.public,
        "iat": 1,
        "iss": issuer.public,
        "sub": subject.public,
        "name": kind,
        "nats": {**claims, "type": kind, "version": 2},
    }
    head = _part(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    signed = f"{head}.{_part(json.dumps(body).encode())}"
    return f"{signed}.{_part(issuer.pair.sign(signed.encode()))}"


def _without_streams(limits: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in limits.items() if key not in {"mem_storage", "disk_storage", "streams"}}


class Accounts:
    """An operator with one account that may use JetStream; `config` goes into the server's file."""

    def __init__(self) -> None:
        self._operator, self._account, self._system = _Key(_OPERATOR), _Key(_ACCOUNT), _Key(_ACCOUNT)

    @property
    def config(self) -> str:
        """The lines that make a server trust this operator."""
        operator = _token(self._operator, self._operator, "operator", {})
        limits = {**_UNLIMITED, "wildcards": True, "consumer": -1}
        account = _token(self._operator, self._account, "account", {"limits": limits})
        # JetStream does not start without an account of the server's own.
        system = _token(self._operator, self._system, "account", {"limits": _without_streams(limits)})
        return (
            f'operator: "{operator}"\nsystem_account: {self._system.public}\nresolver: MEMORY\n'
            f'resolver_preload: {{ {self._account.public}: "{account}", {self._system.public}: "{system}" }}\n'
        )

    def credentials(self, file: Path, *, may_not_publish: Sequence[str] = ()) -> Path:
        """Write a new user's credentials file and return it."""
        return self._write(file, {"pub": {"deny": list(may_not_publish)}, "sub": {}})

    def credentials_of(self, part: str, file: Path) -> Path:
        """Write the credentials file of a part of the program, with the permissions it is to have; return it."""
        rights = PERMISSIONS[part]
        claims: dict[str, Any] = {"pub": {"allow": list(rights.publish)}, "sub": {"allow": list(rights.subscribe)}}
        if rights.answers:
            claims["resp"] = {"max": 1, "ttl": ANSWERS_SECONDS * 1_000_000_000}
        return self._write(file, claims)

    def _write(self, file: Path, claims: Mapping[str, Any]) -> Path:
        user = _Key(_USER)
        token = _token(self._account, user, "user", {**claims, "subs": -1, "data": -1, "payload": -1})
        file.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
        return file
