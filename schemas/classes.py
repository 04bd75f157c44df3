"""GPUClass as the API server keeps it: a name for one device resource, and how much of it there is."""

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from schemas.conditions import STAMP_RULE, Conditions, ShownStamp
from schemas.entries import COUNT_MAX
from schemas.structural import Rule, Shape, ruled

_RESOURCE_NAME = (
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    "/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')"
    " && self.split('/')[0].size() <= 253 && self.split('/')[1].size() <= 63"
)
_NOT_NATIVE = "!self.split('/')[0].endsWith('kubernetes.io') && !self.startsWith('requests.')"


CONFLICT_CONDITION = "ResourceNameConflict"
"""The condition of a class whose resource name an older class has (K1)."""

LICENCE_CONDITION = "LicenseSecretMissing"
"""The condition of a class whose licence has no source (L3)."""


class Mode(StrEnum):
    """How a unit reaches the guest."""

    PASSTHROUGH = "Passthrough"
    VGPU = "VGPU"


class TolerationOperator(StrEnum):
    """How a toleration matches a taint's value."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class ClassToleration(Shape, frozen=True, omit_defaults=True, rename="camel"):
    """A toleration as on pods. Every pod that asks for the class gets it."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.key) || (has(self.operator) && self.operator == 'Exists')", "without a key the operator is Exists"
        ),
        Rule(
            "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
            "with the operator Exists there is no value",
        ),
        Rule(
            "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            "tolerationSeconds go with the effect NoExecute",
        ),
    )

    key: Annotated[str, Meta(description="The taint's key; without one, every key.", min_length=1, max_length=317)] = ""
    operator: Annotated[TolerationOperator | None, Meta(description="Equal where it is not given.")] = None
    value: Annotated[str, Meta(description="The taint's value, with Equal.", max_length=63)] = ""
    effect: Annotated[TaintEffect | None, Meta(description="The taint's effect; without one, every effect.")] = None
    toleration_seconds: Annotated[int, Meta(description="How long NoExecute is tolerated.")] | None = None


class License(Shape, frozen=True, rename="camel"):
    """The licence that guests of a vGPU class need."""

    secret_name: Annotated[
        str, Meta(description="Name of the Secret in the licence namespace.", min_length=1, max_length=253)
    ]


class ClassSpec(Shape, frozen=True, omit_defaults=True, rename="camel"):
    """What the class is. An edit counts for claims made from then on."""

    resource_name: Annotated[
        str,
        Meta(
            description="The extended resource that nodes offer; one unit of the class is one of it.",
            max_length=317,
            extra_json_schema=ruled(
                Rule(
                    _RESOURCE_NAME, "must be domain/name as the device plugin offers it, e.g. nvidia.com/AD102GL_L40S"
                ),
                Rule(_NOT_NATIVE, "must be an extended resource, not one of Kubernetes' own"),
            ),
        ),
    ]
    mode: Annotated[Mode, Meta(description="Passthrough: the whole device. VGPU: a slice of one.")]
    max_count: (
        Annotated[
            int,
            Meta(
                description="Most units one machine may have. Unset: 16 of a passthrough class, 1 of a vGPU class.",
                ge=1,
                le=COUNT_MAX,
            ),
        ]
        | None
    ) = None
    tolerations: Annotated[
        tuple[ClassToleration, ...],
        Meta(
            description="Taints of nodes that keep other pods away from these devices.",
            max_length=16,
            extra_json_schema={"x-kubernetes-list-type": "atomic"},
        ),
    ] = ()
    license: Annotated[License | None, Meta(description="Where the guests' licence is.")] = None


class ClassStatus(Shape, frozen=True, omit_defaults=True, rename="camel"):
    """How much there is, counted by gpubinder from its own books. Absent until it was counted."""

    allocatable: Annotated[int, Meta(description="Units that nodes offer.", ge=0)] | None = None
    held: Annotated[int, Meta(description="Units that are booked.", ge=0)] | None = None
    free: Annotated[int, Meta(description="Units that could be booked.", ge=0)] | None = None
    most_free: Annotated[int, Meta(description="Free units on the node that has most of them.", ge=0)] | None = None
    stamp: Annotated[ShownStamp | None, Meta(description="How far the log was folded when it was counted.")] = None
    conditions: Conditions = ()


class GpuClass(Shape, frozen=True, omit_defaults=True):
    """A kind of GPU that virtual machines ask for by name."""

    rules: ClassVar[tuple[Rule, ...]] = (STAMP_RULE,)

    spec: ClassSpec
    status: ClassStatus | None = None
