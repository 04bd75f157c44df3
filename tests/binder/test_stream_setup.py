"""The streams as the installer makes them, and what `run` finds wrong with them (T4, T8)."""

import asyncio
from pathlib import Path

import pytest

from binder.journal import Unavailable
from binder.stream_setup import StreamsDiffer, check_streams, check_sync, create_streams
from deploy.child import Child, free_ports
from deploy.local import LocalNats, find_nats_server
from schemas.streams import (
    ASK_DRY_RUN,
    DECISIONS,
    EVENTS,
    EVENTS_TICK,
    SNAPSHOTS,
    STORE_SHARES,
    STREAMS,
    shares,
)
from tests.binder.conftest import NatsStand
from tests.binder.waiting import eventually

ALTERED: dict[str, tuple[str, dict[str, object]]] = {
    "expires": (EVENTS, {"max_age": 3_600_000_000_000}),
    "trimmed": (SNAPSHOTS, {"max_msgs": 5}),
    "drops the oldest": (DECISIONS, {"discard": "old"}),
    "a shorter window": (EVENTS, {"duplicate_window": 1_000_000_000}),
    "other subjects": (DECISIONS, {"subjects": ["gpubinder.decisions.frame"]}),
    "smaller messages": (DECISIONS, {"max_msg_size": 1000}),
    "no batches": (SNAPSHOTS, {"allow_atomic": False}),
}


async def test_questions_are_answered_once_each(one: NatsStand) -> None:
    """T19: of one queue group one member answers each question, and slow ones don't hold up the others."""
    asker = await one.connect()
    gate = asyncio.Event()
    answered: list[bytes] = []

    async def answer(question: bytes) -> bytes:
        if question == b"slow":
            await gate.wait()
        answered.append(question)
        return question + b"!"

    for _ in range(2):
        await (await one.connect()).answer(ASK_DRY_RUN, "binders", answer)
    with_answer = [b"q%d" % number for number in range(20)]
    slow = asyncio.create_task(asker.ask(ASK_DRY_RUN, b"slow", seconds=30))
    replies = await asyncio.gather(*(asker.ask(ASK_DRY_RUN, one, seconds=30) for one in with_answer))
    gate.set()

    assert replies == [question + b"!" for question in with_answer]
    assert await slow == b"slow!"
    assert sorted(answered) == sorted([*with_answer, b"slow"])


async def test_created_streams_stand_as_they_must(stand: NatsStand) -> None:
    """T4: what the installer creates passes the check, and creating it again changes nothing."""
    journal = await stand.fresh()
    await journal.append(EVENTS, EVENTS_TICK, b"", message_id="a")

    await create_streams(journal, replicas=stand.servers.replicas)

    await check_streams(journal, replicas=stand.servers.replicas)
    assert (await journal.info(EVENTS)).last == 1


@pytest.mark.parametrize("case", ALTERED)
async def test_an_altered_stream_is_found_and_set_right(one: NatsStand, case: str) -> None:
    """T4, T8: each setting that matters is compared, named with its remedy, and put back by the installer."""
    stream, change = ALTERED[case]
    journal = await one.fresh()
    config = (await journal.manage(f"STREAM.INFO.{stream}", {}, stream)).config
    await journal.manage(f"STREAM.UPDATE.{stream}", {**config, **change}, stream)

    with pytest.raises(StreamsDiffer) as met:
        await check_streams(journal)

    (setting,) = change
    assert [finding for finding in met.value.findings if f"stream {stream}: {setting} is" in finding]
    await create_streams(journal, replicas=1)
    await check_streams(journal)


async def test_copies_are_never_taken_away(stand: NatsStand) -> None:
    """T8: who sets a stream right, or makes one anew, without a word on copies leaves as many as there were."""
    journal, copies = await stand.fresh(), stand.servers.replicas
    config = (await journal.manage(f"STREAM.INFO.{EVENTS}", {}, EVENTS)).config
    await journal.manage(f"STREAM.UPDATE.{EVENTS}", {**config, "max_msgs": 5}, EVENTS)
    await journal.manage(f"STREAM.DELETE.{SNAPSHOTS}", {}, SNAPSHOTS)

    await create_streams(journal, replicas=1)

    await check_streams(journal, replicas=copies)


