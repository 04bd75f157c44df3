"""Budgets to views: a GPUBudget's keys, and of a tenant's HelmRelease its GPU quotas and nothing else (B1, T16)."""

import msgspec
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from ingest.budgets import read_budget, read_release
from schemas.objects import BudgetView, Gone, Stamp, TenantView
from tests.ingest.given import UID, raw, seen

TOTAL, L40S = "gpus.cozystack.io", "gpus.cozystack.io/l40s-24c"
CARD = "nvidia.com/AD102GL_L40S"
QUOTAS = "spec__values__resourceQuotas"


def release(**changes: object) -> TenantView:
    """The release of the file, with changes."""
    view = read_release(seen("release", **changes))
    assert isinstance(view, TenantView)
    return view


def test_a_budget_shows_its_keys_and_which_place_in_the_log_it_mirrors() -> None:
    """Status is ours and left out; without an annotation, or with one that is no stamp, it is nobody's mirror."""
    assert read_budget(seen("budget")) == BudgetView(
        "tenant-quotas", UID.format(10), "41", "tenant-a", hard={TOTAL: 6, L40S: 4}, mirrors=Stamp(1, 420, 0)
    )
    assert read_budget(seen("budget", metadata__annotations=None)).mirrors is None
    odd = {"cozystack.io/gpu-stamp": "1.x"}
    assert read_budget(seen("budget", metadata__annotations=odd)).mirrors is None
    assert read_budget(seen("budget", spec__hard=None)).hard == {}


def test_a_tenants_release_shows_its_gpu_quotas_alone() -> None:
    """B1, T16: class keys, their sum and extended resources; cpu, storage and everything else stay behind."""
    view = release()

    assert view == TenantView(
        "tenant-b", UID.format(11), "42", "tenant-a", tenant="tenant-a-b", hard={TOTAL: 6, L40S: 4, CARD: 2}
    )
    assert b"hunter2" not in msgspec.json.encode(view)


def test_a_release_of_another_kind_does_not_matter() -> None:
    """A label of another kind, no label and another chart, or a name that no tenant can have."""
    labels = "metadata__labels"
    assert isinstance(read_release(seen("release", **{labels: {"apps.cozystack.io/application.kind": "Redis"}})), Gone)
    assert isinstance(read_release(seen("release", **{labels: None})), Gone)
    assert isinstance(read_release(seen("release", metadata__name="tenant-b-c")), Gone)
    assert isinstance(read_release(seen("release", metadata__name="b")), Gone)
    assert isinstance(read_release(seen("release", metadata__namespace="cozy-system")), Gone)


def test_an_older_release_is_known_by_its_chart() -> None:
    """Without the label, the chart `tenant` makes a tenant."""
    view = release(metadata__labels=None, spec__chartRef=None, spec__chart={"spec": {"chart": "tenant"}})

    assert view.hard[TOTAL] == 6


@pytest.mark.parametrize(
    ("namespace", "name", "tenant"),
    [
        ("tenant-root", "tenant-root", "tenant-root"),
        ("tenant-root", "tenant-a", "tenant-a"),
        ("tenant-a", "tenant-b", "tenant-a-b"),
        ("tenant-a-b", "tenant-c", "tenant-a-b-c"),
    ],
)
def test_a_release_makes_the_namespace_that_its_names_say(namespace: str, name: str, tenant: str) -> None:
    """C29: children of the root leave the root's name out; the root makes itself."""
    assert release(metadata__namespace=namespace, metadata__name=name).tenant == tenant


@pytest.mark.parametrize(
    ("amount", "units"),
    [(4, 4), ("4", 4), (4.0, 4), ("4000m", 4), ("0", 0), ("1k", 1000), ("9e30", 1_000_000_000)],
)
def test_amounts_are_whole_units(amount: object, units: int) -> None:
    """Helm values write them as numbers or as quantities; zero is a limit (C28)."""
    assert release(**{QUOTAS: {TOTAL: amount}}).hard == {TOTAL: units}


@pytest.mark.parametrize("amount", ["", "four", "1.5", 1.5, -1, "-1", True, None, [4], {"a": 1}, "1Qi"])
def test_an_amount_that_can_not_be_read_is_named(amount: object) -> None:
    """It is no limit of zero and no missing limit either: the fold says what it was before."""
    view = release(**{QUOTAS: {TOTAL: amount, L40S: 2}})

    assert (view.hard, view.unread, view.opaque) == ({L40S: 2}, (TOTAL,), False)


@pytest.mark.parametrize("quotas", ["none", [1], 7, {f"nvidia.com/a{number}": 1 for number in range(65)}])
def test_quotas_that_can_not_be_read_at_all_are_said_to_be_so(quotas: object) -> None:
    """A list, a text, or more GPU keys than a budget holds."""
    view = release(**{QUOTAS: quotas})

    assert (view.hard, view.unread, view.opaque) == ({}, (), True)


def test_a_release_without_quotas_sets_no_limit() -> None:
    """No values, no quotas, or null: nothing is limited, and nothing is unreadable."""
    given: tuple[dict[str, object], ...] = (
        {"spec__values": None},
        {"spec__values": {}},
        {QUOTAS: None},
        {"spec__values": {"a": 1}},
    )
    for changes in given:
        assert release(**changes) == TenantView("tenant-b", UID.format(11), "42", "tenant-a", tenant="tenant-a-b")
    null = read_release(raw({"metadata": {"name": "tenant-b", "namespace": "tenant-a"}, "spec": {"values": None}}))
    assert isinstance(null, Gone)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@drawn(values=JSON, quotas=st.dictionaries(st.sampled_from([TOTAL, L40S, CARD, "cpu"]), JSON))
def test_any_values_are_read_to_keys_of_gpus_alone(values: object, quotas: object) -> None:
    """T16: whatever stands in the values, the view holds GPU keys and whole units, or says that it can't tell."""
    for found in (release(spec__values=values or {"a": 1}), release(**{QUOTAS: quotas})):
        assert {*found.hard, *found.unread} <= {TOTAL, L40S, CARD}
        assert all(units >= 0 for units in found.hard.values())
