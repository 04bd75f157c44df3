"""Writes claims: creates them, shows decisions in their status, deletes those that nobody decided."""

from collections.abc import Callable

import msgspec

from binder.kube import ApiError, Kube, PatchKind
from projector import render
from projector.deleting import delete_while
from projector.effects import CreateClaim, DropClaim, WriteStatus
from projector.reads import decode, namespace_is_over, read
from projector.verdicts import BEHIND, LANDED, SETTLED, Verdict, again, judged, refused
from schemas import names
from schemas.conditions import Condition
from schemas.kinds import GPU_CLAIM
from schemas.objects import Stamp
from schemas.writes import ALREADY_EXISTS, SeenClaim

NAME_TAKEN = "NameTaken"


class _Known(msgspec.Struct, frozen=True):
    """What was last seen of a claim of ours."""

    uid: str
    generation: int
    stamp: Stamp = Stamp()
    conditions: tuple[Condition, ...] = ()


class ClaimWriter:
    """Writes one claim at a time. What it knows of claims saves reads; the API server's rules keep it honest.

    `now` returns the wall's time in RFC 3339, for conditions.
    """

    def __init__(self, kube: Kube, now: Callable[[], str]) -> None:
        self._kube = kube
        self._now = now
        self._known: dict[str, dict[str, _Known]] = {}

    def forget(self, vmi_uid: str) -> None:
        """Drop what is known of one VMI's claims."""
        self._known.pop(vmi_uid, None)

    async def create(self, effect: CreateClaim) -> Verdict:
        """Have the claim exist, owned by its VMI. One of that name that isn't ours is a refusal."""
        vmi = effect.vmi
        if effect.name in self._known.get(vmi.uid, {}):
            return LANDED
        try:
            body = await self._kube.create(GPU_CLAIM, vmi.namespace, render.claim_body(effect))
            self._learn(effect, decode(body, SeenClaim))
            return LANDED
        except ApiError as error:
            try:
                return await self._not_created(effect, error)
            except ApiError as unread:
                return judged(unread)

    async def _not_created(self, effect: CreateClaim, error: ApiError) -> Verdict:
        namespace = effect.vmi.namespace
        if error.code == 404:
            # Either the namespace is gone, or our kind is not served yet.
            return SETTLED if await namespace_is_over(self._kube, namespace) else again(error)
        if error.code != 409 or error.reason != ALREADY_EXISTS:
            return judged(error)
        found = await read(self._kube, GPU_CLAIM, namespace, effect.name, SeenClaim)
        if found is None:
            return again(error)
        spec = found.spec
        if not found.metadata.owned_by(effect.vmi.uid):
            return refused(error.code, NAME_TAKEN, "metadata.ownerReferences")
        if (spec.class_name, spec.count) != (effect.class_name, effect.count):
            return refused(error.code, NAME_TAKEN, "spec")
        self._learn(effect, found)
        return LANDED

    async def show(self, effect: WriteStatus) -> Verdict:
        """Have the claim's status show the decision, unless it shows it, or a newer one, already (T22)."""
        vmi = effect.vmi
        try:
            known = self._known.get(vmi.uid, {}).get(effect.name) or await self._read(effect)
            if known is None:
                return _missing(effect)
            if known.stamp >= effect.stamp:
                return LANDED if known.stamp == effect.stamp else BEHIND
            patch = render.status_patch(
                effect, uid=known.uid, generation=known.generation, before=known.conditions, now=self._now()
            )
            body = await self._kube.patch(
                GPU_CLAIM, vmi.namespace, effect.name, patch, kind=PatchKind.JSON, subresource="status"
            )
            self._learn(effect, decode(body, SeenClaim))
            return LANDED
        except ApiError as error:
            self._known.get(vmi.uid, {}).pop(effect.name, None)
            return await self._not_shown(effect, error)

    async def _not_shown(self, effect: WriteStatus, error: ApiError) -> Verdict:
        """A failed test and a broken rule get the same answer: only a fresh read tells them apart (T21)."""
        if error.code in {404, 409}:
            return again(error)
        if error.code != 422:
            return judged(error)
        try:
            known = await self._read(effect)
        except ApiError as unread:
            return judged(unread)
        if known is None or not error.causes:
            return again(error)
        if known.stamp >= effect.stamp:
            return LANDED if known.stamp == effect.stamp else BEHIND
        return judged(error)

    async def _read(self, effect: WriteStatus) -> _Known | None:
        """Return what the claim shows now, None where it is gone. One of another owner, or uid, is none of ours."""
        found = await read(self._kube, GPU_CLAIM, effect.vmi.namespace, effect.name, SeenClaim)
        if found is None:
            return None
        ours = found.metadata.uid == effect.uid if effect.uid else found.metadata.owned_by(effect.vmi.uid)
        return self._learn(effect, found) if ours else None

    def _learn(self, effect: CreateClaim | WriteStatus, claim: SeenClaim) -> _Known:
        status, metadata = claim.status, claim.metadata
        known = _Known(metadata.uid, metadata.generation)
        if status is not None:
            stamp = status.stamp.stamp if status.stamp is not None else Stamp()
            known = _Known(metadata.uid, metadata.generation, stamp, status.conditions)
        # Held claims outlive the VMIs that hold them, and have no end of which anybody would tell: they are read anew.
        if isinstance(effect, CreateClaim) or not effect.uid:
            self._known.setdefault(effect.vmi.uid, {})[effect.name] = known
        return known

    async def drop(self, effect: DropClaim) -> Verdict:
        """Delete a claim by uid and version, after a fresh look that it is still a template claim (T14, T21)."""

        def stands(claim: SeenClaim) -> bool:
            return claim.metadata.uid == effect.uid and names.TEMPLATE_LABEL in claim.metadata.labels

        namespace = effect.vmi.namespace
        return await delete_while(self._kube, GPU_CLAIM, namespace, effect.name, SeenClaim, stands, otherwise=SETTLED)


def _missing(effect: WriteStatus) -> Verdict:
    """A template claim that is not there will be made again; a held one that is gone shows nothing any more.

    That ends what is told of the claim alone. Its VMI's set goes on to the pin: the booking stands, and nobody else
    would take off the launcher's gate, nor give its units back.
    """
    if not effect.uid:
        return again(ApiError(404, "NotFound", effect.name))
    return LANDED if effect.vmi.uid else SETTLED
