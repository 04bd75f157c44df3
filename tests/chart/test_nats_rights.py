"""Who may do what in the chart's NATS: its own configuration on a real nats-server, asked by each user."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio

from binder.access import Access
from binder.jetstream import Connection, connect
from binder.journal import Denied, Unavailable
from binder.stream_api import API
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import check_streams, check_sync, create_streams
from deploy.nats_rights import PERMISSIONS, Person
from deploy.role_names import Role
from schemas import streams as s
from tests.chart.chart_nats import ChartNats, chart_nats
from tests.chart.helm import rendered
from tests.chart.value_sets import VALUE_SETS
from tests.cluster.certificates import Authority
from tests.error_logs import ErrorLogs

pytestmark = pytest.mark.nats

WRITES = {
    Role.BINDER: (
        *(s.DECISIONS_EPOCH, s.DECISIONS_FRAME, s.EVENTS_TICK, s.EVENTS_CONTINUE),
        *(s.SNAPSHOT_CHUNK, s.SNAPSHOT_MANIFEST),
    ),
    Role.INGEST: (f"{s.EVENTS_WATCH}.pods",),
    Role.PROJECTOR: (s.EVENTS_OUTCOME,),
    Role.WEBHOOKS: (f"{s.EVENTS_REQUEST}.vmis",),
    Role.ACCOUNTING: (),
    Person.INSTALLER: (s.DECISIONS_GENESIS,),
    Person.OPERATOR: (s.EVENTS_COMMAND, s.DECISIONS_VOID),
    Person.AUDITOR: (),
}
"""Who writes which subject of the streams, said again here: the program's table must agree."""
SUBJECTS = sorted({subject for subjects in WRITES.values() for subject in subjects})
MANAGING = ("CREATE", "UPDATE", "PURGE", "DELETE")
ALLOWED_EXTRA = {(Role.BINDER, "PURGE", s.SNAPSHOTS)}


@pytest_asyncio.fixture
async def served(helm_home: Path, tmp_path: Path) -> AsyncIterator[ChartNats]:
    """One server of the chart, with the streams that its installer makes."""
    async with chart_nats(rendered(VALUE_SETS["small"], helm_home), tmp_path / "nats") as nats:
        async with user(nats, Person.INSTALLER) as connection:
            await create_streams(JetStreamJournal(connection), replicas=1)
        yield nats


@asynccontextmanager
async def user(nats: ChartNats, name: str) -> AsyncIterator[Connection]:
    """Connect as one user of the chart."""
    connection = await connect(Access(tuple(nats.url(name).split(","))), lambda _why: None, call_seconds=5.0)
    try:
        yield connection
    finally:
        await connection.close()


async def may(connection: Connection, subject: str, body: bytes = b"{}") -> bool:
    """Say whether a publish was let through, whatever JetStream then made of it."""
    try:
        await connection.call(subject, body)
    except Denied:
        return False
    return True


@pytest.fixture(autouse=True)
def denials(error_logs: ErrorLogs) -> None:
    """Each refusal is logged as an error, and asked for here."""
    error_logs.allow("nats permission missing")


async def test_each_user_writes_its_own_subjects_and_no_other(served: ChartNats) -> None:
    """T8: a role's part of the log is written by that role alone; the heads of the streams show nobody else's."""
    for name, subjects in WRITES.items():
        async with user(served, name) as connection:
            assert {subject for subject in SUBJECTS if await may(connection, subject, b"x")} == set(subjects), name


async def test_streams_are_changed_by_the_installer_alone(served: ChartNats) -> None:
    """T4, T8: nobody else makes, changes, empties or deletes a stream; the binder empties the cache of snapshots."""
    for name in PERMISSIONS:
        if name == Person.INSTALLER:
            continue
        async with user(served, name) as connection:
            for call, spec in product(MANAGING, s.STREAMS):
                allowed = await may(connection, f"{API}.STREAM.{call}.{spec.name}")
                assert allowed == ((name, call, spec.name) in ALLOWED_EXTRA), (name, call, spec.name)


