"""Deletes one object: by uid and version, after a fresh look that it still stands as was decided (T21)."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from binder.kube import ApiError, Kube
from projector.reads import read
from projector.verdicts import LANDED, Verdict, again, judged
from schemas.kinds import Resource

_TRIES = 3


class Versioned(Protocol):
    """Which object it is, in which version."""

    @property
    def uid(self) -> str:
        """Its uid."""

    @property
    def resource_version(self) -> str:
        """Its version."""


class Standing(Protocol):
    """An object as a fresh read shows it."""

    @property
    def metadata(self) -> Versioned:
        """Which object it is, in which version."""


T = TypeVar("T", bound=Standing)


async def delete_while(
    kube: Kube,
    resource: Resource,
    namespace: str,
    name: str,
    shape: type[T],
    stands: Callable[[T], bool],
    *,
    otherwise: Verdict,
) -> Verdict:
    """Have the object gone or going while it `stands` as was decided; one that is gone, or does not, is `otherwise`.

    Somebody's write between look and deletion leads to another look, a few times.
    """
    verdict = LANDED
    for _ in range(_TRIES):
        try:
            found = await read(kube, resource, namespace, name, shape)
            if found is None or not stands(found):
                return otherwise
            seen = found.metadata
            await kube.delete(resource, namespace, name, uid=seen.uid, resource_version=seen.resource_version)
            return LANDED
        except ApiError as error:
            if error.code == 404:
                return otherwise
            if error.code != 409:
                return judged(error)
            verdict = again(error)
    return verdict
