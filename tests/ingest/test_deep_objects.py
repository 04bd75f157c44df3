"""Objects that nest deeper than Python does: a tenant may store them, and stops no list, no watch, no budget."""

import sys

import msgspec
import pytest

from binder.kube import ApiError
from binder.kube_wire import event, page
from ingest.sources import Unreadable, watched
from schemas.kinds import HELM_RELEASE, VM, Resource
from schemas.names import APPLICATION_KIND_LABEL, BUDGET_TOTAL, GPUS_ANNOTATION, TENANT_KIND
from schemas.objects import AnyView, Gone, TenantView, VmView

LEVELS = 9_900
"""Of an object an API server takes 10,000 at most."""


def nested(levels: int) -> str:
    """Return a value of so many levels."""
    return '{"a":' * levels + "1" + "}" * levels


def stored(name: str, spec: str, labels: str = "{}") -> str:
    """Return an object as an API server gives it out."""
    marks = f'"namespace":"tenant-a","uid":"u","resourceVersion":"2","labels":{labels}'
    return f'{{"metadata":{{"name":"{name}",{marks}}},"spec":{spec}}}'


def vm(levels: int) -> str:
    """Return a VM whose template's metadata, where KubeVirt lets anything in, nests so deep."""
    entries = f'{{"{GPUS_ANNOTATION}":"x"}}'
    return stored("vm", f'{{"template":{{"metadata":{{"deep":{nested(levels)},"annotations":{entries}}}}}}}')


def release(levels: int) -> str:
    """Return a tenant's release with a quota beside values that nest so deep."""
    values = f'{{"deep":{nested(levels)},"resourceQuotas":{{"{BUDGET_TOTAL}":"3"}}}}'
    return stored("tenant-b", f'{{"values":{values}}}', f'{{"{APPLICATION_KIND_LABEL}":"{TENANT_KIND}"}}')


def a_list(*objects: str) -> bytes:
    """Return what an API server answers to a list."""
    return ('{"metadata":{"resourceVersion":"7"},"items":[' + ",".join(objects) + "]}").encode()


def view(kind: Resource, raw: msgspec.Raw) -> AnyView | Gone:
    """Read an object as the watch of its kind does."""
    return next(one for one in watched("gpubinder") if one.resource == kind).view(raw)


def test_a_deep_object_is_read_like_any_other() -> None:
    """C22, B1: in a list and in a watch, beside others; its quota counts; and Python's own limit is what it was."""
    usual = sys.getrecursionlimit()

    flat, deep = page(a_list(vm(1), vm(LEVELS))).items
    line = event(f'{{"type":"ADDED","object":{release(LEVELS)}}}'.encode(), "helmreleases")

    for raw in (flat, deep):
        seen = view(VM, raw)
        assert isinstance(seen, VmView)
        assert seen.gpus == "x"
    tenant = view(HELM_RELEASE, line.object)
    assert isinstance(tenant, TenantView)
    assert (tenant.tenant, tenant.hard, tenant.opaque) == ("tenant-a-b", {BUDGET_TOTAL: 3}, False)
    assert sys.getrecursionlimit() == usual


@pytest.mark.parametrize("levels", [20_000, 200_000])
def test_what_no_api_server_stores_is_refused_and_nothing_breaks(levels: int) -> None:
    """C22: an answer that nests beyond all limits is no answer; an object that does is passed over."""
    with pytest.raises(ApiError, match="no list"):
        page(a_list(vm(levels)))
    with pytest.raises(ApiError, match="no event"):
        event(f'{{"type":"ADDED","object":{vm(levels)}}}'.encode(), "virtualmachines")
    with pytest.raises(Unreadable):
        view(VM, msgspec.Raw(vm(levels).encode()))
