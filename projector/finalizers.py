"""Our finalizers: put on what must wait for its users, taken off what nobody uses any more (F1, K2).

Each is one patch that tests uid and the finalizers as they were read: others' are never lost, and a
refused test is read again (T21).
"""

from collections.abc import Callable

import msgspec

from binder.kube import ApiError, Kube, PatchKind
from projector.reads import read
from projector.verdicts import LANDED, Verdict, again, judged
from schemas.kinds import Resource
from schemas.pinning import UID_PATH
from schemas.writes import Seen, SeenMetadata

_TRIES = 3
_FINALIZERS_PATH = "/metadata/finalizers"
_encode = msgspec.json.Encoder().encode

Finalizers = tuple[str, ...]


class Guarded(msgspec.Struct, frozen=True):
    """Which object, and which finalizer of ours."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    finalizer: str


async def guard(kube: Kube, what: Guarded) -> Verdict:
    """Have the object carry the finalizer. One that is going takes none any more, and needs none of us."""

    def wanted(seen: SeenMetadata) -> Finalizers:
        going = seen.deletion_timestamp is not None or what.finalizer in seen.finalizers
        return seen.finalizers if going else (*seen.finalizers, what.finalizer)

    return await _change(kube, what, wanted)


async def unguard(kube: Kube, what: Guarded) -> Verdict:
    """Have the object be rid of the finalizer, if it is still being deleted, which was what was decided on."""

    def wanted(seen: SeenMetadata) -> Finalizers:
        if seen.deletion_timestamp is None:
            return seen.finalizers
        return tuple(one for one in seen.finalizers if one != what.finalizer)

    return await _change(kube, what, wanted)


async def relinquish(kube: Kube, what: Guarded) -> Verdict:
    """Have the object be rid of the finalizer for good, going or not: nobody will be there to take it off later."""

    def wanted(seen: SeenMetadata) -> Finalizers:
        return tuple(one for one in seen.finalizers if one != what.finalizer)

    return await _change(kube, what, wanted)


async def _change(kube: Kube, what: Guarded, wanted: Callable[[SeenMetadata], Finalizers]) -> Verdict:
    verdict = LANDED
    for left in reversed(range(_TRIES)):
        try:
            found = await read(kube, what.resource, what.namespace, what.name, Seen)
            if found is None or found.metadata.uid != what.uid:
                return LANDED
            finalizers = wanted(found.metadata)
            if finalizers == found.metadata.finalizers:
                return LANDED
            patch = _patch(what.uid, found.metadata.finalizers, finalizers)
            await kube.patch(what.resource, what.namespace, what.name, patch, kind=PatchKind.JSON)
            return LANDED
        except ApiError as error:
            if error.code == 404:
                return LANDED
            # A failed test answers the same as a broken rule: only a fresh read tells them apart (T21).
            if error.code not in {409, 422} or (error.causes and not left):
                return judged(error)
            verdict = again(error)
    return verdict


def _patch(uid: str, before: Finalizers, after: Finalizers) -> bytes:
    return _encode(
        [
            {"op": "test", "path": UID_PATH, "value": uid},
            {"op": "test", "path": _FINALIZERS_PATH, "value": before or None},
            {"op": "add", "path": _FINALIZERS_PATH, "value": after},
        ]
    )
