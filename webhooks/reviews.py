"""AdmissionReview v1, in and out: the request's envelope, and answers that carry a patch or a sentence."""

import re
from base64 import b64encode
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from binder.deep import deeply
from schemas import names
from schemas.admission import PATCH_TYPE, REVIEW_API_VERSION, REVIEW_KIND
from schemas.reasons import Refusal

UID_PATTERN = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{0,63}")
UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What a decoder raises at bytes that are not what they should be."""


class Kind(msgspec.Struct, frozen=True):
    """The kind of the object under review."""

    group: str = ""
    version: str = ""
    kind: str = ""


class Place(msgspec.Struct, frozen=True):
    """Where the object under review is served: for a Scale, the resource that it is a count of."""

    group: str = ""
    version: str = ""
    resource: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] | None = None


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    kind: Kind = Kind()
    operation: str = ""
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    user_info: _User = _User()
    dry_run: bool | None = None
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    resource: Place = Place()


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


class _Uid(msgspec.Struct, frozen=True):
    uid: str = ""


class _Identified(msgspec.Struct, frozen=True):
    request: _Uid = _Uid()


class Review(msgspec.Struct, frozen=True):
    """One request for admission. `namespace` is the request's, never the object's (C47); objects stay raw."""

    uid: str
    kind: Kind
    operation: str
    namespace: str
    name: str
    sub_resource: str
    user: str
    dry_run: bool
    object: msgspec.Raw
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    resource: Place = Place()
    groups: tuple[str, ...] = ()


class TurnedAway(Exception):
    """The answer is no, said at the edge: no rule was asked, or none could answer.

    `verdict` is how metrics count it; `reason` a word for machines; `message` the sentence that is shown.
    """

    def __init__(self, verdict: str, code: HTTPStatus, reason: str, message: str) -> None:
        super().__init__(message)
        self.verdict, self.code, self.reason, self.message = verdict, code, reason, message


class MalformedReview(TurnedAway):
    """The body can't be read as what it should be; `uid` is the request's where it could be told."""

    def __init__(self, problem: str, uid: str = "") -> None:
        super().__init__("malformed", HTTPStatus.BAD_REQUEST, "MalformedReview", problem)
        self.uid = uid


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """An owner reference, as far as it is read."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of an object's metadata: maps and lists may be absent or null. A mutating webhook sees no uid."""

    name: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None

    def label(self, key: str) -> str | None:
        """Return a label's value, None where it is absent."""
        return (self.labels or {}).get(key)

    def annotation(self, key: str) -> str | None:
        """Return an annotation's value, None where it is absent."""
        return (self.annotations or {}).get(key)


class PatchOp(msgspec.Struct, frozen=True):
    """One `add` of a JSON patch; `value` must not be left to a caller's doubt, so it is required."""

    path: str
    value: Any
    op: str = "add"


class _Status(msgspec.Struct, frozen=True, omit_defaults=True):
    code: int
    reason: str = ""
    message: str = ""


class _Response(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    uid: str
    # No default: `omit_defaults` would leave a refusal's `false` out.
    allowed: bool
    patch_type: str = ""
    patch: str = ""
    status: _Status | None = None
    warnings: tuple[str, ...] = ()


class _ReviewAnswer(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    response: _Response


_decoder = msgspec.json.Decoder(_Review)
_identified = msgspec.json.Decoder(_Identified)
_encoder = msgspec.json.Encoder()


def read_review(body: bytes) -> Review:
    """Read the envelope of a review. Raises `MalformedReview` with whatever uid it has."""
    try:
        review = deeply(_decoder.decode, body)
    except UNREADABLE as error:
        raise MalformedReview(f"the body is no {REVIEW_KIND}: {error}", _uid(body)) from None
    request = review.request
    uid = request.uid if UID_PATTERN.fullmatch(request.uid) else ""
    if not uid:
        raise MalformedReview("request.uid: must be 1 to 64 letters, digits and '-'")
    if (review.api_version, review.kind) != (REVIEW_API_VERSION, REVIEW_KIND):
        raise MalformedReview(f"only {REVIEW_KIND} of {REVIEW_API_VERSION} is understood here", uid)
    return Review(
        uid=uid,
        kind=request.kind,
        operation=request.operation,
        namespace=request.namespace,
        name=request.name,
        sub_resource=request.sub_resource,
        user=request.user_info.username,
        dry_run=bool(request.dry_run),
        object=request.object,
        old_object=request.old_object,
        resource=request.resource,
        groups=request.user_info.groups or (),
    )


def _uid(body: bytes) -> str:
    try:
        uid = deeply(_identified.decode, body).request.uid
    except UNREADABLE:
        return ""
    return uid if UID_PATTERN.fullmatch(uid) else ""


def pointer(*parts: str) -> str:
    """Return a JSON pointer: its parts escaped, so that a name with '/' stays one part."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def annotate(metadata: Metadata, key: str, value: str) -> tuple[PatchOp, ...]:
    """Return the patch that gives an annotation this value, whatever it was; empty where it stands already."""
    if metadata.annotation(key) == value:
        return ()
    if metadata.annotations is None:
        return (PatchOp(pointer("metadata", "annotations"), {key: value}),)
    return (PatchOp(pointer("metadata", "annotations", key), value),)


def refers_to_gpus(metadata: Metadata) -> bool:
    """Say whether the object refers to GPUs: by label and annotation both (N2).

    Raises `TurnedAway` where only one of the two is there: the other was forgotten, and a machine that
    should have GPUs must not start without them.
    """
    gpus, label = metadata.annotation(names.GPUS_ANNOTATION), metadata.label(names.REFERENCE_LABEL)
    marked = label == names.REFERENCE_VALUE
    if (gpus is not None) == marked:
        return marked
    both = [f"the label {names.REFERENCE_LABEL}={names.REFERENCE_VALUE}", f"the annotation {names.GPUS_ANNOTATION}"]
    there, lacking = both if marked else reversed(both)
    raise TurnedAway(
        "refused",
        HTTPStatus.FORBIDDEN,
        Refusal.MALFORMED,
        f"metadata has {there} but not {lacking}: GPUs need both, in the metadata of the VM's template",
    )


def allow(uid: str, patch: Sequence[PatchOp] = (), warnings: tuple[str, ...] = ()) -> bytes:
    """Return the review that lets the object pass, changed by the patch where there is one."""
    if not patch:
        return _answer(_Response(uid, allowed=True, warnings=warnings))
    encoded = b64encode(_encoder.encode(patch)).decode()
    return _answer(_Response(uid, allowed=True, patch_type=PATCH_TYPE, patch=encoded, warnings=warnings))


def refuse(uid: str, code: HTTPStatus, reason: str, message: str) -> bytes:
    """Return the review that refuses; the API server shows the message to whoever asked."""
    return _answer(_Response(uid, allowed=False, status=_Status(int(code), reason, message)))


def _answer(response: _Response) -> bytes:
    return _encoder.encode(_ReviewAnswer(REVIEW_API_VERSION, REVIEW_KIND, response))
