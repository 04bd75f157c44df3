"""GPUBudget as the API server keeps it: units that a tenant and all below it may hold, and do hold (B1)."""

from typing import Annotated, ClassVar

from msgspec import Meta

from schemas import names
from schemas.conditions import STAMP_RULE, ShownStamp
from schemas.structural import Rule, Shape, listed_by, ruled

KEYS_MAX = 64
KEY_LENGTH_MAX = 317
UNITS_MAX = 1_000_000_000
BINDINGS_MAX = 256
"""How many keys a status tells the binding budget of: a line of tenants may limit more than one budget can."""
TEXT_MAX = 32_768
"""Characters of a status's lists that are there to be read."""

_KEY_RULE = Rule(
    f"self.all(key, key == '{names.BUDGET_TOTAL}' || "
    "(key.size() <= 317 && key.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')"
    " && !key.split('/')[0].endsWith('kubernetes.io') && !key.split('/')[0].endsWith('k8s.io')"
    " && !key.startsWith('requests.') && !key.startsWith('limits.')))",
    f"a key is {names.BUDGET_TOTAL}, {names.BUDGET_CLASS_PREFIX}CLASS, or an extended resource as nodes offer it",
)

_Key = Annotated[str, Meta(max_length=KEY_LENGTH_MAX)]
_Units = Annotated[int, Meta(ge=0, le=UNITS_MAX)]
_Units64 = Annotated[int, Meta(ge=0)]


class BudgetSpec(Shape, frozen=True):
    """What the tenant and every tenant below it may hold together."""

    hard: Annotated[
        dict[_Key, _Units],
        Meta(
            description=(
                f"Units by key: {names.BUDGET_TOTAL} over all classes, {names.BUDGET_CLASS_PREFIX}CLASS of one class, "
                "a resource name for pods that ask for it without a claim. No key: no limit. Zero is a limit."
            ),
            max_length=KEYS_MAX,
            extra_json_schema=ruled(_KEY_RULE),
        ),
    ]


class Binding(Shape, frozen=True, omit_defaults=True):
    """The budget that leaves least of a key to the tenant: its own, or an ancestor's."""

    key: Annotated[str, Meta(description="The key.", max_length=KEY_LENGTH_MAX)]
    namespace: Annotated[str, Meta(description="Whose budget it is.", max_length=63)]
    budget: Annotated[str, Meta(description="Its name.", max_length=253)]
    hard: Annotated[int, Meta(description="What it allows.", ge=0)]
    used: Annotated[int, Meta(description="What is held under it, by that tenant and all below it.", ge=0)]


class BudgetStatus(Shape, frozen=True, omit_defaults=True, rename="camel"):
    """What is held under the budget, counted by gpubinder from its own books. Absent until it was counted."""

    used: (
        Annotated[
            dict[_Key, _Units64],
            Meta(description="Units held by the tenant and all below it, by key of the budget.", max_length=KEYS_MAX),
        ]
        | None
    ) = None
    declared: (
        Annotated[
            dict[_Key, _Units64],
            Meta(
                description=(
                    "Units that the tenant and all below it declare, of classes and all together: what VMs, pools and "
                    "claims ask for, running or not. More of it than is allowed is refused where it is written."
                ),
                max_length=KEYS_MAX,
            ),
        ]
        | None
    ) = None
    binding: Annotated[
        tuple[Binding, ...],
        Meta(
            description=(
                "For each key that any budget of the tenant's line limits: the one that leaves least; "
                "of very many keys those that leave least."
            ),
            max_length=BINDINGS_MAX,
            extra_json_schema=listed_by("key"),
        ),
    ] = ()
    usage: Annotated[str, Meta(description="Used of allowed units by key, to be read.", max_length=TEXT_MAX)] = ""
    asks: Annotated[str, Meta(description="Declared of allowed units by key, to be read.", max_length=TEXT_MAX)] = ""
    bound_by: Annotated[str, Meta(description="Which budgets bind, to be read.", max_length=TEXT_MAX)] = ""
    stamp: Annotated[ShownStamp | None, Meta(description="How far the log was folded when it was counted.")] = None


class GpuBudget(Shape, frozen=True, omit_defaults=True):
    """How many GPU units a tenant, together with every tenant below it, may hold."""

    rules: ClassVar[tuple[Rule, ...]] = (STAMP_RULE,)

    spec: BudgetSpec
    status: BudgetStatus | None = None
