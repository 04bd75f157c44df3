"""The anchor: the log's identity and newest place, kept outside NATS in a ConfigMap (T4).

An empty or older stream under a mistyped URL looks like a fresh start; the anchor tells it apart.
It moves forward only and stands within a second of what it anchors.
"""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from binder.journal import Journal
from binder.kube import ApiError, Kube, PatchKind
from binder.tip import Tip
from schemas.kinds import CONFIGMAP
from schemas.names import ANCHOR_CONFIGMAP
from schemas.streams import DECISIONS

ANCHOR_SECONDS = 1.0
_NOT_FOUND = 404

_log = structlog.get_logger(__name__)


class NotOurs(Exception):
    """The streams and the anchor do not belong together: nobody leads until an explicit adopt."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Map(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


class Anchor:
    """The anchor ConfigMap in one namespace."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._written = Tip()

    async def read(self) -> Tip | None:
        """Return the anchored tip, None where there is no anchor. Raises `ApiError`, `NotOurs` (unreadable)."""
        try:
            stored = await self._stored()
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise
        return self._tip_in(stored)

    async def create(self, tip: Tip) -> None:
        """Write the first anchor of a log. Raises `ApiError` (409 where one stands)."""
        await self._kube.create(CONFIGMAP, self._namespace, _body(self._namespace, tip, ""))
        self._written = tip

    async def replace(self, tip: Tip) -> None:
        """Put the first place of a new generation over an anchor that stands, whatever it says. Raises `ApiError`."""
        stored = await self._stored()
        body = _body(self._namespace, tip, stored.metadata.resource_version)
        await self._kube.patch(CONFIGMAP, self._namespace, ANCHOR_CONFIGMAP, body, kind=PatchKind.MERGE)
        self._written = tip

    async def advance(self, tip: Tip) -> None:
        """Move the anchor forward to `tip`. Raises `ApiError`, `NotOurs` (unreadable, or another log's).

        A newer anchor is left alone.
        """
        if (tip.generation, tip.sequence) <= (self._written.generation, self._written.sequence):
            return
        stored = await self._stored()
        known = self._tip_in(stored)
        if known.log_id != tip.log_id:
            raise NotOurs(
                f"the anchor names log {known.log_id}, not {tip.log_id}: two installations share the namespace "
                f"{self._namespace}, or somebody changed the ConfigMap {ANCHOR_CONFIGMAP}: restore it from a backup"
            )
        if (known.generation, known.sequence) >= (tip.generation, tip.sequence):
            self._written = known
            return
        # The version read is a precondition: of two leaders' anchors only the newer one stays.
        body = _body(self._namespace, tip, stored.metadata.resource_version)
        await self._kube.patch(CONFIGMAP, self._namespace, ANCHOR_CONFIGMAP, body, kind=PatchKind.MERGE)
        self._written = tip

    async def _stored(self) -> _Map:
        raw = await self._kube.get(CONFIGMAP, self._namespace, ANCHOR_CONFIGMAP)
        return msgspec.json.decode(raw, type=_Map)

    def _tip_in(self, stored: _Map) -> Tip:
        try:
            return _tip(stored.data or {})
        except (KeyError, ValueError):
            raise NotOurs(
                f"ConfigMap {self._namespace}/{ANCHOR_CONFIGMAP} can't be read: restore it from a backup, "
                f"or run `gpubinder adopt`"
            ) from None

    async def keep(self, tip_of: Callable[[], Tip]) -> None:
        """Advance the anchor to what `tip_of` returns, every second, for ever."""
        while True:
            try:
                await self.advance(tip_of())
            except ApiError as error:
                _log.warning("anchor not written", code=error.code, reason=error.reason)
            await asyncio.sleep(ANCHOR_SECONDS)


async def prove_anchor(anchor: Tip | None, tip: Tip, journal: Journal) -> None:
    """Hold the log folded to `tip` against the anchor. Raises `NotOurs` with what to do."""
    if anchor is None:
        raise NotOurs(
            f"no anchor stands in the cluster: this log was never adopted here, or the ConfigMap {ANCHOR_CONFIGMAP} "
            f"was deleted: create it again from a backup; or run `gpubinder adopt --fresh` on an empty cluster, "
            f"`gpubinder adopt` otherwise"
        )
    if (anchor.log_id, anchor.generation) != (tip.log_id, tip.generation):
        raise NotOurs(
            f"the anchor names log {anchor.log_id} generation {anchor.generation}, NATS holds "
            f"{tip.log_id or 'nothing'} generation {tip.generation}: check the NATS URL, or run `gpubinder adopt`"
        )
    if anchor.sequence > tip.sequence:
        raise NotOurs(
            f"the log ends at {tip.sequence}, the anchor stands at {anchor.sequence}: acknowledged decisions are lost; "
            f"restore the store from the archive, or run `gpubinder adopt` for a new generation"
        )
    stored = await journal.get(DECISIONS, anchor.sequence)
    if stored is None or not anchor.holds(stored):
        raise NotOurs(
            f"DECISIONS message {anchor.sequence} is not the one that was anchored: the log lost its end, or was "
            f"rewritten; restore the store from the archive, or run `gpubinder adopt` for a new generation"
        )


def _tip(data: dict[str, str]) -> Tip:
    return Tip(
        log_id=data["logId"],
        generation=int(data["generation"]),
        sequence=int(data["sequence"]),
        hash=bytes.fromhex(data["hash"]),
        before=bytes.fromhex(data["before"]),
        covers_to=int(data["coversTo"]),
    )


def _body(namespace: str, tip: Tip, resource_version: str) -> bytes:
    metadata = {"name": ANCHOR_CONFIGMAP, "namespace": namespace}
    if resource_version:
        metadata["resourceVersion"] = resource_version
    data = {
        "logId": tip.log_id,
        "generation": str(tip.generation),
        "sequence": str(tip.sequence),
        "hash": tip.hash.hex(),
        "before": tip.before.hex(),
        "coversTo": str(tip.covers_to),
    }
    return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