async def test_missing_streams_and_too_few_copies_are_named(one: NatsStand) -> None:
    """T4: `run` creates nothing: it names each stream that is missing, and one that has too few copies."""
    journal = await one.fresh()

    with pytest.raises(StreamsDiffer, match=f"{EVENTS}: num_replicas is 1, must be 3"):
        await check_streams(journal, replicas=3)
    await journal.manage(f"STREAM.DELETE.{DECISIONS}", {}, DECISIONS)
    with pytest.raises(StreamsDiffer, match=f"stream {DECISIONS} does not exist: `gpubinder adopt`"):
        await check_streams(journal)
    with pytest.raises(LookupError):
        await journal.info(DECISIONS)


async def test_an_operators_limit_of_bytes_may_stay(one: NatsStand) -> None:
    """T8: where no limit is asked for, one that the operator set is no fault, and the installer keeps it."""
    journal = await one.fresh()
    config = (await journal.manage(f"STREAM.INFO.{EVENTS}", {}, EVENTS)).config
    limited = {**config, "max_bytes": 10**9, "duplicate_window": 5_000_000_000}
    await journal.manage(f"STREAM.UPDATE.{EVENTS}", limited, EVENTS)

    await create_streams(journal, replicas=1)

    after = (await journal.manage(f"STREAM.INFO.{EVENTS}", {}, EVENTS)).config
    assert (after["max_bytes"], after["duplicate_window"]) == (10**9, 3_600_000_000_000)


async def test_logs_get_a_limit_of_bytes_below_the_store(one: NatsStand) -> None:
    """T8: from the store's size each log gets its share, new or standing; a limit is raised, and never lowered."""
    journal = await one.fresh()
    await journal.append(EVENTS, EVENTS_TICK, b"first", message_id="a")

    async def limits(store: int) -> list[int]:
        await create_streams(journal, replicas=1, limits=shares(store))
        found = [await journal.manage(f"STREAM.INFO.{spec.name}", {}, spec.name) for spec in STREAMS]
        assert all(one.config["discard"] == "new" for one in found if one.config["name"] in STORE_SHARES)
        return [one.config.get("max_bytes", -1) for one in found]

    assert await limits(10**6) == [650_000, 250_000, -1]
    assert await limits(10**8) == [65_000_000, 25_000_000, -1]
    assert await limits(10**6) == [65_000_000, 25_000_000, -1]
    assert (await journal.info(EVENTS)).last == 1


async def test_a_log_that_is_longer_than_its_share_stays_without_a_limit(one: NatsStand) -> None:
    """T8: an upgrade that brings limits fills no stream: what stands in one is kept, and it takes more."""
    journal = await one.fresh()
    await journal.append(EVENTS, EVENTS_TICK, b"x" * 6000, message_id="a")

    await create_streams(journal, replicas=1, limits=shares(10_000))
    await journal.append(EVENTS, EVENTS_TICK, b"x" * 6000, message_id="b")

    found = (await journal.manage(f"STREAM.INFO.{EVENTS}", {}, EVENTS)).config
    assert found["max_bytes"] == -1
    assert (await journal.info(EVENTS)).messages == 2


async def test_a_server_that_acknowledges_before_fsync_is_found(one: NatsStand, tmp_path: Path) -> None:
    """The monitoring page tells whether every write is fsynced; without that the check fails with the remedy."""
    assert isinstance(one.servers.cluster, LocalNats)
    await asyncio.to_thread(check_sync, f"http://127.0.0.1:{one.servers.cluster.server.monitor_port}")
    port, monitor = free_ports(2)
    config = tmp_path / "lax.conf"
    config.write_text(f"listen: 127.0.0.1:{port}\nhttp: 127.0.0.1:{monitor}\njetstream {{ store_dir: '{tmp_path}' }}\n")
    lax = Child("lax", [find_nats_server(), "-c", config], tmp_path / "log")
    lax.spawn()
    try:

        async def answers() -> bool:
            try:
                await asyncio.to_thread(check_sync, f"http://127.0.0.1:{monitor}")
            except Unavailable:
                return False
            except StreamsDiffer as differ:
                assert "sync_interval: always" in str(differ)  # noqa: PT017 - polled until it is up
                return True
            pytest.fail("a server without fsync passed")

        await eventually(answers, "the server answers")
    finally:
        await asyncio.to_thread(lax.stop)
    with pytest.raises(Unavailable, match=f"{monitor}/varz"):
        await asyncio.to_thread(check_sync, f"http://127.0.0.1:{monitor}")
