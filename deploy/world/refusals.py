"""How an API server says no: codes, reasons and words as the real one gives them.

The words were taken from a server of version 1.36; the contract tests hold them to it. Values are left
out of them, as the real client leaves them out.
"""

from collections.abc import Iterable

from binder.kube import ApiError, Cause
from schemas.kinds import Resource

FORBIDDEN = "FieldValueForbidden"
INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"


def qualified(name: str, group: str) -> str:
    """Return a plural or kind with its group, as messages name it."""
    return f"{name}.{group}" if group else name


def not_found(resource: Resource, name: str) -> ApiError:
    """404: the object isn't there."""
    return ApiError(404, "NotFound", f'{qualified(resource.plural, resource.group)} "{name}" not found')


def not_served() -> ApiError:
    """404: the resource, or the subresource, isn't there."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> ApiError:
    """409: the name is taken."""
    return ApiError(409, "AlreadyExists", f'{qualified(resource.plural, resource.group)} "{name}" already exists')


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    """409: a precondition doesn't hold."""
    place = qualified(resource.plural, resource.group)
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {place} "{name}": {why}')


def modified(resource: Resource, name: str) -> ApiError:
    """409: the object is no longer the one that was read."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def invalid(resource: Resource, name: str, causes: Iterable[Cause]) -> ApiError:
    """422: the object breaks a rule of its kind."""
    named = tuple(dict.fromkeys(causes))
    words = ", ".join(f"{cause.field}: {cause.reason}" for cause in named)
    kind = qualified(resource.kind, resource.group)
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {words}', named)


def unpatchable() -> ApiError:
    """422: a `test` failed, or a path isn't there; the server doesn't say which (T21)."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request")


def bad_request(message: str) -> ApiError:
    """400: the request makes no sense."""
    return ApiError(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str, causes: tuple[Cause, ...] = ()) -> ApiError:
    """403: an admission plugin of the server itself refuses."""
    place = qualified(resource.plural, resource.group)
    return ApiError(403, "Forbidden", f'{place} "{name}" is forbidden: {why}', causes)


def terminating(resource: Resource, name: str, namespace: str) -> ApiError:
    """403: nothing new comes into a namespace that goes."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(resource, name, why, (Cause("metadata.namespace", "NamespaceTerminating"),))


def expired(asked: int, oldest: int) -> ApiError:
    """410: a watch from a forgotten version."""
    return ApiError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def list_expired() -> ApiError:
    """410: a list can't be continued; list again."""
    return ApiError(410, "Expired", "The provided continue parameter is too old to display a consistent list result")


def internal(message: str) -> ApiError:
    """500: something broke inside the server."""
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")
