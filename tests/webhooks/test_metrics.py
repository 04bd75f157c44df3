"""What the front desk counts: each review once, under its webhook, by the verdict that was given."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from binder.kube import ApiError
from schemas.kinds import GPU_CLAIM, POD, VMI, Resource
from tests.error_logs import ErrorLogs
from tests.webhooks.declaring import claim
from tests.webhooks.given import Desk, Obj, launcher, opened, review, until, vmi
from tests.webhooks.test_starts import stored
from webhooks.service import Patience
from webhooks.verdicts import Verdict

pytestmark = pytest.mark.looptime

ASKED: dict[str, tuple[Resource, Obj]] = {
    "vmis": (VMI, vmi()),
    "pods": (POD, launcher()),
    "starts": (VMI, stored()),
    "writes": (VMI, vmi()),
    "orders": (GPU_CLAIM, claim()),
}


def counted(desk: Desk) -> Counter[tuple[str, str]]:
    """Return how many reviews were answered, by webhook and verdict."""
    found: Counter[tuple[str, str]] = Counter()
    for family in desk.webhooks.metrics.registry.collect():
        for sample in family.samples:
            if sample.name == "gpubinder_admission_reviews_total":
                found[sample.labels["webhook"], sample.labels["verdict"]] += int(sample.value)
    return found


def door(desk: Desk, webhook: str) -> Callable[[bytes], Awaitable[Verdict]]:
    """Return what answers reviews of a webhook."""
    found: Callable[[bytes], Awaitable[Verdict]] = getattr(desk.webhooks, f"{webhook.removesuffix('s')}_verdict")
    return found


@pytest.mark.parametrize("webhook", ASKED)
async def test_each_verdict_is_counted_by_its_webhook(webhook: str, error_logs: ErrorLogs) -> None:
    """Answered, let pass, malformed, without answer, one too many, failed: each once and under no other webhook.

    A write that could not be checked counts as that, whatever was in the way.
    """
    error_logs.expect("admission.failed")
    resource, body = ASKED[webhook]
    async with opened(Patience(answer_s=1.0, unchecked_s=1.0, at_once=1, waiting=0)) as desk:
        ask = door(desk, webhook)

        async def put(**changes: object) -> str:
            return (await ask(msgspec.json.encode(review(body, resource, **changes)))).word

        desk.clerk.silent = True
        waiting = asyncio.create_task(put())

        async def asked() -> bool:
            return bool(desk.events())

        await until(asked)
        words = [await put(), await waiting, (await ask(b"{")).word, await put(operation="DELETE")]
        desk.api.troubles |= {kind: ZeroDivisionError("x") for kind in ("gpuclasses", "kubevirts")}
        words.append(await put())
        desk.api.troubles |= dict.fromkeys(("gpuclasses", "kubevirts"), ApiError(500, "InternalError", ""))
        words.append(await put())
        assert counted(desk) == Counter((webhook, word) for word in words)

    # One too many is a flood, as long as nobody knows that answers do not flow.
    closed = ["limited", "unanswered", "malformed", "untouched", "failed", "unanswered"]
    opens = {"unanswered": "unchecked", "failed": "unchecked"} if webhook == "writes" else {}
    assert words == [opens.get(word, word) for word in closed]
