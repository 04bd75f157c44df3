"""Dry runs: the same answers over request/reply, on no stream, or a refusal (T19, C25)."""

import asyncio

import msgspec
import pytest

from binder.journal import Unavailable
from schemas.answers import encode_answer
from schemas.decisions import VmiAdmitted
from schemas.kinds import VMI
from schemas.streams import DECISIONS
from tests.webhooks.given import READERS, Desk, review, said, vmi
from webhooks.service import Patience, Webhooks

pytestmark = pytest.mark.looptime

QUICK = Patience(answer_s=0.3)


async def test_a_dry_run_is_answered_off_the_streams(desk: Desk) -> None:
    """100 dry runs get the same patch as the real one, and are on no stream (T19, C25)."""
    answers = [await desk.vmi(vmi(), dryRun=True) for _ in range(100)]
    assert desk.events() == []
    assert len(desk.journal.streams[DECISIONS].messages) == 1

    real = await desk.vmi(vmi())

    assert {answer.allowed for answer in answers} == {True}
    assert all(answer.patch == real.patch for answer in answers)


async def test_a_dry_run_is_refused_by_the_same_rules(desk: Desk) -> None:
    """A refusal is the same sentence, on no stream either (A9, T19)."""
    answer = await desk.vmi(vmi("[]"), dryRun=True)

    assert (answer.allowed, answer.reason) == (False, "MalformedAnnotation")
    assert desk.events() == []


class Deaf:
    """Nobody who answers dry runs: each way of not answering."""

    def __init__(self, reply: bytes | Exception | None) -> None:
        self.reply = reply

    async def ask(self, _body: bytes) -> bytes:
        """Fail, reply nonsense, or never reply."""
        if isinstance(self.reply, Exception):
            raise self.reply
        if self.reply is None:
            await asyncio.get_running_loop().create_future()
        return self.reply or b""


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"{}",
        None,
        Unavailable("no responders"),
        RuntimeError("x"),
        encode_answer(VmiAdmitted("another", "tenant-a", "vm1", (), "Wait")),
    ],
    ids=["cold", "nonsense", "never", "nobody", "broken", "another's"],
)
async def test_without_a_warm_binder_a_dry_run_is_refused(desk: Desk, reply: bytes | Exception | None) -> None:
    """No usable reply: refused in a sentence, still on no stream (T19)."""
    webhooks = Webhooks(desk.api, desk.journal, Deaf(reply), READERS, patience=QUICK)

    answer = said(await webhooks.review_vmi(msgspec.json.encode(review(vmi(), VMI, dryRun=True))), vmi())

    assert (answer.allowed, answer.code, answer.reason) == (False, 503, "NoAnswer")
    assert "dry run" in answer.message
    assert desk.events() == []
