"""What the API server asks of every object's metadata, and the rules a resource adds.

A rule is what stands for a CRD's schema in the model: it sees the object before and after a write and
names what is wrong with it.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from binder.kube import Cause
from deploy.world.manifests import Obj
from deploy.world.refusals import FORBIDDEN, INVALID, REQUIRED
from schemas import kinds
from schemas.kinds import Resource

Rule = Callable[[Obj | None, Obj], Iterable[Cause]]
"""(before or None, after) -> what is wrong with the object after the write."""

NAME_MOST = 253
LABEL_MOST = 63
ANNOTATIONS_MOST = 256 * 1024

_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = re.compile(_PART)
_SUBDOMAIN = re.compile(rf"{_PART}(\.{_PART})*")
_VALUE = re.compile("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_KEY = re.compile(rf"({_SUBDOMAIN.pattern}/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def wrong_metadata(resource: Resource, obj: Obj) -> Iterator[Cause]:
    """Yield what is wrong with the metadata of an object to be stored."""
    meta = obj["metadata"]
    name = meta.get("name", "")
    if not name:
        yield Cause("metadata.name", REQUIRED)
    elif not _named_well(resource, name):
        yield Cause("metadata.name", INVALID)
    if not all(_labelled_well(key, value) for key, value in (meta.get("labels") or {}).items()):
        yield Cause("metadata.labels", INVALID)
    annotations = meta.get("annotations") or {}
    if any(not isinstance(value, str) or not _KEY.fullmatch(key.lower()) for key, value in annotations.items()):
        yield Cause("metadata.annotations", INVALID)
    elif sum(len(key) + len(value) for key, value in annotations.items()) > ANNOTATIONS_MOST:
        yield Cause("metadata.annotations", "FieldValueTooLong")
    for owner in meta.get("ownerReferences") or ():
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield Cause(f"metadata.ownerReferences.{field}", INVALID)


def wrong_change(old: Obj, new: Obj) -> Iterator[Cause]:
    """Yield what an update may not do to metadata."""
    before, after = old["metadata"], new["metadata"]
    if after.get("uid", before["uid"]) != before["uid"]:
        yield Cause("metadata.uid", INVALID)
    if before.get("deletionTimestamp"):
        known = before.get("finalizers") or ()
        if any(one not in known for one in after.get("finalizers") or ()):
            yield Cause("metadata.finalizers", FORBIDDEN)


def _named_well(resource: Resource, name: str) -> bool:
    if resource == kinds.NAMESPACE:
        return len(name) <= LABEL_MOST and _LABEL.fullmatch(name) is not None
    return len(name) <= NAME_MOST and _SUBDOMAIN.fullmatch(name) is not None


def _labelled_well(key: str, value: object) -> bool:
    if not isinstance(value, str) or len(value) > LABEL_MOST:
        return False
    return _KEY.fullmatch(key) is not None and _VALUE.fullmatch(value) is not None
