"""What of an API server's bytes is read: envelopes of lists and watch lines, and the words of a refusal.

The objects inside stay bytes. Values never get out of a refusal's causes: field and reason do (T16).
"""

import msgspec

from binder.deep import deeply
from binder.kube import ApiError, Cause, ListPage, WatchEvent

UNREACHABLE = "Unreachable"
NOT_SIGNED_IN = "NotSignedIn"
MESSAGE_MOST = 2048

# What a code means where the body doesn't say: the words of the Status type itself.
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class _CauseBody(msgspec.Struct):
    reason: str = ""
    field: str = ""


class _Details(msgspec.Struct):
    causes: list[_CauseBody] | None = None


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


class _ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "next": "continue"}):
    resource_version: str = ""
    next: str = ""


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: tuple[msgspec.Raw, ...] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Preconditions(msgspec.Struct, omit_defaults=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _DeleteOptions(msgspec.Struct, omit_defaults=True, rename="camel"):
    preconditions: _Preconditions | None = None
    grace_period_seconds: int | None = None


_status = msgspec.json.Decoder(_Status)
_list = msgspec.json.Decoder(_List)
_line = msgspec.json.Decoder(_Line)


class LineSplitter:
    """Cuts a stream of chunks into lines of any length; copies each byte once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next chunk, return the lines it ended, blank ones left out."""
        *ended, rest = chunk.split(b"\n")
        lines = []
        for end in ended:
            self._parts.append(end)
            if line := b"".join(self._parts):
                lines.append(line)
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        return lines

    @property
    def inside_a_line(self) -> bool:
        """Whether the stream stands within a line."""
        return bool(self._parts)


def page(body: bytes) -> ListPage:
    """Read a list. Raises ApiError where the body is none."""
    try:
        read = deeply(_list.decode, body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiError(0, UNREACHABLE, f"the answer to a list is no list: {error}") from error
    return ListPage(read.items or (), read.metadata.resource_version, read.metadata.next)


def event(line: bytes, path: str) -> WatchEvent:
    """Read one line of a watch; an ERROR line is raised, never handed out (C22)."""
    try:
        read = deeply(_line.decode, line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiError(0, UNREACHABLE, f"the watch of {path} sent a line that is no event: {error}") from error
    if read.type == "ERROR":
        raise refusal(bytes(read.object), 500)
    return WatchEvent(read.type, read.object)


def refusal(body: bytes, code: int) -> ApiError:
    """Read the `Status` that came with HTTP `code`, without the values it quotes.

    A refusal of content quotes what was sent, whole Secrets included, so its message is made anew from
    the causes, or ends where the quotation begins. An answer that is no Status (a proxy's page) is not repeated at all.
    """
    try:
        status = _status.decode(body)
    except (msgspec.DecodeError, RecursionError):
        status = _Status(message="the answer is no Status; is this an API server, and is the resource served?")
    code = status.code or code
    # "Gone" and "Expired" mean one thing: list again.
    word = "Expired" if code == 410 else status.reason or _REASONS.get(code, "Unknown")
    causes = (status.details.causes or []) if status.details else []
    named = tuple(dict.fromkeys(Cause(cause.field, cause.reason) for cause in causes))
    message = status.message[:MESSAGE_MOST]
    if code == 400:
        message = message.partition("{")[0]
    if code == 422 and named:
        message = message.partition(" is invalid:")[0] + " is invalid: "
        message += ", ".join(f"{cause.field}: {cause.reason}" for cause in named)
    return ApiError(code, word, message, named)


def delete_options(uid: str, resource_version: str, grace_seconds: int | None) -> bytes:
    """Build the body of a DELETE; its dependents are left to garbage collection in the background."""
    preconditions = _Preconditions(uid, resource_version) if uid or resource_version else None
    options = _DeleteOptions(preconditions, grace_seconds)
    head = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    return msgspec.json.encode(head | msgspec.to_builtins(options))
