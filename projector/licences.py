"""Writes copies of licences, and what a class shows of a source that is missing (L1-L4, T16, T22).

Values are read fresh from the source and go into the copy alone: no error, log or outcome ever holds one. A Secret
that we did not write is never changed or deleted, whatever its name.
"""

from base64 import b64decode
from collections.abc import Callable

import msgspec
from typing_extensions import override

from binder.kube import ApiError, Kube, PatchKind
from binder.licences import NAME_TAKEN
from projector.deleting import delete_while
from projector.effects import CopyLicence, DropLicence, ShowLicence
from projector.reads import namespace_is_over, read
from projector.verdicts import BEHIND, LANDED, SETTLED, Verdict, again, judged, refused
from schemas import names
from schemas.classes import LICENCE_CONDITION
from schemas.conditions import Condition, Truth, changed_at, condition_of
from schemas.kinds import GPU_CLASS, SECRET
from schemas.labels import label_value
from schemas.licences import digest_of, licence_of
from schemas.objects import Stamp
from schemas.pinning import UID_PATH
from schemas.reasons import Licence
from schemas.stamping import read_stamp, stamp_text
from schemas.writes import ALREADY_EXISTS, SeenClass

_TRIES = 3
_OPAQUE = "Opaque"
_CONDITIONS_PATH = "/status/conditions"
_STATUS_PATH = "/status"


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()


class _Secret(msgspec.Struct, frozen=True):
    """A Secret as it stands. It never says in a text what it holds."""

    metadata: _Metadata
    data: dict[str, str] = {}
    type: str = _OPAQUE

    @override
    def __repr__(self) -> str:
        return f"Secret of version {self.metadata.resource_version}"


class LicenceWriter:
    """Writes one copy, or one class's condition, at a time. `home`: where the key for digests is; `now`: RFC 3339."""

    def __init__(self, kube: Kube, home: str, now: Callable[[], str]) -> None:
        self._kube, self._home, self._now = kube, home, now
        self._key = b""

    async def copy(self, effect: CopyLicence) -> Verdict:
        """Have the copy hold what its source held when it was decided on; a source that changed leads to a decision."""
        try:
            namespace, _, name = effect.source.partition("/")
            source = await read(self._kube, SECRET, namespace, name, _Secret)
            data = licence_of(source.data) if source is not None else {}
            if digest_of(await self._digest_key(), data) != effect.digest:
                return SETTLED
            return await self._put(effect, data)
        except ApiError as error:
            return judged(error)

    async def _put(self, effect: CopyLicence, data: dict[str, str]) -> Verdict:
        namespace, verdict = effect.vmi.namespace, LANDED
        for _ in range(_TRIES):
            try:
                await self._kube.create(SECRET, namespace, _body(effect, data, None))
                return LANDED
            except ApiError as error:
                if error.code == 404:
                    return SETTLED if await namespace_is_over(self._kube, namespace) else again(error)
                if error.code != 409 or error.reason != ALREADY_EXISTS:
                    return judged(error)
            found = await read(self._kube, SECRET, namespace, effect.name, _Secret)
            if found is None:
                continue
            stamp = _stamp_of(found)
            if stamp is None:
                return refused(409, NAME_TAKEN, "metadata.labels")
            if stamp > effect.stamp:
                return BEHIND
            if stamp == effect.stamp and found.data == data:
                return LANDED
            try:
                await self._kube.replace(SECRET, namespace, effect.name, _body(effect, data, found))
                return LANDED
            except ApiError as error:
                if error.code not in {404, 409}:
                    return judged(error)
                verdict = again(error)
        return verdict

    async def drop(self, effect: DropLicence) -> Verdict:
        """Have the copy gone: by uid and version, after a fresh look that it still is what we wrote (T21, C31)."""
        if not effect.uid:
            # It was never seen: what stands in its lane before this is overtaken, and that is all.
            return SETTLED
        try:
            key = await self._digest_key()
        except ApiError as error:
            return judged(error)

        def stands(found: _Secret) -> bool:
            digest = found.metadata.annotations.get(names.LICENCE_DIGEST_ANNOTATION)
            ours = found.metadata.uid == effect.uid and _stamp_of(found) is not None
            return ours and digest == digest_of(key, found.data)

        namespace = effect.vmi.namespace
        return await delete_while(self._kube, SECRET, namespace, effect.name, _Secret, stands, otherwise=SETTLED)

    async def show(self, effect: ShowLicence) -> Verdict:
        """Have the class's condition say whether its licence's source is missing; other conditions stay (T21)."""
        verdict = LANDED
        for _ in range(_TRIES):
            try:
                found = await read(self._kube, GPU_CLASS, "", effect.name, SeenClass)
                if found is None or found.metadata.uid != effect.uid:
                    return SETTLED
                patch = _condition_patch(effect, found, self._now())
                if not patch:
                    return LANDED
                await self._kube.patch(GPU_CLASS, "", effect.name, patch, kind=PatchKind.JSON, subresource="status")
                return LANDED
            except ApiError as error:
                if error.code == 404:
                    return SETTLED
                # A failed test answers the same as a broken rule: only a fresh read tells them apart (T21).
                if error.code not in {409, 422}:
                    return judged(error)
                verdict = again(error)
        return verdict

    async def _digest_key(self) -> bytes:
        """Return the key. Raises `ApiError` where there is none yet."""
        if not self._key:
            found = await read(self._kube, SECRET, self._home, names.DIGEST_KEY_SECRET, _Secret)
            try:
                self._key = b64decode(found.data.get(names.DIGEST_KEY, "") if found is not None else "")
            except ValueError:
                self._key = b""
            if not self._key:
                raise ApiError(
                    0, "NoKey", f"Secret {self._home}/{names.DIGEST_KEY_SECRET} holds no key for digests yet"
                )
        return self._key


