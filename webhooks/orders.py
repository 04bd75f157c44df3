"""What is asked about orders: GPU claims that a tenant creates (O1). Nothing is ordered while we can't be reached.

Claims of a VM's template are no orders. Those that the program itself writes never reach us, so that an outage of
ours does not hold up VMs that were admitted; whoever else marks a claim as one of those is refused.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from schemas import names
from schemas.admission import ACCOUNTS_GROUP, ORDER_PATH, ORDER_WEBHOOK
from schemas.events import OrderRequest
from schemas.kinds import GPU_CLAIM
from schemas.reasons import Refusal
from webhooks import cel
from webhooks.configuration import Service, client_config, entry
from webhooks.evidence import Evidence
from webhooks.reviews import UNREADABLE, MalformedReview, Metadata, Review, TurnedAway

CLASS_NAME_MAX = 253
NOT_OURS = "is-no-claim-of-ours"
"""The match condition that keeps the program's own claims from being asked about."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    class_name: str = ""
    count: int = 1


class Claim(msgspec.Struct, frozen=True):
    """What is read of a claim."""

    spec: _Spec = _Spec()
    metadata: Metadata = Metadata()

    @property
    def is_of_a_template(self) -> bool:
        """Whether it carries the mark of claims that were made for a VM, whatever its value (N3)."""
        return self.metadata.label(names.TEMPLATE_LABEL) is not None


_claim = msgspec.json.Decoder(Claim)


def order_webhook(at: Service | str, ca_bundle: bytes, home: str) -> dict[str, Any]:
    """Return the entry of the validating configuration. `home`: the program's own namespace."""
    template = f"has({cel.NEW}.metadata.labels) && '{names.TEMPLATE_LABEL}' in {cel.NEW}.metadata.labels"
    ours = f"has(request.userInfo.groups) && '{ACCOUNTS_GROUP}{home}' in request.userInfo.groups"
    return entry(
        ORDER_WEBHOOK,
        GPU_CLAIM,
        client_config(at, ORDER_PATH, ca_bundle),
        matchConditions=[{"name": NOT_OURS, "expression": f"!(({template}) && ({ours}))"}],
    )


def read_claim(raw: msgspec.Raw) -> Claim:
    """Read the claim of a review. Raises `MalformedReview`, which names the field and never its value."""
    try:
        return _claim.decode(raw)
    except UNREADABLE as error:
        raise MalformedReview(f"the GPUClaim can't be read: {error}") from None


def may_make_template_claims(review: Review, settings: Mapping[str, str], home: str) -> bool:
    """Say whether the requester is the program itself: as the policies tell it (`webhooks.cel.IS_CONTROLLER`)."""
    listed = settings.get(names.SETTING_CONTROLLERS)
    if listed is not None:
        return review.user in [name.strip() for name in listed.split(",")]
    return f"{ACCOUNTS_GROUP}{home}" in review.groups


def forged() -> TurnedAway:
    """Return the refusal of a claim that somebody else marked as a template's."""
    return TurnedAway(
        "refused",
        HTTPStatus.FORBIDDEN,
        Refusal.RESERVED_MARK,
        f"the label {names.TEMPLATE_LABEL} marks claims that gpubinder makes for a VM: leave it off a claim of yours",
    )


def request_of(review: Review, claim: Claim, evidence: Evidence) -> OrderRequest:
    """Return the request as it is decided on and replayed."""
    return OrderRequest(
        request=review.uid,
        namespace=review.namespace,
        name=review.name,
        user=review.user,
        class_name=claim.spec.class_name[:CLASS_NAME_MAX],
        count=claim.spec.count,
        classes=evidence.classes,
        missing=evidence.missing,
        home=evidence.home,
    )