async def test_every_user_sees_how_the_streams_stand(served: ChartNats) -> None:
    """T4: `run` and every command check the streams; who may not change them may look at them."""
    for name in PERMISSIONS:
        async with user(served, name) as connection:
            await check_streams(JetStreamJournal(connection))


_ALL = {s.EVENTS, s.DECISIONS, s.SNAPSHOTS}
READS = {
    Role.BINDER: _ALL,
    Role.INGEST: {s.DECISIONS},
    Role.PROJECTOR: _ALL,
    Role.WEBHOOKS: {s.DECISIONS},
    Role.ACCOUNTING: set[str](),
    Person.OPERATOR: _ALL,
    Person.AUDITOR: _ALL,
}


async def test_each_user_follows_what_it_needs(served: ChartNats) -> None:
    """A role makes readers on the streams that its work needs, and is refused one on any other."""
    for name, streams in READS.items():
        async with user(served, name) as connection:
            found = {
                spec.name for spec in s.STREAMS if await may(connection, f"{API}.CONSUMER.CREATE.{spec.name}.reader-x")
            }
            assert found == streams, name


async def test_the_log_is_sent_whole_to_the_auditor_alone(served: ChartNats) -> None:
    """T8: a backup of the two streams is an auditor's; nobody else has one sent, and snapshots are a cache."""
    for name in PERMISSIONS:
        async with user(served, name) as connection:
            sent = {spec.name for spec in s.STREAMS if await may(connection, f"{API}.STREAM.SNAPSHOT.{spec.name}")}
        assert sent == ({s.EVENTS, s.DECISIONS} if name == Person.AUDITOR else set()), name


async def test_nobody_answers_in_anothers_name(served: ChartNats) -> None:
    """An answer is given to who asked, once: nobody may publish to an inbox by itself."""
    for name in PERMISSIONS:
        async with user(served, name) as connection:
            assert not await may(connection, "_INBOX.somebody.1"), name


async def test_a_dry_run_is_asked_and_answered(served: ChartNats) -> None:
    """T19: webhooks ask, binders answer, and the answer comes through."""
    async with user(served, Role.BINDER) as binder, user(served, Role.WEBHOOKS) as webhooks:

        async def answer(body: bytes) -> bytes:
            return body + b", answered"

        stop = await binder.answer(s.ASK_DRY_RUN, "binders", answer)
        assert await webhooks.ask(s.ASK_DRY_RUN, b"asked", seconds=60) == b"asked, answered"
        await stop()


async def test_who_has_no_password_is_turned_away(served: ChartNats) -> None:
    """No client comes in without one of the users' passwords."""
    with pytest.raises(Unavailable):
        await connect(Access((served.servers[0].url,)), lambda _why: None, seconds=2.0)


async def test_three_servers_find_each_other_and_fsync(helm_home: Path, tmp_path: Path) -> None:
    """As it comes the chart makes a cluster of three that acknowledges after fsync and copies streams three times."""
    async with chart_nats(rendered({}, helm_home), tmp_path / "nats") as nats:
        for server in nats.servers:
            check_sync(f"http://127.0.0.1:{server.monitor_port}")
        async with user(nats, Person.INSTALLER) as connection:
            await create_streams(JetStreamJournal(connection), replicas=3)
            await check_streams(JetStreamJournal(connection), replicas=3)


async def test_three_servers_speak_tls(helm_home: Path, tmp_path: Path) -> None:
    """With a certificate clients and routes speak TLS; who trusts another authority is not let in."""
    authority = Authority.new()
    tls = tmp_path / "tls"
    authority.issue_files(tls)
    (tls / "ca.crt").write_bytes(authority.pem)
    other = tmp_path / "other.crt"
    other.write_bytes(Authority.new().pem)
    values = {"nats": {"server": {"tls": {"secretName": "nats-tls"}}}}
    async with chart_nats(rendered(values, helm_home), tmp_path / "nats", tls) as nats:
        urls = tuple(nats.url(Person.INSTALLER).split(","))
        connection = await connect(Access(urls, ca=tls / "ca.crt"), lambda _why: None)
        await create_streams(JetStreamJournal(connection), replicas=3)
        await connection.close()
        with pytest.raises(Unavailable):
            await connect(Access(urls, ca=other), lambda _why: None, seconds=2.0)
