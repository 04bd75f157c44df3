"""Whatever is posted: an answer, never an error of our own and never silence."""

import asyncio
import copy
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.kinds import GPU_CLAIM, POD, VM_POOL, VMI, Resource
from tests.webhooks.given import Desk, Obj, launcher, opened, review, vmi
from webhooks.service import Patience

SECONDS = 20.0
EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TEXTS = st.sampled_from(
    [
        '[{"className":"l40s"}]',
        '[{"className":"l40s-24c","count":2}]',
        '[{"claimName":"mine"}]',
        "[]",
        "{",
        '[{"className":"l40s","count":1e400}]',
        '[{"className":"\\ud800"}]',
        "[" * 2000,
    ]
)


def paths(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the path of every node of a document, but of its root."""
    items: list[tuple[object, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [path for key, inner in items for path in ((*at, key), *paths(inner, (*at, key)))]


def changed(body: Obj, path: tuple[object, ...], value: object, *, gone: bool) -> Obj:
    """Return the document with another value at a path, or nothing there."""
    result = copy.deepcopy(body)
    node: Any = result
    for key in path[:-1]:
        node = node[key]
    if gone:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return result


def bodies(resource: object, obj: Obj) -> st.SearchStrategy[Obj]:
    """Return reviews that are right but for a few places."""

    @st.composite
    def draw(pick: st.DrawFn) -> Obj:
        body = review(copy.deepcopy(obj), resource)  # type: ignore[arg-type]  # VMI or POD
        body["request"]["object"]["metadata"].setdefault("annotations", {})["cozystack.io/gpus"] = pick(
            TEXTS | st.text()
        )
        for _ in range(pick(st.integers(0, 4))):
            places = paths(body)
            path = places[pick(st.integers(0, len(places) - 1))]
            body = changed(body, path, pick(ANY), gone=pick(st.booleans()))
        return body

    return draw()


async def answered(desk: Desk, resource: Resource, body: bytes) -> None:
    """Post a body to the webhook of a kind: it gives a review back in time, and no failure of its own."""
    webhooks = desk.webhooks
    asked = {
        VMI: webhooks.vmi_verdict,
        POD: webhooks.pod_verdict,
        VM_POOL: webhooks.write_verdict,
        GPU_CLAIM: webhooks.order_verdict,
    }
    async with asyncio.timeout(SECONDS):
        said = msgspec.json.decode((await asked[resource](body)).body)
    response = said["response"]
    assert isinstance(response["allowed"], bool)
    if not response["allowed"]:
        assert response["status"]["code"] in {400, 403, 429, 503}
        assert response["status"]["message"]


def test_any_bytes_are_answered() -> None:
    """No JSON, half a JSON, JSON of anything: told so."""

    @EXAMPLES
    @given(st.binary(max_size=200) | ANY.map(_encoded))
    def each(body: bytes) -> None:
        asyncio.run(_posted((VMI, POD, VM_POOL, GPU_CLAIM), body))

    each()


def test_any_vmi_is_answered() -> None:
    """A review of a VMI with anything anywhere in it."""

    @EXAMPLES
    @given(
        bodies(VMI, {**vmi(), "spec": {**vmi()["spec"], "domain": {"devices": {"gpus": [{"name": "gpubinder-0-0"}]}}}})
    )
    def each(body: Obj) -> None:
        asyncio.run(_posted((VMI,), _encoded(body)))

    each()


def test_any_launcher_is_answered() -> None:
    """A review of a pod with anything anywhere in it."""

    @EXAMPLES
    @given(bodies(POD, launcher()))
    def each(body: Obj) -> None:
        asyncio.run(_posted((POD,), _encoded(body)))

    each()


def test_any_write_is_answered() -> None:
    """A review of a pool, or of a count of its replicas, with anything anywhere in it."""
    template = {"metadata": vmi()["metadata"], "spec": {}}
    spec = {"replicas": 2, "virtualMachineTemplate": {"spec": {"template": template}}}
    pool = {"metadata": {"name": "p"}, "spec": spec}

    @EXAMPLES
    @given(bodies(VM_POOL, pool) | bodies(VM_POOL, pool).map(_of_a_scale))
    def each(body: Obj) -> None:
        asyncio.run(_posted((VM_POOL,), _encoded(body)))

    each()


def _of_a_scale(body: Obj) -> Obj:
    if isinstance(body.get("request"), dict):
        body["request"] |= {"operation": "UPDATE", "subResource": "scale"}
    return body


def test_any_order_is_answered() -> None:
    """A review of a claim with anything anywhere in it."""

    @EXAMPLES
    @given(bodies(GPU_CLAIM, {"metadata": {"name": "c"}, "spec": {"className": "l40s", "count": 1}}))
    def each(body: Obj) -> None:
        asyncio.run(_posted((GPU_CLAIM,), _encoded(body)))

    each()


async def _posted(kinds: tuple[Resource, ...], body: bytes) -> None:
    async with opened(Patience(answer_s=5.0)) as desk:
        for kind in kinds:
            await answered(desk, kind, body)


def _encoded(value: object) -> bytes:
    """Return JSON; what has no JSON (lone surrogates) as bytes that are none."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError):
        return b"\xff"
