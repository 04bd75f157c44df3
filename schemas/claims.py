"""GPUClaim as the API server keeps it: so many units of one class on one node, and where they are (N3, N4)."""

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from schemas.conditions import STAMP_RULE, Conditions, ShownStamp
from schemas.entries import COUNT_MAX
from schemas.structural import Rule, Shape, ruled

PLACED_CONDITION = "Placed"
PLACED_REASON = "Placed"
WAITING_REASON = "Waiting"
FREED_REASON = "BeingDeleted"

_FIXED = ruled(Rule("self == oldSelf", "does not change; make a new claim"))


class Phase(StrEnum):
    """Where a claim stands."""

    PENDING = "Pending"
    BOUND = "Bound"
    LOST = "Lost"


class ClaimSpec(Shape, frozen=True, rename="camel"):
    """What is asked for. It does not change: a claim is what it was made as."""

    class_name: Annotated[
        str, Meta(description="Name of the GPUClass.", min_length=1, max_length=253, extra_json_schema=_FIXED)
    ]
    count: Annotated[
        int,
        Meta(description="Units of that class, all on one node.", ge=1, le=COUNT_MAX, extra_json_schema=_FIXED),
    ] = 1


class AttachedTo(Shape, frozen=True):
    """The virtual machine instance that holds the claim."""

    name: Annotated[str, Meta(description="Its name.", max_length=253)]
    uid: Annotated[str, Meta(description="Its uid: the same name comes back with another one.", max_length=64)]


class ClaimStatus(Shape, frozen=True, omit_defaults=True, rename="camel"):
    """Where the units are, or why they are not placed. Written by gpubinder alone."""

    phase: Annotated[Phase, Meta(description="Pending: no node yet. Bound: on a node. Lost: its node can't keep it.")]
    node_name: Annotated[str, Meta(description="The node that gives the units.", max_length=253)] = ""
    resource_name: Annotated[
        str, Meta(description="The resource the units are counted by, also after the class is edited.", max_length=316)
    ] = ""
    attached_to: Annotated[AttachedTo | None, Meta(description="Who holds the claim.")] = None
    queue_position: (
        Annotated[int, Meta(description="Place in line while it waits; absent behind the first twenty.", ge=1)] | None
    ) = None
    stamp: Annotated[ShownStamp | None, Meta(description="Which decision of the log this status shows.")] = None
    conditions: Conditions = ()


class Claim(Shape, frozen=True, omit_defaults=True):
    """Units of one GPU class on one node, for one virtual machine."""

    rules: ClassVar[tuple[Rule, ...]] = (STAMP_RULE,)

    spec: ClaimSpec
    status: Annotated[ClaimStatus | None, Meta(extra_json_schema={"default": {"phase": Phase.PENDING.value}})] = None
