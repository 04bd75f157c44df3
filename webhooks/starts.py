"""A VMI under Refuse as it will be stored, with name and uid: the request that books its set, its webhook (T17)."""

from typing import Any

import msgspec

from schemas import names
from schemas.admission import START_PATH, START_WEBHOOK
from schemas.events import StartRequest
from schemas.kinds import VMI
from schemas.objects import Foreseen
from webhooks import cel
from webhooks.configuration import Service, client_config, entry
from webhooks.evidence import Evidence
from webhooks.reviews import MalformedReview, Review
from webhooks.vmi import Vmi
from webhooks.vmi import request_of as vmi_request_of

UID_MAX = 64
UNDER_REFUSE = "starts-under-refuse"
"""The match condition that keeps VMIs of other policies from being asked about."""


def is_booked_at_admission(vmi: Vmi) -> bool:
    """Say whether the VMI starts under Refuse: our mutating webhook wrote that on it, overwriting what was there."""
    return vmi.metadata.annotation(names.POLICY_ANNOTATION) == names.POLICY_REFUSE


def request_of(review: Review, vmi: Vmi, evidence: Evidence, launcher: Foreseen) -> StartRequest:
    """Return the request as it is decided on and replayed. Raises `MalformedReview` where the VMI has no identity."""
    uid, name = vmi.metadata.uid, review.name or vmi.metadata.name
    if not 0 < len(uid) <= UID_MAX or not name:
        raise MalformedReview("the VirtualMachineInstance has no name or no uid: only a validating webhook can book it")
    asked = vmi_request_of(msgspec.structs.replace(review, name=name), vmi, evidence)
    return StartRequest(review.uid, uid, asked, launcher)


def start_webhook(at: Service | str, ca_bundle: bytes) -> dict[str, Any]:
    """Return the entry of the validating configuration.

    Under other policies the API server asks nobody: the match condition reads what our mutating webhook wrote. A dry
    run books nothing, an outage refuses the start.
    """
    under_refuse = f"{cel.annotation(cel.NEW, names.POLICY_ANNOTATION)} == '{names.POLICY_REFUSE}'"
    return entry(
        START_WEBHOOK,
        VMI,
        client_config(at, START_PATH, ca_bundle),
        version=VMI.version,
        objectSelector={"matchLabels": {names.REFERENCE_LABEL: names.REFERENCE_VALUE}},
        matchConditions=[{"name": UNDER_REFUSE, "expression": under_refuse}],
    )
