"""The tree of tenants: what the name of a namespace says of those above it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.tenants import is_tenant, line_of, release_of_tenant, tenant_of_release


@pytest.mark.parametrize(
    ("namespace", "line"),
    [
        ("tenant-root", ("tenant-root",)),
        ("tenant-a", ("tenant-a", "tenant-root")),
        ("tenant-ab", ("tenant-ab", "tenant-root")),
        ("tenant-a-b-c", ("tenant-a-b-c", "tenant-a-b", "tenant-a", "tenant-root")),
        ("tenant-root-x", ("tenant-root-x", "tenant-root")),
        ("tenant-a--b", ("tenant-a--b", "tenant-a", "tenant-root")),
        ("default", ("default",)),
        ("kube-system", ("kube-system",)),
        ("tenant", ("tenant",)),
        ("tenant-", ("tenant-",)),
        ("tenants-a-b", ("tenants-a-b",)),
    ],
)
def test_c29_the_line_of_a_namespace_stands_in_its_name(namespace: str, line: tuple[str, ...]) -> None:
    """C29: cut at dashes, the root above all tenants, and a namespace that is no tenant's alone on its own."""
    assert line_of(namespace) == line


NAMES = st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=4).map("-".join)


@given(parts=st.lists(st.text("abroot", min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_tenant_is_below_each_beginning_of_its_name(parts: list[str]) -> None:
    """C29: of a name made of parts, the line is each whole beginning, longest first, and then the root."""
    line = line_of("tenant-" + "-".join(parts))

    above = ["tenant-" + "-".join(parts[:count]) for count in range(len(parts), 0, -1)]
    assert list(line) == [*above, *(["tenant-root"] if above[-1] != "tenant-root" else [])]


@given(namespace=st.sampled_from(["tenant-root", "tenant-a", "tenant-a-b", "default", "tenant"]), name=NAMES)
def test_release_and_tenant_find_each_other(namespace: str, name: str) -> None:
    """A release makes one namespace, and from that name its own is found again."""
    tenant = tenant_of_release(namespace, f"tenant-{name}")

    if "-" in name or not is_tenant(namespace):
        assert tenant == ""
    else:
        assert release_of_tenant(tenant) == f"{namespace}/tenant-{name}"
        assert tenant in line_of(tenant)
        assert namespace in line_of(tenant)


@pytest.mark.parametrize("tenant", ["default", "tenant", "tenant-", "tenant-root-x", "tenant-a--b"])
def test_a_namespace_that_no_release_makes_has_none(tenant: str) -> None:
    """Names of which a dash is in the wrong place, and those that are no tenants'."""
    assert release_of_tenant(tenant) == ""
