"""Persistent volumes and claims on them, from bytes to views: which nodes a disk can be reached from (C42)."""

import msgspec

from ingest.metadata import Metadata, NodeSelector, head
from schemas.objects import PvcView, PvView


class _VolumeNodeAffinity(msgspec.Struct, frozen=True):
    required: NodeSelector | None = None


class _PvSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: _VolumeNodeAffinity | None = None


class _Pv(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _PvSpec = _PvSpec()


class _PvcSpec(msgspec.Struct, frozen=True, rename="camel"):
    volume_name: str = ""


class _Pvc(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _PvcSpec = _PvcSpec()


_pv = msgspec.json.Decoder(_Pv)
_pvc = msgspec.json.Decoder(_Pvc)


def read_pv(raw: msgspec.Raw | bytes) -> PvView:
    """Read a volume. Terms are ORed; without required affinity every node reaches it."""
    pv = _pv.decode(raw)
    required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
    return PvView(**head(pv.metadata), terms=required.terms() if required else None)


def read_pvc(raw: msgspec.Raw | bytes) -> PvcView:
    """Read a claim. A volume it names before it is bound counts: it will be bound to that one or to none."""
    pvc = _pvc.decode(raw)
    return PvcView(**head(pvc.metadata), volume=pvc.spec.volume_name)
