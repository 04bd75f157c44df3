"""Fresh reads: an object as it stands now, or None where it is not."""

from typing import TypeVar

import msgspec

from binder.kube import ApiError, Kube, find
from schemas.kinds import NAMESPACE, Resource
from schemas.writes import SeenNamespace

T = TypeVar("T")


async def read(kube: Kube, resource: Resource, namespace: str, name: str, shape: type[T]) -> T | None:
    """Return the object as `shape`, None where it does not exist. Raises ApiError for every other answer.

    An answer that is no such object (a proxy's page) counts as not reached.
    """
    body = await find(kube, resource, namespace, name)
    return decode(body, shape) if body is not None else None


def decode(body: bytes, shape: type[T]) -> T:
    """Read an answer's body. Raises ApiError of code 0 where it is none of this shape."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.DecodeError as error:
        raise ApiError(0, "Unreadable", f"the answer is no {shape.__name__}: {error}") from error


async def namespace_is_over(kube: Kube, name: str) -> bool:
    """Say whether the namespace is gone or going. Raises ApiError."""
    found = await read(kube, NAMESPACE, "", name, SeenNamespace)
    return found is None or found.metadata.deletion_timestamp is not None
