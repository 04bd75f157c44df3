"""Held claims at the front desk: read fresh beside their classes, in the request as they were read."""

import msgspec
import pytest

from binder.kube import ApiError, PatchKind
from schemas.events import PodRequest, VmiRequest
from schemas.kinds import GPU_CLAIM
from tests.webhooks.given import CARD, GPU_TAINT, SLICE, Desk, Obj, gpus, launcher, vmi

pytestmark = pytest.mark.looptime

NAMED = gpus({"className": "l40s-24c"}, {"claimName": "mine"})


async def order(desk: Desk, name: str = "mine", namespace: str = "tenant-a", **status: str) -> None:
    """Store a held claim of one card; `status` is what it shows."""
    await desk.create(GPU_CLAIM, name, {"spec": {"className": "l40s", "count": 1}}, namespace)
    if status:
        await show(desk, name, {"status": status}, "status")


async def show(desk: Desk, name: str, patch: Obj, subresource: str = "") -> None:
    """Merge a patch into a claim."""
    body = msgspec.json.encode(patch)
    await desk.api.patch(GPU_CLAIM, "tenant-a", name, body, kind=PatchKind.MERGE, subresource=subresource)


def devices(obj: Obj) -> list[str]:
    """Return the devices that were written."""
    return [gpu["deviceName"] for gpu in obj["spec"]["domain"]["devices"]["gpus"]]


async def test_a_held_claim_and_its_class_are_read_for_the_request(desk: Desk) -> None:
    """A8, T15: the claim with uid and version, its class behind the named ones, in the request for replay."""
    await order(desk)

    answer = await desk.vmi(vmi(NAMED))

    request = desk.clerk.asked[-1]
    assert isinstance(request, VmiRequest)
    assert devices(answer.obj) == [SLICE, CARD]
    assert [view.name for view in request.classes] == ["l40s-24c", "l40s"]
    (claim,) = request.claims
    assert (claim.key, claim.class_name, bool(claim.uid), bool(claim.rv)) == ("tenant-a/mine", "l40s", True, True)


async def test_what_the_claim_is_counted_by_is_written(desk: Desk) -> None:
    """T24: the resource in the claim's status, not the class's of now; a change counts for the next request (A8)."""
    await order(desk, resourceName="nvidia.com/before", phase="Bound")
    first = await desk.vmi(vmi(gpus({"claimName": "mine"})))
    await show(desk, "mine", {"status": {"resourceName": "nvidia.com/later"}}, "status")
    second = await desk.vmi(vmi(gpus({"claimName": "mine"})))

    assert [devices(first.obj), devices(second.obj)] == [["nvidia.com/before"], ["nvidia.com/later"]]


async def test_a_claim_of_another_namespace_is_not_found(desk: Desk) -> None:
    """C47: the request's namespace counts; whoever names another tenant's claim hears that there is none."""
    desk.api.writes.seed_namespace("tenant-b")
    await order(desk, namespace="tenant-b")

    answer = await desk.vmi(vmi(NAMED))

    assert (answer.allowed, answer.reason) == (False, "ClaimNotFound")
    request = desk.clerk.asked[-1]
    assert isinstance(request, VmiRequest)
    assert request.missing_claims == ("mine",)


async def test_a_claim_that_goes_is_refused(desk: Desk) -> None:
    """A terminating claim is seen at once, and so is one that belongs to a template (A3)."""
    await order(desk)
    await show(desk, "mine", {"metadata": {"labels": {"cozystack.io/gpu-template-claim": "true"}}})
    template = await desk.vmi(vmi(NAMED))
    await show(desk, "mine", {"metadata": {"labels": None, "finalizers": ["cozystack.io/gpu-claim"]}})
    passed = await desk.vmi(vmi(NAMED))
    await desk.api.delete(GPU_CLAIM, "tenant-a", "mine")
    going = await desk.vmi(vmi(NAMED))

    assert (template.reason, passed.allowed, going.reason) == ("TemplateClaim", True, "ClaimBeingDeleted")


async def test_a_launcher_gets_the_tolerations_of_held_claims(desk: Desk) -> None:
    """P3: a launcher that names nothing but a held claim tolerates what the claim's class does."""
    await order(desk)

    answer = await desk.pod(launcher(gpus({"claimName": "mine"})))

    request = desk.clerk.asked[-1]
    assert isinstance(request, PodRequest)
    assert [view.name for view in request.claims] == ["mine"]
    assert answer.obj["spec"]["tolerations"] == [GPU_TAINT]


async def test_equal_refusals_stay_equal_while_the_claim_is_shown_elsewhere(desk: Desk) -> None:
    """T13: a claim whose place alone changed is the same evidence: its VM's retries are logged once."""
    await order(desk)
    text = gpus({"claimName": "mine"}, {"className": "no-such-class"})
    first = await desk.vmi(vmi(text))
    await show(desk, "mine", {"status": {"phase": "Pending", "nodeName": "n1"}}, "status")
    second = await desk.vmi(vmi(text))

    assert (first.reason, second.reason, len(desk.events())) == ("ClassNotFound", "ClassNotFound", 1)


@pytest.mark.parametrize("trouble", [ApiError(403, "Forbidden", "x"), ApiError(0, "Unreachable", "x")])
async def test_without_its_claim_read_no_start(desk: Desk, trouble: ApiError) -> None:
    """A claim that can't be read refuses the start; the binder is not asked (A8)."""
    await order(desk)
    desk.api.troubles["gpuclaims"] = trouble

    answer = await desk.vmi(vmi(NAMED))

    assert (answer.code, answer.reason, desk.events()) == (503, "EvidenceUnavailable", [])
