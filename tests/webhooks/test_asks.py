"""Asking the binder: durable answers, whoever gives them, and a sentence for every way not to get one."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from typing_extensions import override

from binder.access import Access
from binder.jetstream import connect
from binder.journal import Unavailable, Unclear
from binder.memory_journal import MemoryJournal
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.local import LocalNats
from schemas.decisions import Rejected
from schemas.kinds import VMI
from schemas.streams import EVENTS
from tests.webhooks.given import READERS, Clerk, Desk, Said, asked_over, opened, review, said, until, vmi
from webhooks.service import Patience, Webhooks

QUICK = Patience(answer_s=0.3)


class Flaky(MemoryJournal):
    """A journal whose appends to EVENTS meet the troubles given, one after the other, then work.

    `lands`: an unclear append was stored all the same.
    """

    def __init__(self, *troubles: Exception, lands: bool = False) -> None:
        super().__init__()
        self.troubles, self.lands = list(troubles), lands

    @override
    async def append(
        self,
        stream: str,
        subject: str,
        body: bytes,
        *,
        message_id: str,
        expected_last: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        if stream == EVENTS and self.troubles:
            if self.lands:
                await super().append(stream, subject, body, message_id=message_id, headers=headers)
            raise self.troubles.pop(0)
        return await super().append(
            stream, subject, body, message_id=message_id, expected_last=expected_last, headers=headers
        )


@pytest.mark.looptime
async def test_a_silent_binder_is_a_refusal_that_says_so() -> None:
    """Nobody answers: refused before the API server's own timeout, nothing booked, and health tells why (T18)."""
    async with opened(QUICK) as desk:
        assert (await desk.vmi(vmi())).allowed
        assert (await desk.webhooks.health()).binder == ""
        desk.clerk.silent = True

        answer = await desk.vmi(vmi())

        assert (answer.allowed, answer.code, answer.reason) == (False, 503, "NoAnswer")
        assert "the binder gave no answer in time; nothing was booked, try again" in answer.message
        assert "not answered" in (await desk.webhooks.health()).binder
        await desk.clerk.open_epoch()
        while (await desk.webhooks.health()).binder:
            await asyncio.sleep(0)


@pytest.mark.looptime
async def test_without_a_leader_nothing_is_published() -> None:
    """Before any epoch is in the log nobody has said what it reads: refused, and no message waits for later (T6)."""
    async with opened() as desk:
        journal = MemoryJournal()

        answer = await asked_over(desk, journal, Clerk(journal), QUICK)

    assert "the binder has not announced itself" in answer.message
    assert journal.streams[EVENTS].messages == []


async def test_only_announced_versions_are_published(desk: Desk) -> None:
    """An epoch that does not read our messages gets none (T6)."""
    await desk.clerk.open_epoch((7,))
    await desk.clerk.open_epoch((7,))

    answer = await desk.vmi(vmi())
    while answer.allowed:
        answer = await desk.vmi(vmi())

    assert "does not read requests of version 1" in answer.message


async def test_the_epoch_is_found_behind_frames(desk: Desk) -> None:
    """A webhook that starts late learns from the last frame which epoch it belongs to (T6)."""
    for _ in range(3):
        await desk.vmi(vmi())

    assert (await asked_over(desk, desk.journal, Clerk(desk.journal))).allowed


@pytest.mark.parametrize("lands", [False, True])
async def test_an_unclear_publish_is_repeated_as_one_message(desk: Desk, lands: bool) -> None:
    """Whether the first try landed or not, there is one message and one answer (T3)."""
    journal = Flaky(Unclear("no answer"), Unavailable("no leader"), lands=lands)
    clerk = Clerk(journal)
    await clerk.open_epoch()

    answer = await asked_over(desk, journal, clerk)

    assert answer.allowed
    assert len(journal.streams[EVENTS].messages) == 1


