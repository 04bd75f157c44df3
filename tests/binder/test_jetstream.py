"""The connection to NATS: what is sent, what is not, what people are told, and questions over it (T4, T19)."""

import asyncio
import socket

import msgspec
import pytest

from binder.access import Access
from binder.jetstream import connect
from binder.journal import Full, Unavailable, Unclear
from binder.stream_api import ApiError, refusal
from schemas.streams import ASK_DRY_RUN, DECISIONS, EVENTS, EVENTS_TICK, STREAMS
from tests.binder.conftest import NatsStand
from tests.binder.waiting import eventually, patient, true
from tests.error_logs import ErrorLogs
from tests.nats_proxy import NatsProxy


async def test_nothing_is_sent_later_than_it_is_called(one: NatsStand) -> None:
    """Without a connection an append fails at once, and is not in the stream after the connection is back."""
    journal = await one.fresh()
    server = await one.servers.leader(EVENTS)
    server.kill()
    await eventually(lambda: true(not one.connections[-1].connected), "the loss is noticed")

    with pytest.raises(Unavailable, match="not sent"):
        await journal.append(EVENTS, EVENTS_TICK, b"", message_id="late")
    await server.start()

    assert (await patient(lambda: journal.info(EVENTS))).last == 0


async def test_a_call_under_way_fails_with_the_connection(one: NatsStand) -> None:
    """A frozen server that is killed leaves no caller waiting: the outcome is unclear at once."""
    journal = await one.fresh()
    server = await one.servers.leader(EVENTS)
    server.pause()
    appending = asyncio.create_task(journal.append(EVENTS, EVENTS_TICK, b"", message_id="a"))
    await asyncio.sleep(0)
    server.kill()

    with pytest.raises((Unclear, Unavailable), match=r"lost|not sent"):
        await appending
    await server.start()


async def test_a_stream_without_a_taker_is_a_clear_refusal(one: NatsStand) -> None:
    """Nobody takes the subject: 503, nothing stored, and the caller may try again."""
    journal = await one.fresh()

    with pytest.raises(Unavailable, match="nobody answers"):
        await journal.append(EVENTS, "gpubinder.nowhere", b"", message_id="a")
    with pytest.raises(LookupError, match="another stream"):
        await journal.append(DECISIONS, EVENTS_TICK, b"", message_id="b")


async def test_a_question_that_nobody_heard_is_put_again(one: NatsStand) -> None:
    """While a cluster elects a leader questions are lost: another is put long before the first one's time is up."""
    await one.fresh()
    async with NatsProxy(one.servers.port) as proxy:
        journal = await one.journal(proxy.url, call_seconds=3600.0)
        proxy.holds = lambda subject, _frame: not proxy.held and b".STREAM.INFO." in subject

        assert (await journal.info(EVENTS)).last == 0
        assert len(proxy.held) == 1


@pytest.mark.parametrize("code", [(503, 10023), (500, 10047), (500, 10028), (400, 10002)])
def test_storage_that_is_used_up_is_no_room(code: tuple[int, int]) -> None:
    """T8: however the server spells it, a message that found no room may find some later, and ends no role."""
    refused = refusal(ApiError(*code, description="resource limits exceeded for account"), EVENTS)

    assert isinstance(refused, Full)
    assert "more room" in str(refused)


async def test_a_full_stream_is_unavailable(one: NatsStand) -> None:
    """T8: a stream at its limit refuses and keeps what it has."""
    full = tuple(msgspec.structs.replace(spec, max_bytes=2000) for spec in STREAMS)
    journal = await one.fresh(full)
    await journal.append(EVENTS, EVENTS_TICK, b"x" * 1500, message_id="a")

    with pytest.raises(Full, match="maximum bytes"):
        await journal.append(EVENTS, EVENTS_TICK, b"x" * 1500, message_id="b")

    assert (await journal.info(EVENTS)).last == 1


async def test_a_connection_closed_for_good_is_reported(one: NatsStand) -> None:
    """The server's errors that end a client reach the fatal callback; the process must not live on deaf."""
    async with NatsProxy(one.servers.port) as proxy:
        where = proxy.url.removeprefix("nats://")
        await one.connect(proxy.url)

        await proxy.say(b"-ERR 'Maximum Payload Violation'\r\n")
        await eventually(lambda: true(bool(one.fatal)), "the callback is called")

    assert one.fatal == [f"NATS at {where} closed the connection for good"]
    one.fatal.clear()


async def test_errors_name_servers_without_credentials() -> None:
    """T4: a URL's password is in no error."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        access = Access((f"nats://operator:hunter2@127.0.0.1:{port}",))

        with pytest.raises(Unavailable) as met:
            await connect(access, pytest.fail, seconds=1)

    assert "hunter2" not in str(met.value)
    assert "operator" not in str(met.value)
    assert f"127.0.0.1:{port}" in str(met.value)


async def test_a_question_nobody_takes_fails_clearly(one: NatsStand, error_logs: ErrorLogs) -> None:
    """T19: no binder: Unavailable at once; a binder that fails or is slow: Unclear after the time given."""
    asker, binder = await one.connect(), await one.connect()
    with pytest.raises(Unavailable, match="nobody answers"):
        await asker.ask(ASK_DRY_RUN, b"", seconds=30)

    heard = asyncio.Event()

    async def fail(question: bytes) -> bytes:
        heard.set()
        raise KeyError(question)

    stop = await binder.answer(ASK_DRY_RUN, "binders", fail)
    error_logs.expect("question not answered")
    with pytest.raises(Unclear, match=r"no answer within 0\.5 s"):
        await asker.ask(ASK_DRY_RUN, b"", seconds=0.5)

    await heard.wait()
    await stop()
    with pytest.raises(Unavailable):
        await asker.ask(ASK_DRY_RUN, b"", seconds=30)


async def test_who_begins_to_answer_is_heard_at_once_and_who_ended_no_more(one: NatsStand) -> None:
    """T19: others know both as soon as `answer`, and what it returned, come back, five hundred times over."""
    asker, binder = await one.connect(), await one.connect()

    async def echo(question: bytes) -> bytes:
        return question

    for number in range(500):
        question = str(number).encode()
        stop = await binder.answer(ASK_DRY_RUN, "binders", echo)
        assert await asker.ask(ASK_DRY_RUN, question, seconds=30) == question
        await stop()
        with pytest.raises(Unavailable, match="nobody answers"):
            await asker.ask(ASK_DRY_RUN, question, seconds=30)
