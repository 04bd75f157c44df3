"""Whatever is posted: an answer, never an error of our own and never silence."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import looptime
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binder.book import Book
from binder.state import empty_state
from schemas.admission import SCALE, UPDATE
from schemas.kinds import GPU_CLAIM, POD, VM, VM_POOL, VMI, VMI_REPLICA_SET, Resource
from tests.webhooks.declaring import claim, pool, replica_set, scale, vm
from tests.webhooks.given import Obj, launcher, opened, review, vmi
from tests.webhooks.test_budget_desk import Bookkeeper
from webhooks.service import Patience
from webhooks.verdicts import Verdict

SECONDS = 120.0
EXAMPLES = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
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


def booked_at_admission() -> Obj:
    """Return a VMI as it is about to be stored under policy Refuse."""
    body = copy.deepcopy(vmi())
    body["metadata"]["annotations"]["cozystack.io/gpu-start-policy"] = "Refuse"
    body["metadata"]["uid"] = "u1"
    return body


class Door(msgspec.Struct, frozen=True):
    """One webhook: what it is posted when all is right. `open_`: what it can't check passes, with a warning (T20)."""

    verdict: str
    resource: Resource
    body: Obj
    before: Obj | None = None
    more: Mapping[str, object] = {}
    open_: bool = False


FORGED = {**vmi(), "spec": {**vmi()["spec"], "domain": {"devices": {"gpus": [{"name": "gpubinder-0-0"}]}}}}
SCALING: Mapping[str, object] = {
    "operation": UPDATE,
    "subResource": SCALE,
    "name": "pool",
    "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
}
DOORS = {
    "a VMI": Door("vmi_verdict", VMI, FORGED),
    "a launcher": Door("pod_verdict", POD, launcher()),
    "a start": Door("start_verdict", VMI, booked_at_admission()),
    "a VM": Door("write_verdict", VM, vm(1), open_=True),
    "a VM that changes": Door("write_verdict", VM, vm(2), vm(1), {"operation": UPDATE}, open_=True),
    "a pool": Door("write_verdict", VM_POOL, pool(2), open_=True),
    "a replica set": Door("write_verdict", VMI_REPLICA_SET, replica_set(2), open_=True),
    "a bare VMI": Door("write_verdict", VMI, vmi(), open_=True),
    "a scale": Door("write_verdict", VM_POOL, scale(3), scale(1), SCALING, open_=True),
    "an order": Door("order_verdict", GPU_CLAIM, claim()),
}


def bodies(door: Door) -> st.SearchStrategy[Obj]:
    """Return reviews that are right but for a few places."""

    @st.composite
    def draw(pick: st.DrawFn) -> Obj:
        body = review(copy.deepcopy(door.body), door.resource, oldObject=copy.deepcopy(door.before), **door.more)
        head = body["request"]["object"].setdefault("metadata", {})
        if "annotations" in head:
            head["annotations"]["cozystack.io/gpus"] = pick(TEXTS | st.text())
        for _ in range(pick(st.integers(0, 4))):
            places = paths(body)
            path = places[pick(st.integers(0, len(places) - 1))]
            body = changed(body, path, pick(ANY), gone=pick(st.booleans()))
        return body

    return draw()


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_any_bytes_are_answered(door: Door) -> None:
    """No JSON, half a JSON, JSON of anything: told so, whichever webhook gets it."""

    @EXAMPLES
    @given(st.binary(max_size=200) | ANY.map(_encoded))
    def each(body: bytes) -> None:
        _answered(door, body)

    each()


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_any_review_is_answered(door: Door) -> None:
    """A review that is right but for anything anywhere in it."""

    @EXAMPLES
    @given(bodies(door))
    def each(body: Obj) -> None:
        _answered(door, _encoded(body))

    each()


FILLERS = st.sampled_from([b"", b"[],", b"[[]],", b'["",[""]],', b'"[{",', b'{"a":', b'"', b"\\", b'{"a":[{}]},'])


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_any_nesting_is_answered(door: Door) -> None:
    """Brackets by the thousands, alone or within a review, closed or not, with anything between: told so."""
    whole = _encoded(review(copy.deepcopy(door.body), door.resource, **door.more))
    head, tail = whole.split(b'"request":{', 1)

    @EXAMPLES
    @given(st.integers(0, 30_000), FILLERS, st.integers(0, 2000), st.booleans(), st.booleans())
    def each(levels: int, filler: bytes, count: int, closed: bool, within: bool) -> None:
        nest = b"[" * levels + filler * count + b"0" + b"]" * (levels if closed else 0)
        _answered(door, head + b'"request":{"deep":' + nest + b"," + tail if within else nest)

    each()


def _answered(door: Door, body: bytes) -> None:
    """Post a body on a loop whose time jumps: no patience ends because the machine is busy."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        runner.run(_posted(door, body))


async def _posted(door: Door, body: bytes) -> None:
    """Post a body: a review comes back in time, and it is no failure of the webhook's own."""
    async with opened(Patience(answer_s=0.5, unchecked_s=0.5), clerk=Bookkeeper) as desk:
        assert isinstance(desk.clerk, Bookkeeper)
        desk.clerk.book = Book(empty_state())
        ask: Callable[[bytes], Awaitable[Verdict]] = getattr(desk.webhooks, door.verdict)
        async with asyncio.timeout(SECONDS):
            verdict = await ask(body)
    assert verdict.word != "failed"
    response = msgspec.json.decode(verdict.body)["response"]
    assert isinstance(response["allowed"], bool)
    if not response["allowed"]:
        assert response["status"]["code"] in {400, 403, 429, 503}
        assert response["status"]["message"]
        assert not (door.open_ and response["status"]["code"] in {429, 503})


def _encoded(value: object) -> bytes:
    """Return JSON; what has no JSON (lone surrogates) as bytes that are none."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError):
        return b"\xff"
