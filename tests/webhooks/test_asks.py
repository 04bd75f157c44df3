"""Asking the binder: durable answers, whoever gives them, and a sentence for every way not to get one."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
import pytest
from typing_extensions import override

from binder.jetstream import Access, connect
from binder.journal import Gap, Journal, Message, Unavailable, Unclear
from binder.memory_journal import MemoryJournal
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.local import LocalNats
from schemas.answers import encode_answer
from schemas.decisions import Rejected, VmiAdmitted
from schemas.kinds import VMI
from schemas.streams import DECISIONS, EVENTS
from tests.webhooks.given import READERS, Clerk, Desk, Said, opened, review, said, vmi
from webhooks.answers import Answers, UnreadableLog
from webhooks.service import Patience, Webhooks

QUICK = Patience(answer_s=0.3)
SECONDS = 30.0


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


async def asked_over(desk: Desk, journal: Journal, clerk: Clerk, patience: Patience | None = None) -> Said:
    """Put one VMI under review at webhooks of their own over this journal."""
    webhooks = Webhooks(desk.api, journal, clerk, READERS, patience=patience)
    following = asyncio.create_task(webhooks.run())
    working = asyncio.create_task(clerk.run())
    try:
        return said(await webhooks.review_vmi(msgspec.json.encode(review(vmi(), VMI))), vmi())
    finally:
        for task in (following, working):
            task.cancel()
        await asyncio.gather(following, working, return_exceptions=True)


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


async def test_without_nats_no_start(desk: Desk) -> None:
    """Publishing that never works is a refusal that names NATS."""
    journal = Flaky(*[Unavailable("no leader")] * 1000)
    clerk = Clerk(journal)
    await clerk.open_epoch()

    answer = await asked_over(desk, journal, clerk, QUICK)

    assert (answer.allowed, answer.code) == (False, 503)
    assert "NATS did not take the request in time" in answer.message


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


class Torn(MemoryJournal):
    """A journal whose first readers of DECISIONS break off with the errors given, once `now` is set."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.now = asyncio.Event()

    @override
    async def read(self, stream: str, start: int, *, until: int | None = None) -> AsyncIterator[list[Message]]:
        if stream == DECISIONS and self.errors:
            await self.now.wait()
            raise self.errors.pop(0)
        async for run in super().read(stream, start, until=until):
            yield run


async def test_a_follower_that_stops_starts_again(desk: Desk) -> None:
    """Gaps, lost connections and whatever else end the following; answers flow again after them."""
    journal = Torn(Gap(DECISIONS, 2, 5), Unavailable("no leader"), OSError("reset"))
    journal.now.set()
    clerk = Clerk(journal)
    await clerk.open_epoch()

    assert (await asked_over(desk, journal, clerk)).allowed
    assert journal.errors == []


@pytest.mark.parametrize("error", [Unavailable("gone"), Gap(DECISIONS, 6, 1)], ids=["lost", "gap"])
async def test_a_log_that_was_made_anew_is_followed_from_its_end(error: Exception) -> None:
    """A log shorter than what was read is another one: it is followed, not waited for."""
    journal = Torn(error)
    answers = Answers(journal, pause_s=0.0)
    clerk = Clerk(journal)
    for _ in range(5):
        await clerk.open_epoch()
    following = asyncio.create_task(answers.follow())
    await answers.ready()
    stream = journal.streams[DECISIONS]
    stream.messages.clear()
    stream.last = 0
    journal.now.set()
    while journal.errors:
        await asyncio.sleep(0)

    await clerk.open_epoch()
    await answers.ready()
    await clerk.open_epoch()

    async with asyncio.timeout(SECONDS):
        while not answers.records_seen:
            await asyncio.sleep(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_an_unknown_record_stops_the_program() -> None:
    """A decision of a newer version is another history to us: stop with a sentence, never skip (T6)."""
    journal = MemoryJournal()
    await Clerk(journal).open_epoch()
    await journal.append(DECISIONS, "gpubinder.decisions.frame", b'{"type":"from-the-future"}', message_id="")
    answers = Answers(journal)

    with pytest.raises(UnreadableLog, match=r"sequence 2 can't be read by this version .* upgrade it"):
        await answers.follow()


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

    try:
        assert (await ask()).allowed
        nats.server.kill()
        down = await ask()
        assert (down.allowed, down.code) == (False, 503)
        assert (await webhooks.health()).nats
        await nats.server.restart()
        deadline = asyncio.get_running_loop().time() + SECONDS
        while not (await ask()).allowed:
            assert asyncio.get_running_loop().time() < deadline
        assert await webhooks.health() == await desk.webhooks.health()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await connection.close()