@pytest.mark.looptime
async def test_without_nats_no_start(desk: Desk) -> None:
    """Publishing that never works is a refusal that names NATS."""
    journal = Flaky(*[Unavailable("no leader")] * 1000)
    clerk = Clerk(journal)
    await clerk.open_epoch()

    answer = await asked_over(desk, journal, clerk, QUICK)

    assert (answer.allowed, answer.code) == (False, 503)
    assert "NATS did not take the request in time" in answer.message


async def test_a_tenant_s_megabytes_are_not_logged(desk: Desk) -> None:
    """T5, T13: what names devices without end is refused with a sentence, and the log holds nothing of it."""
    before = len(desk.journal.streams[EVENTS].messages)
    forged = [{"name": f"gpubinder-{number}", "deviceName": "x" * 300} for number in range(1000)]

    answer = await desk.vmi(vmi(devices={"gpus": forged}))

    assert (answer.allowed, answer.code, answer.reason) == (False, 403, "TooLong")
    assert "name fewer devices" in answer.message
    assert len(desk.journal.streams[EVENTS].messages) == before


async def test_a_request_that_is_too_big_is_refused(desk: Desk) -> None:
    """A refusal of the journal itself is passed on (T5)."""
    journal = Flaky(ValueError("stream: too big"))
    clerk = Clerk(journal)
    await clerk.open_epoch()

    answer = await asked_over(desk, journal, clerk)

    assert "could not be published" in answer.message


async def test_the_same_request_again_gets_the_same_answer(desk: Desk) -> None:
    """The API server repeats a call that broke off under the same uid: one message, one decision."""
    first, second = await asyncio.gather(desk.vmi(vmi(), uid="u-1"), desk.vmi(vmi(), uid="u-1"))
    third = await desk.vmi(vmi(), uid="u-1")

    assert first.patch == second.patch == third.patch
    assert len(desk.events()) == 1


async def test_a_request_that_was_passed_over_is_not_waited_for(desk: Desk) -> None:
    """The log covers the request and says nothing of it: refused at once, not at the timeout."""
    desk.clerk.says_nothing_of.add("u-1")

    answer = await desk.vmi(vmi(), uid="u-1")

    assert "the binder passed over the request: it was skipped" in answer.message


async def test_a_rejected_request_says_why(desk: Desk) -> None:
    """A message that the binder could not read is a refusal with its words (T6)."""
    desk.clerk.instead = Rejected("field gpus: not text")

    assert "passed over the request: field gpus: not text" in (await desk.vmi(vmi())).message


async def test_any_leader_may_answer(desk: Desk) -> None:
    """The answer is read from the log: another binder than the one that led when we asked can give it."""
    desk.clerk.silent = True
    waiting = asyncio.create_task(desk.vmi(vmi()))
    while not desk.events():
        await asyncio.sleep(0)
    successor = Clerk(desk.journal)
    await successor.open_epoch()
    working = asyncio.create_task(successor.run())

    answer = await waiting

    working.cancel()
    assert answer.allowed


async def test_answers_survive_a_restart_of_nats(desk: Desk, nats: LocalNats, tmp_path: Path) -> None:
    """Over a real server: asked, answered, killed, refused in time while it is down, answered when it is back."""
    connection = await connect(Access((nats.url,)), print, call_seconds=1.0)
    journal = JetStreamJournal(connection)
    await create_streams(journal, replicas=1)
    clerk = Clerk(journal)
    await clerk.open_epoch()
    webhooks = Webhooks(desk.api, journal, clerk, READERS, patience=Patience(answer_s=2.0))
    tasks = [asyncio.create_task(webhooks.run()), asyncio.create_task(clerk.run())]

    async def ask() -> Said:
        return said(await webhooks.review_vmi(msgspec.json.encode(review(vmi(), VMI))), vmi())

    async def answered() -> bool:
        return (await ask()).allowed

    async def well() -> bool:
        return await webhooks.health() == await desk.webhooks.health()

    try:
        await until(answered)
        nats.server.kill()
        down = await ask()
        assert (down.allowed, down.code) == (False, 503)
        assert (await webhooks.health()).nats
        await nats.server.restart()
        await until(answered)
        await until(well)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await connection.close()
