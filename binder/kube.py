"""The door to the Kubernetes API: one small protocol, bytes in and bytes out.

`Kube` is what the edges see; the real client and the in-memory model world both keep its promises
(one contract test runs against both). Bodies stay bytes: callers decode them with msgspec into
the few fields they need.
"""

from collections.abc import AsyncIterator
from enum import StrEnum
from http import HTTPStatus
from typing import Protocol

import msgspec

from schemas.kinds import Resource


class PatchKind(StrEnum):
    """The patch formats we use, by their media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list: raw items, the list's resourceVersion, the token of the next page or ''."""

    items: tuple[msgspec.Raw, ...]
    resource_version: str
    continue_token: str = ""


class WatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK and the raw object.

    An ERROR line (410 and others) is raised as `ApiError`, never handed out as an object (C22).
    """

    type: str
    object: msgspec.Raw


class Cause(msgspec.Struct, frozen=True):
    """One cause of a refusal: the field path and the reason, never the value (T16)."""

    field: str
    reason: str


class ApiError(Exception):
    """The API server refused: HTTP code, Status.reason, message and causes. Code 0: it was not reached."""

    def __init__(self, code: int, reason: str, message: str, causes: tuple[Cause, ...] = ()) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = causes


class Kube(Protocol):
    """What the program asks of an API server. Every method may raise `ApiError`.

    Lists and watches of a resource that is `labelled` show objects with that label alone; one that loses it is DELETED.
    `list_page` reads with quorum (no resourceVersion) unless `resource_version` is given.
    `watch` yields from `resource_version` on, bookmarks included, and ends when the server ends it.
    """

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """Return one object."""
        ...

    async def list_page(
        self, resource: Resource, *, namespace: str = "", limit: int = 500, continue_token: str = ""
    ) -> ListPage:
        """Return one page of a list, of all namespaces where `namespace` is empty."""
        ...

    def watch(
        self, resource: Resource, *, resource_version: str, timeout_seconds: int, namespace: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Yield what changes after `resource_version`, bookmarks included, until the server ends it."""
        ...

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        """Create an object and return it as stored; a dry run stores nothing."""
        ...

    async def replace(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, subresource: str = ""
    ) -> bytes:
        """Replace an object (or its `subresource`); the body's resourceVersion is the precondition."""
        ...

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        kind: PatchKind,
        subresource: str = "",
    ) -> bytes:
        """Patch an object (or its `subresource`) and return it as stored."""
        ...

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete an object, of this uid and version alone where they are given."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


async def find(kube: Kube, resource: Resource, namespace: str, name: str) -> bytes | None:
    """Return an object as it stands, None where it, or its kind, is not there. Raises `ApiError` for all else."""
    try:
        return await kube.get(resource, namespace, name)
    except ApiError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise
