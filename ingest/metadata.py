"""Object metadata as ingest reads it, and what a whole object must have to become a view.

Decode structs stand beside the views they fill, hold only the fields that are read, and are the one
place where Kubernetes' camelCase names appear (`rename="camel"`). Maps and lists may be null.
"""

from calendar import timegm
from datetime import datetime
from typing import TypedDict

import msgspec

from schemas.objects import Gone, NodeSelectorTerm, Requirement
from schemas.quantity import MalformedQuantity, amount_of


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """Who owns an object; `controller` marks the one that manages it."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of an object that the API server stored; all of it has a name."""

    name: str
    uid: str = ""
    resource_version: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None

    def label(self, key: str) -> str:
        """Return a label's value, '' where it is absent."""
        return (self.labels or {}).get(key, "")

    def annotation(self, key: str) -> str:
        """Return an annotation's value, '' where it is absent."""
        return (self.annotations or {}).get(key, "")

    def controller(self) -> OwnerReference | None:
        """Return the owner that manages the object."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)

    @property
    def created(self) -> int:
        """The creation time in whole seconds since 1970, 0 where it is absent."""
        return timegm(self.creation_timestamp.utctimetuple()) if self.creation_timestamp else 0


class Head(TypedDict):
    """The fields that every view has."""

    name: str
    uid: str
    rv: str
    namespace: str
    deleting: bool


class Bare(msgspec.Struct, frozen=True):
    """An object of which only its metadata is read."""

    metadata: Metadata


class Identity(msgspec.Struct, frozen=True, rename="camel"):
    """The least that tells which object was met, for one whose other fields can't be read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """The object's key within its kind, as views have it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Anonymous(msgspec.Struct, frozen=True):
    metadata: Identity = Identity()


_bare = msgspec.json.Decoder(Bare)
_anonymous = msgspec.json.Decoder(_Anonymous)


class MalformedObject(ValueError):
    """A field of an object can't be read: the message names the field."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")


def head(metadata: Metadata) -> Head:
    """Return what every view says about its object."""
    return Head(
        name=metadata.name,
        uid=metadata.uid,
        rv=metadata.resource_version,
        namespace=metadata.namespace,
        deleting=metadata.deletion_timestamp is not None,
    )


def gone(metadata: Metadata) -> Gone:
    """Say that an object is gone, or does not matter (any more)."""
    return Gone(metadata.name, metadata.uid, metadata.resource_version, metadata.namespace)


def read_gone(raw: msgspec.Raw | bytes) -> Gone:
    """Read a deleted object: its version is that of the deletion. Raises `msgspec.DecodeError`."""
    return gone(_bare.decode(raw).metadata)


def read_identity(raw: msgspec.Raw | bytes) -> Identity:
    """Read which object this is; also the version of a bookmark. Raises `msgspec.DecodeError`."""
    return _anonymous.decode(raw).metadata


def amounts(field: str, texts: dict[str, str] | None) -> dict[str, int]:
    """Read a resource list into integers (`schemas.objects` says in which units). Raises `MalformedObject`."""
    read = {}
    for resource, text in (texts or {}).items():
        try:
            read[resource] = amount_of(resource, text)
        except MalformedQuantity as error:
            raise MalformedObject(f"{field}[{resource}]", str(error)) from None
    return read


class RequirementBody(msgspec.Struct, frozen=True):
    """A requirement as it stands; `values` may be null."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class TermBody(msgspec.Struct, frozen=True, rename="camel"):
    """A node selector term as it stands."""

    match_expressions: tuple[RequirementBody, ...] | None = None
    match_fields: tuple[RequirementBody, ...] | None = None


class NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    """Terms of which one must hold."""

    node_selector_terms: tuple[TermBody, ...] | None = None

    def terms(self) -> tuple[NodeSelectorTerm, ...]:
        """Return the terms as views hold them."""
        return tuple(
            NodeSelectorTerm(_requirements(term.match_expressions), _requirements(term.match_fields))
            for term in self.node_selector_terms or ()
        )


class _NodeAffinity(msgspec.Struct, frozen=True, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    required: NodeSelector | None = None


class Affinity(msgspec.Struct, frozen=True, rename="camel"):
    """An affinity as it stands; that to other pods, and what is merely preferred, is not read."""

    node_affinity: _NodeAffinity | None = None

    def required_terms(self) -> tuple[NodeSelectorTerm, ...] | None:
        """Return the required terms as views hold them, None where nothing is required."""
        required = self.node_affinity.required if self.node_affinity else None
        return required.terms() if required else None


def _requirements(bodies: tuple[RequirementBody, ...] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(body.key, body.operator, body.values or ()) for body in bodies or ())
