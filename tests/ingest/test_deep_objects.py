"""Objects that nest deeper than a decoder goes: a tenant may store them, and stops no list, no watch, no budget."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.deep import _TOKENS, LEVELS_KEPT, shallow
from binder.kube import ApiError
from binder.kube_wire import event, page
from ingest.sources import Unreadable, watched
from schemas.kinds import HELM_RELEASE, VM, Resource
from schemas.names import APPLICATION_KIND_LABEL, BUDGET_TOTAL, GPUS_ANNOTATION, TENANT_KIND
from schemas.objects import AnyView, Gone, TenantView, VmView

DEEP = LEVELS_KEPT + 3
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


@pytest.mark.parametrize("levels", [950, LEVELS, 100_000])
def test_a_deep_object_is_read_like_any_other(levels: int) -> None:
    """C22, B1: in a list and in a watch, beside others, however deep; its entries and its quota count."""
    flat, deep = page(a_list(vm(1), vm(levels))).items
    line = event(f'{{"type":"ADDED","object":{release(levels)}}}'.encode(), "helmreleases")

    for raw in (flat, deep, msgspec.Raw(vm(levels).encode())):
        seen = view(VM, raw)
        assert isinstance(seen, VmView)
        assert seen.gpus == "x"
    tenant = view(HELM_RELEASE, line.object)
    assert isinstance(tenant, TenantView)
    assert (tenant.tenant, tenant.hard, tenant.opaque) == ("tenant-a-b", {BUDGET_TOTAL: 3}, False)


def test_what_nests_deep_and_is_no_json_is_refused_and_nothing_breaks() -> None:
    """C22: a list or a line that is cut off in the middle is no answer, an object so cut is passed over."""
    cut = vm(LEVELS)[:-LEVELS]
    with pytest.raises(ApiError, match="no list"):
        page(a_list(cut))
    with pytest.raises(ApiError, match="no event"):
        event(f'{{"type":"ADDED","object":{cut}}}'.encode(), "virtualmachines")
    with pytest.raises(Unreadable):
        view(VM, msgspec.Raw(cut.encode()))


@pytest.mark.parametrize("end", [b"", b"\\", b"\\\\"])
def test_a_string_that_nothing_ends_hides_what_follows(end: bytes) -> None:
    """What is no JSON is left as it is, and read once: quotes without an end can't hold up who reads a body."""
    body = b'"' + b'\\"' * 1_000_000 + b"[" * (LEVELS_KEPT + 1) + b"]" * (LEVELS_KEPT + 1) + end

    assert shallow(body) == body


@given(
    st.recursive(
        st.none() | st.integers(-9, 9) | st.text(alphabet='a"\\{}[]é', max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='b"\\{[', max_size=3), inner),
    ),
    st.integers(0, LEVELS_KEPT - 50),
)
def test_all_that_is_not_too_deep_stays_as_it_was(value: object, levels: int) -> None:
    """Brackets and quotes within strings are no levels; what goes deeper than the last level kept is null."""
    body = msgspec.json.encode(value)
    assert shallow(body) == body

    above = b"[" * levels + b'{"deep":' + b"[" * DEEP + b"]" * DEEP + b',"beside":' + body + b"}"
    found = msgspec.json.decode(shallow(above + b"]" * levels))
    for _ in range(levels):
        [found] = found
    assert found["beside"] == value
    assert depth_of(found["deep"]) == LEVELS_KEPT - levels - 1


@pytest.mark.parametrize("filler", [b"[],", b"[[]],", b'["",[""]],', b'{"":{}},', b'"",', b" ", b"0,"])
def test_what_is_low_and_plenty_beside_what_is_deep_is_passed_over_at_once(filler: bytes) -> None:
    """A body of megabytes that nests deep somewhere is looked through in a few steps, not at each of its brackets."""
    body = b"[" * DEEP + filler * 100_000 + b"0" + b"]" * DEEP

    assert len(_TOKENS.findall(body)) <= 3 * DEEP


def test_an_abyss_is_left_as_it_is() -> None:
    """What nests deeper than any API server takes is nobody's object: its brackets are not counted to their end."""
    body = b"[" * (4 << 20) + b"]" * (4 << 20)

    assert shallow(body) is body


def depth_of(value: object) -> int:
    """Return how many lists stand within each other, before null or nothing."""
    depth = 0
    while isinstance(value, list):
        depth, value = depth + 1, value[0] if value else None
    return depth
