"""In which version a kind is served: its newest, else an older one that holds the same where we read."""

from collections.abc import Iterable

from binder.kube import ApiError, Kube
from schemas.kinds import Resource

_NOT_FOUND = 404


async def served(kube: Kube, versions: Iterable[Resource], namespace: str) -> Resource | None:
    """Return the first of a kind's versions that is served, None where none is. Raises `ApiError` for what else is."""
    for resource in versions:
        try:
            await kube.list_page(resource, namespace=namespace, limit=1)
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
        else:
            return resource
    return None
