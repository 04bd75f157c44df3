"""GPU classes and claims, from bytes to views: our own kinds as the API server shows them."""

import msgspec

from ingest.metadata import Metadata, head
from schemas import names
from schemas.classes import CONFLICT_CONDITION
from schemas.objects import ClaimView, ClassView, Stamp, Toleration


class TolerationBody(msgspec.Struct, frozen=True, rename="camel"):
    """A toleration as it stands on a class or a pod."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def view(self) -> Toleration:
        """Return it as views hold it."""
        return Toleration(self.key, self.operator, self.value, self.effect, self.toleration_seconds)


class _License(msgspec.Struct, frozen=True, rename="camel"):
    secret_name: str = ""


class _ClassSpec(msgspec.Struct, frozen=True, rename="camel"):
    resource_name: str = ""
    mode: str = ""
    max_count: int | None = None
    tolerations: tuple[TolerationBody, ...] | None = None
    license: _License | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _ClassStatus(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] | None = None


class _Class(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ClassSpec = _ClassSpec()
    status: _ClassStatus | None = None


class _ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    class_name: str = ""
    count: int = 1


class _ClaimStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    node_name: str = ""
    resource_name: str = ""
    stamp: Stamp | None = None


class _Claim(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus | None = None


_class = msgspec.json.Decoder(_Class)
_claim = msgspec.json.Decoder(_Claim)


def read_class(raw: msgspec.Raw | bytes) -> ClassView:
    """Read a GPUClass; also what an admission webhook reads fresh (A8)."""
    found = _class.decode(raw)
    conditions = (found.status.conditions if found.status else None) or ()
    return ClassView(
        **head(found.metadata),
        resource=found.spec.resource_name,
        mode=found.spec.mode,
        max_count=found.spec.max_count,
        tolerations=tuple(body.view() for body in found.spec.tolerations or ()),
        licence_secret=found.spec.license.secret_name if found.spec.license else "",
        conflict=any(c.type == CONFLICT_CONDITION and c.status == "True" for c in conditions),
        created=found.metadata.created,
        finalizers=found.metadata.finalizers or (),
    )


def read_claim(raw: msgspec.Raw | bytes) -> ClaimView:
    """Read a GPUClaim as observed; the mark of a template claim is its label, whatever its value (N3)."""
    claim = _claim.decode(raw)
    status = claim.status or _ClaimStatus()
    owner = next((o for o in claim.metadata.owner_references or () if o.kind == names.VMI_KIND), None)
    return ClaimView(
        **head(claim.metadata),
        class_name=claim.spec.class_name,
        count=claim.spec.count,
        template=names.TEMPLATE_LABEL in (claim.metadata.labels or {}),
        owner_uid=owner.uid if owner else "",
        phase=status.phase,
        node=status.node_name,
        resource=status.resource_name,
        stamp=status.stamp or Stamp(),
        finalizers=claim.metadata.finalizers or (),
        created=claim.metadata.created,
    )
