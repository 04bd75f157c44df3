"""Budgets, from bytes to views: GPUBudget, and the GPU keys of the quotas in a tenant's HelmRelease (B1).

Of a HelmRelease's values nothing but those keys gets out: passwords and the like stay behind (T16). What can't
be read is named, not left out: left out, it would be no limit.
"""

import re
from typing import Final

import msgspec

from binder.tenants import tenant_of_release
from ingest.metadata import Metadata, gone, head
from schemas import names
from schemas.budgets import KEY_LENGTH_MAX, KEYS_MAX, UNITS_MAX
from schemas.objects import BudgetView, Gone, TenantView
from schemas.quantity import MalformedQuantity, parse_quantity
from schemas.stamping import read_stamp

_EXTENDED: Final = re.compile(
    r"(?P<domain>[a-z0-9]([-a-z0-9.]*[a-z0-9])?)/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?",
)
_OF_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
_OF_QUOTAS: Final = ("requests.", "limits.")
_THOUSANDTHS: Final = 1000


class _BudgetSpec(msgspec.Struct, frozen=True):
    hard: dict[str, int] | None = None


class _Budget(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _BudgetSpec = _BudgetSpec()


class _ChartSpec(msgspec.Struct, frozen=True):
    chart: str = ""


class _Chart(msgspec.Struct, frozen=True):
    spec: _ChartSpec | None = None


class _ReleaseSpec(msgspec.Struct, frozen=True):
    chart: _Chart | None = None
    values: msgspec.Raw = msgspec.Raw(b"null")


class _Release(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ReleaseSpec = _ReleaseSpec()


class _Values(msgspec.Struct, frozen=True, rename="camel"):
    resource_quotas: dict[str, msgspec.Raw] | None = None


_budget = msgspec.json.Decoder(_Budget)
_release = msgspec.json.Decoder(_Release)
_values: msgspec.json.Decoder[_Values | None] = msgspec.json.Decoder(_Values | None)
_amount: msgspec.json.Decoder[int | float | str] = msgspec.json.Decoder(int | float | str)


def read_budget(raw: msgspec.Raw | bytes) -> BudgetView:
    """Read a GPUBudget; the stamp that its mirror carries says how far that is."""
    found = _budget.decode(raw)
    mirrors = read_stamp(found.metadata.annotation(names.STAMP_ANNOTATION))
    return BudgetView(**head(found.metadata), hard=found.spec.hard or {}, mirrors=mirrors)


def read_release(raw: msgspec.Raw | bytes) -> TenantView | Gone:
    """Read a HelmRelease; all but those of kind Tenant do not matter.

    Cozystack marks them by a label, older versions by their chart alone.
    """
    found = _release.decode(raw)
    metadata, chart = found.metadata, found.spec.chart
    label = metadata.label(names.APPLICATION_KIND_LABEL)
    charted = not label and chart is not None and chart.spec is not None and chart.spec.chart == names.TENANT_CHART
    tenant = tenant_of_release(metadata.namespace, metadata.name)
    if not tenant or not (label == names.TENANT_KIND or charted):
        return gone(metadata)
    try:
        values = _values.decode(found.spec.values)
    except msgspec.DecodeError:
        return TenantView(**head(metadata), tenant=tenant, opaque=True)
    quotas = {key: raw for key, raw in ((values.resource_quotas if values else None) or {}).items() if _is_gpu(key)}
    if len(quotas) > KEYS_MAX:
        return TenantView(**head(metadata), tenant=tenant, opaque=True)
    amounts = {key: _units(raw) for key, raw in sorted(quotas.items())}
    return TenantView(
        **head(metadata),
        tenant=tenant,
        hard={key: units for key, units in amounts.items() if units is not None},
        unread=tuple(key for key, units in amounts.items() if units is None),
    )


def _is_gpu(key: str) -> bool:
    """Say whether a quota is one of GPUs: a budget key of ours, or an extended resource of somebody else's."""
    if key == names.BUDGET_TOTAL:
        return True
    found = _EXTENDED.fullmatch(key) if len(key) <= KEY_LENGTH_MAX else None
    return found is not None and not found["domain"].endswith(_OF_KUBERNETES) and not key.startswith(_OF_QUOTAS)


def _units(raw: msgspec.Raw) -> int | None:
    """Return whole units, None for what is no such number; more than a budget can say is that much."""
    try:
        found = _amount.decode(raw)
        text = found if isinstance(found, str) else repr(found)
        units, thousandths = parse_quantity(text), parse_quantity(text, _THOUSANDTHS)
    except (msgspec.DecodeError, MalformedQuantity):
        return None
    if units >= UNITS_MAX:
        return UNITS_MAX
    return units if units >= 0 and thousandths == units * _THOUSANDTHS else None
