"""Nodes and namespaces, from bytes to views: what a node offers and refuses, who may use vGPUs."""

import msgspec

from ingest.metadata import Bare, Metadata, amounts, head
from schemas import names
from schemas.objects import NamespaceView, NodeView, Taint


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _TaintBody(msgspec.Struct, frozen=True):
    key: str
    value: str = ""
    effect: str = ""


class _Spec(msgspec.Struct, frozen=True):
    taints: tuple[_TaintBody, ...] | None = None
    unschedulable: bool = False


class _Status(msgspec.Struct, frozen=True):
    allocatable: dict[str, str] | None = None
    conditions: tuple[_Condition, ...] | None = None


class _Node(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


_node = msgspec.json.Decoder(_Node)
_namespace = msgspec.json.Decoder(Bare)


def read_node(raw: msgspec.Raw | bytes) -> NodeView:
    """Read a node. Heartbeats, images and addresses are left out: they change all the time and decide nothing."""
    node = _node.decode(raw)
    return NodeView(
        **head(node.metadata),
        labels=node.metadata.labels or {},
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints or ()),
        unschedulable=node.spec.unschedulable,
        ready=any(c.type == "Ready" and c.status == "True" for c in node.status.conditions or ()),
        allocatable=amounts("status.allocatable", node.status.allocatable),
    )


def read_namespace(raw: msgspec.Raw | bytes) -> NamespaceView:
    """Read a namespace: the entitlement is the label's value "true", nothing else (A5)."""
    metadata = _namespace.decode(raw).metadata
    return NamespaceView(**head(metadata), vgpu=metadata.label(names.VGPU_LABEL) == "true")