def _stamp_of(found: _Secret) -> Stamp | None:
    """Return the stamp of a Secret that we wrote, None for everybody else's (L4)."""
    if names.CLASS_LABEL not in found.metadata.labels:
        return None
    return read_stamp(found.metadata.annotations.get(names.STAMP_ANNOTATION, ""))


def _body(effect: CopyLicence, data: dict[str, str], before: _Secret | None) -> bytes:
    """Return the copy. Of the source's metadata nothing is taken; what others put on the copy stays."""
    kept = before.metadata if before is not None else _Metadata()
    metadata: dict[str, object] = {
        "name": effect.name,
        "namespace": effect.vmi.namespace,
        "labels": kept.labels
        | {names.CLASS_LABEL: label_value(effect.gpu_class), names.MANAGED_BY_LABEL: names.FIELD_MANAGER},
        "annotations": kept.annotations
        | {names.STAMP_ANNOTATION: stamp_text(effect.stamp), names.LICENCE_DIGEST_ANNOTATION: effect.digest},
    }
    if before is not None:
        metadata |= {"uid": kept.uid, "resourceVersion": kept.resource_version, "finalizers": kept.finalizers}
    head = {"apiVersion": SECRET.api_version, "kind": SECRET.kind, "metadata": metadata}
    return msgspec.json.encode(head | {"type": before.type if before is not None else _OPAQUE, "data": data})


def _condition_patch(effect: ShowLicence, found: SeenClass, now: str) -> bytes:
    """Return the patch of a class's conditions, b'' where they say it already."""
    before = found.status.conditions if found.status is not None else ()
    status = Truth.TRUE if effect.missing else Truth.FALSE
    known = condition_of(before, LICENCE_CONDITION)
    since = changed_at(known, status, now)
    reason = Licence(effect.reason).value
    fresh = Condition(LICENCE_CONDITION, status, reason, effect.message, since, found.metadata.generation)
    if known == fresh or (effect.unsaid and (known is None or known.status is not Truth.TRUE)):
        return b""
    conditions = (*(one for one in before if one.type != LICENCE_CONDITION), fresh)
    ops: list[dict[str, object]] = [{"op": "test", "path": UID_PATH, "value": effect.uid}]
    if found.status is None:
        ops.append({"op": "add", "path": _STATUS_PATH, "value": {"conditions": conditions}})
    else:
        ops.append({"op": "test", "path": _CONDITIONS_PATH, "value": before or None})
        ops.append({"op": "add", "path": _CONDITIONS_PATH, "value": conditions})
    return msgspec.json.encode(ops)
