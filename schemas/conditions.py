"""What the status of every object of ours holds: typed conditions, and the stamp that never goes back (T22)."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from schemas.objects import Stamp
from schemas.structural import Rule, Shape, listed_by

REASON_LENGTH_MAX = 1024
MESSAGE_LENGTH_MAX = 32768


class Truth(StrEnum):
    """The status of a condition, in Kubernetes' own words."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Shape, frozen=True, omit_defaults=True, rename="camel"):
    """One aspect of the object's state, as every Kubernetes condition."""

    type: Annotated[str, Meta(description="What the condition is about.", min_length=1, max_length=316)]
    status: Annotated[Truth, Meta(description="Whether it holds.")]
    reason: Annotated[
        str,
        Meta(
            description="Why, in one word of a closed list.",
            min_length=1,
            max_length=REASON_LENGTH_MAX,
            pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
    ]
    message: Annotated[str, Meta(description="Why, in a sentence.", max_length=MESSAGE_LENGTH_MAX)]
    last_transition_time: Annotated[
        str, Meta(description="When the status last changed.", extra_json_schema={"format": "date-time"})
    ]
    observed_generation: Annotated[int, Meta(description="The generation of the spec it speaks of.", ge=0)] = 0


Conditions = Annotated[
    tuple[Condition, ...],
    Meta(description="What holds of the object now, and why.", max_length=8, extra_json_schema=listed_by("type")),
]


def condition_of(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Return the condition of that type, None where there is none."""
    return next((one for one in conditions if one.type == kind), None)


def changed_at(known: Condition | None, status: Truth, now: str) -> str:
    """Return a condition's last transition time, RFC 3339: when its status last changed, not its reason."""
    return known.last_transition_time if known is not None and known.status == status else now


class ShownStamp(Shape, frozen=True):
    """Which decision of the log this status shows: it never goes back."""

    generation: Annotated[int, Meta(description="Generation of the log.", ge=0)]
    sequence: Annotated[int, Meta(description="Sequence of the input that was decided on.", ge=0)]
    entry: Annotated[int, Meta(description="Place among the decisions on that input.", ge=0)]

    @classmethod
    def of(cls, stamp: Stamp) -> "ShownStamp":
        """Return the stamp as the status shows it: all three numbers, zeros included."""
        return cls(stamp.generation, stamp.sequence, stamp.entry)

    @property
    def stamp(self) -> Stamp:
        """Return it as the log's own stamp."""
        return Stamp(self.generation, self.sequence, self.entry)


def _not_before(one: str, other: str) -> str:
    """CEL: stamp `one` is not before `other`, compared number by number."""
    higher, equal = "{0}.{2} > {1}.{2}", "{0}.{2} == {1}.{2}"
    generation, sequence = (equal.format(one, other, field) for field in ("generation", "sequence"))
    return (
        f"{higher.format(one, other, 'generation')} || ({generation} && "
        f"({higher.format(one, other, 'sequence')} || ({sequence} && {one}.entry >= {other}.entry)))"
    )


STAMP_RULE = Rule(
    rule=(
        "!has(oldSelf.status) || !has(oldSelf.status.stamp) || (has(self.status) && has(self.status.stamp) && ("
        + _not_before("self.status.stamp", "oldSelf.status.stamp")
        + "))"
    ),
    message="status.stamp must stay and must not go back: this writer is behind the decision log",
    field_path=".status",
)
"""At the schema's root: on `status` alone, `status: null` slips by and any lower stamp after it (T22)."""
