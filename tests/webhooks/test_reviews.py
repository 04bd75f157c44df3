"""The envelope: read, answered, and refused where it is none; whatever a body holds, there is an answer."""

import asyncio
import copy
import itertools
from collections.abc import Iterator
from typing import Any

import looptime
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.kinds import POD, VMI, Resource
from tests.webhooks.given import Desk, Obj, launcher, opened, review, vmi
from webhooks.reviews import PatchOp, allow, pointer, read_review, refuse

BODIES = {
    "empty": (b"", ""),
    "no JSON": (b"<xml/>", ""),
    "no object": (b"[]", ""),
    "no request": (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', ""),
    "no uid": (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}', ""),
    "odd uid": (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a b"}}', ""),
    "long uid": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"%s"}}' % (b"a" * 65),
        "",
    ),
    "old version": (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}', "u"),
    "another kind": (b'{"apiVersion":"admission.k8s.io/v1","kind":"Status","request":{"uid":"u"}}', "u"),
    "odd field": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","dryRun":"hunter2"}}',
        "u",
    ),
    "deep": (b'{"request":' + b"[" * 100_000, ""),
    "bad UTF-8": (b'{"apiVersion":"\xff\xfe","kind":"AdmissionReview","request":{"uid":"u"}}', "u"),
}


@pytest.mark.parametrize("webhook", ["vmis", "pods"])
@pytest.mark.parametrize(("body", "uid"), BODIES.values(), ids=BODIES.keys())
async def test_what_is_no_review_is_refused(desk: Desk, webhook: str, body: bytes, uid: str) -> None:
    """Refused as malformed, with the uid where it can be told; no value of the body is repeated (T16)."""
    verdict = await (desk.webhooks.vmi_verdict if webhook == "vmis" else desk.webhooks.pod_verdict)(body)
    response = msgspec.json.decode(verdict.body)["response"]

    assert (verdict.word, verdict.readable) == ("malformed", bool(uid))
    assert (response["uid"], response["allowed"], response["status"]["code"]) == (uid, False, 400)
    assert b"hunter2" not in verdict.body


@pytest.mark.parametrize("field", [{"namespace": ""}, {"namespace": "n" * 64}, {"name": "n" * 254}])
async def test_a_request_out_of_bounds_is_refused(desk: Desk, field: Obj) -> None:
    """Names that no API server sends are refused before anything is read for them."""
    answer = await desk.vmi(vmi(), **field)

    assert (answer.allowed, answer.code) == (False, 400)
    assert desk.events() == []


@pytest.mark.parametrize("at_vmis", [True, False])
async def test_the_wrong_kind_is_refused(desk: Desk, at_vmis: bool) -> None:
    """A pod at the VMI webhook, or the reverse: the configuration is wrong, and the answer says so."""
    obj, resource = (launcher(), POD) if at_vmis else (vmi(), VMI)
    body = msgspec.json.encode(review(obj, resource))
    answer = await (desk.webhooks.review_vmi if at_vmis else desk.webhooks.review_pod)(body)

    message = msgspec.json.decode(answer)["response"]["status"]["message"]
    assert message.endswith("correct its configuration")


def test_a_review_is_read_by_its_request() -> None:
    """Name, namespace, user and dry run come from the request."""
    read = read_review(msgspec.json.encode(review(launcher(), POD, dryRun=True)))

    assert (read.namespace, read.name, read.dry_run, read.kind.kind) == ("tenant-a", "", True, "Pod")
    assert read.user.endswith(":kubevirt-controller")


def test_answers_have_the_form_of_the_api() -> None:
    """A plain allow has no patch and no patch type; a refusal says `allowed: false` in so many words."""
    head = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":'

    assert allow("u") == head + b"true}}"
    assert b'"patchType":"JSONPatch","patch":' in allow("u", (PatchOp("/x", 1),))
    assert refuse("u", 403, "No", "no") == head + b'false,"status":{"code":403,"reason":"No","message":"no"}}}'  # type: ignore[arg-type]  # any code


def test_pointers_are_escaped() -> None:
    """A slash in an annotation's key does not lead deeper."""
    assert pointer("a", "b/c~d") == "/a/b~1c~0d"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401 - any JSON
    """Name every place in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def spoiled(document: Obj, path: tuple[str | int, ...], value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the document with another value in one place."""
    if not path:
        return value
    copied = copy.deepcopy(document)
    at: Any = copied
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copied


GPUS = [{"name": "gpubinder-0-0", "deviceName": "a"}, {"name": "x", "deviceName": "y", "tag": "z"}]
GIVEN: list[tuple[Obj, Resource]] = [
    (vmi(), VMI),
    (vmi(devices={"gpus": GPUS, "hostDevices": GPUS}, resources={"limits": {"a/b": 1}, "requests": {"c": "1"}}), VMI),
    (launcher(), POD),
    ({**launcher(), "spec": {"tolerations": [{"key": "k"}], "schedulingGates": [{"name": "g"}]}}, POD),
]
REVIEWS = st.sampled_from([review(*one, dryRun=dry, uid="u") for one in GIVEN for dry in (False, True)])
SPOILED = REVIEWS.flatmap(
    lambda document: st.builds(spoiled, st.just(document), st.sampled_from(list(places(document))), VALUES)
)


def test_every_body_gets_an_answer() -> None:
    """Random bytes, random JSON, and reviews spoiled in any place: an answer, never an exception."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        context = opened()
        desk, numbers = runner.run(context.__aenter__()), itertools.count()

        @settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(SPOILED.map(msgspec.json.encode) | st.binary(max_size=64) | VALUES.map(msgspec.json.encode))
        def answered(body: bytes) -> None:
            for verdict in (desk.webhooks.vmi_verdict, desk.webhooks.pod_verdict):
                # The same uid again would be the same request, and get the answer that was given to it.
                said = runner.run(verdict(body.replace(b'"uid":"u"', b'"uid":"u-%d"' % next(numbers))))
                response = msgspec.json.decode(said.body)["response"]

                assert said.word in {"admitted", "refused", "untouched", "malformed"}
                assert response["allowed"] is (said.word in {"admitted", "untouched"})
                assert response["allowed"] or response["status"]["message"]

        answered()
        runner.run(context.__aexit__(None, None, None))
