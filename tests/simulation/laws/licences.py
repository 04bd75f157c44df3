"""At rest licences are where they are due and nowhere else; tenants' own Secrets are left alone, no value is told."""

from base64 import b64decode
from collections.abc import Iterator

from typing_extensions import override

from deploy.world.history import Change
from deploy.world.manifests import Obj, deleting, dig, key_of, meta
from deploy.world.store import Listener
from schemas.kinds import GPU_CLASS, NAMESPACE, SECRET
from schemas.licences import digest_of
from schemas.names import (
    CLASS_LABEL,
    DIGEST_KEY,
    DIGEST_KEY_SECRET,
    LICENCE_CONF_KEY,
    LICENCE_DIGEST_ANNOTATION,
    LICENCE_TOKEN_KEY,
    STAMP_ANNOTATION,
    VGPU_LABEL,
)
from tests.simulation.labels import COPY, LICENCE, LICENSED, SYSTEM, TENANTS
from tests.simulation.laws.law import Law
from tests.simulation.picture import Picture
from tests.simulation.world import World

OWN_S = 0.5
"""A tenant's own write lands in less."""
MISSING = "LicenseSecretMissing"
SECRETS = (b"token-", b"dG9rZW4t")
"""How every token of these worlds begins, plain and in base64."""


class Licensed(Law, Listener):
    """Entitled namespaces have exact copies, others none of ours; strangers' Secrets are as they were (L1-L4, C31)."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        world.cluster.api.store.listen(self)

    @override
    def changed(self, change: Change) -> None:
        if change.resource != SECRET or change.before is None or meta(change.before)["namespace"] == SYSTEM:
            return
        home = self.world.cluster.find(NAMESPACE, meta(change.before)["namespace"])
        goes = home is None or deleting(home)
        goes = goes or self.world.tampered.get(change.key, -OWN_S) > self.world.now - OWN_S
        if not _is_marked(change.before) and not goes and not deleting(change.before):
            self.found.append(f"Secret {change.key}, which is a tenant's own, was {change.type}")

    @override
    def reset(self) -> None:
        """A server that comes back from a backup changes nothing by itself."""

    @override
    def pending(self) -> Iterator[str]:
        source = self.world.cluster.find(SECRET, f"{SYSTEM}/{LICENCE}")
        data = (source or {}).get("data") or {}
        due = {key: data[key] for key in (LICENCE_TOKEN_KEY, LICENCE_CONF_KEY) if key in data}
        found = self.world.cluster.find(GPU_CLASS, LICENSED)
        needs = found is not None and dig(found, "spec", "license") is not None
        there = source is not None and bool(due.get(LICENCE_TOKEN_KEY))
        for tenant in TENANTS:
            home = self.world.cluster.find(NAMESPACE, tenant)
            if home is None or deleting(home):
                continue
            entitled = (meta(home).get("labels") or {}).get(VGPU_LABEL) == "true"
            yield from self._copy(tenant, due if there else {}, needs=needs and entitled)
        if found is not None:
            told = {said["type"]: said["status"] for said in dig(found, "status", "conditions") or ()}
            if (told.get(MISSING) == "True") != (needs and not there):
                yield f"class {LICENSED} says {told}, its licence is {'there' if there else 'missing'}"

    def _copy(self, tenant: str, due: dict[str, str], *, needs: bool) -> Iterator[str]:
        copy = self.world.cluster.find(SECRET, f"{tenant}/{COPY}")
        if copy is not None and not _is_marked(copy):
            return
        if needs and due and (copy is None or copy.get("data") != due):
            yield f"{tenant} is to have the licence, and has {'another' if copy else 'none'}"
        if not needs and copy is not None and self._is_intact(copy):
            yield f"{tenant} is to have no licence, and has {key_of(copy)}"

    def _is_intact(self, copy: Obj) -> bool:
        """Say whether a copy holds what we wrote."""
        stored = self.world.cluster.find(SECRET, f"{SYSTEM}/{DIGEST_KEY_SECRET}")
        if stored is None:
            return False
        told = (meta(copy).get("annotations") or {}).get(LICENCE_DIGEST_ANNOTATION)
        return bool(told == digest_of(b64decode(stored["data"][DIGEST_KEY]), copy.get("data") or {}))

    @override
    def rest(self) -> Iterator[str]:
        yield from self.pending()
        for stream in self.world.journal.streams.values():
            for message in stream.messages:
                if any(value in message.body for value in SECRETS):
                    yield f"{stream.name} {message.sequence} holds a licence's token (T16)"


def _is_marked(secret: Obj) -> bool:
    """Say whether a Secret carries our label and stamp."""
    head = meta(secret)
    return CLASS_LABEL in (head.get("labels") or {}) and STAMP_ANNOTATION in (head.get("annotations") or {})
